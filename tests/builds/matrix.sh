#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# tests/builds/matrix.sh DIRECTORY: builds the tree that this file is in, in folders of DIRECTORY, with each compiler and optimisation, and
# tries each build. Prints "ok NAME" or "not ok NAME: WHY" for each. builds.test.sh runs it, also inside of trees with other distributions.
set -uo pipefail
source_tree=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd) || exit 125
into=$1
mkdir -p "$into" || exit 125
# shellcheck source=/dev/null
distribution=$(source /etc/os-release && printf '%s %s' "$ID" "${VERSION_ID:-sid}")
status=0

can_run_bpf() {
	[ "$(id -u)" -eq 0 ] && [ -r /sys/kernel/btf/vmlinux ]
}

# Prints what went wrong first.
attempt() { # DIRECTORY COMPILER SETUP-OPTION...
	local directory=$1 compiler=$2
	shift 2
	rm -rf -- "$directory"
	CC=$compiler meson setup "$directory" "$source_tree" -Dtests=true -Dwerror=true "$@" >"$directory.log" 2>&1 || { echo 'meson setup failed'; return; }
	ninja -k 0 -C "$directory" all test-programs >>"$directory.log" 2>&1 || { echo 'it does not compile'; return; }
	meson test -C "$directory" --no-rebuild --suite unit --timeout-multiplier 4 >>"$directory.log" 2>&1 || { echo 'unit tests fail'; return; }
	{
		"$directory/user/cozbpf" --version && "$directory/user/cozbpf" report "$source_tree/tests/data/exact.jsonl"
	} >>"$directory.log" 2>&1 || { echo 'it does not run'; return; }
	if can_run_bpf; then
		"$directory/user/cozbpf" check "$directory/examples/barrier" >>"$directory.log" 2>&1 || echo 'cozbpf check refuses'
	fi
}

for compiler in gcc clang; do
	for how in -O0 -O2 -O3 LTO; do
		name="$distribution, $compiler, $how"
		directory=$into/$compiler$how
		case $how in
		LTO) options=(-Doptimization=2 -Db_lto=true) ;;
		*) options=(-Doptimization="${how#-O}") ;;
		esac
		why=$(attempt "$directory" "$compiler" -Ddebug=true "${options[@]}")
		if [ -z "$why" ]; then
			printf 'ok %s\n' "$name"
			rm -rf -- "$directory" "$directory.log"
		else
			status=1
			printf 'not ok %s: %s (%s)\n' "$name" "$why" "$directory.log"
			grep -E 'error|warning|FAILED|not ok|FAIL ' "$directory.log" | head -n 20 | sed 's/^/# /'
		fi
	done
done
exit "$status"
