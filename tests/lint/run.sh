#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Checks the tree's rules. Usage: run.sh [ROOT [quick]]. Prints "ok NAME", "not ok NAME: detail"
# or "skip NAME: reason" for each; exit 1 if one is not ok. quick: only the checks of checks.py.
# beside: others
set -uo pipefail

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
root=$(cd -- "${1:-$here/../..}" && pwd) || exit 1
scratch=$(mktemp -d) || exit 1
trap 'rm -rf -- "$scratch"' EXIT
# No cache files in the tree; selftest.sh has a place of its own for them, for all of its cases.
export PYTHONPYCACHEPREFIX=${PYTHONPYCACHEPREFIX:-$scratch/pycache}
unset PYTHONDONTWRITEBYTECODE
export LC_ALL=C
status=0

# The files of the tree: what git tracks or would track; without git, all but build directories.
list_files() {
	if [[ $(git -C "$root" rev-parse --show-toplevel 2>/dev/null) == "$root" ]]; then
		git -C "$root" -c core.quotePath=off ls-files --cached --others --exclude-standard | sort -u
	else
		(cd -- "$root" && find . -name .git -prune -o -path './build*' -prune -o -name __pycache__ -prune -o \
			\( -type f -o -type l \) -print | sed 's|^\./||' | sort)
	fi
}

# report NAME DETAILS: one line for each line of DETAILS.
report() {
	if [[ -z $2 ]]; then
		echo "ok $1"
	else
		sed "s|^|not ok $1: |" <<<"$2"
		status=1
	fi
}

# Paths of scripts that the shell named by their suffix or first line runs.
shell_scripts() {
	local path first
	while IFS= read -r path; do
		[[ -f $root/$path ]] || continue
		IFS= read -r first <"$root/$path" 2>/dev/null || first=
		if [[ $path == *.sh || $first =~ ^\#!.*[/\ ](ba)?sh( |$) ]]; then
			echo "$path"
		fi
	done <"$scratch/files"
}

shell_syntax() {
	local path
	while IFS= read -r path; do
		bash -n -- "$root/$path" 2>&1
	done <"$scratch/shell"
}

# Style remarks are left to taste: warnings and errors count.
shell_lint() {
	local -a paths
	mapfile -t paths <"$scratch/shell"
	[[ ${#paths[@]} -eq 0 ]] || (cd -- "$root" && shellcheck --severity=warning --format=gcc -- "${paths[@]}" 2>&1)
}

python_syntax() {
	local -a paths
	mapfile -t paths < <(grep '\.py$' "$scratch/files")
	[[ ${#paths[@]} -eq 0 ]] || (cd -- "$root" && python3 -m py_compile "${paths[@]}" 2>&1)
}

list_files >"$scratch/files"
shell_scripts >"$scratch/shell"
report files_found "$([[ -s $scratch/files ]] || echo "no files under $root")"
python3 "$here/checks.py" "$root" <"$scratch/files" || status=1
[[ ${2:-} != quick ]] || exit "$status"
report shell_syntax "$(shell_syntax)"
if command -v shellcheck >/dev/null; then
	report shellcheck "$(shell_lint)"
else
	echo "skip shellcheck: not installed"
fi
report python_syntax "$(python_syntax)"
exit "$status"
