#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Time in libraries belongs to the line in scope that called them, however the program is linked: as many samples to CPU time as the
# program's own loop has. Few seconds give few samples, so this is about a kind of linking that does not work at all; how exact it is,
# tests/bpf/unwind_test.c tells.
# needs: root btf python3
# shellcheck disable=SC2154 # what helpers.sh sets
set -uo pipefail
directory=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd) || exit 1
# shellcheck source=tests/e2e/helpers.sh
source "$directory/helpers.sh"

own=$(line_of library burn)

# ratio_of ARGUMENTS...: runs it; sets ratio, in percent, and why.
ratio_of() {
	why=''
	ratio=
	profiled -p progress -- "$@" || why="exit status $?"
	[ -z "$why" ] || return
	# shellcheck disable=SC2046 # burn_ns=N library_ns=N
	local $(tail -n 1 "$tmp/out")
	ratio=$(ask "round(100 * (lambda own: (sum(n for where, n in samples.items() if 'library.c:' in where) - own) / ${library_ns:?} /
		(own / ${burn_ns:?}))(sum(n for where, n in samples.items() if where.endswith('/$own'))))")
	{ [ "$ratio" -ge 75 ] && [ "$ratio" -le 130 ]; } 2>/dev/null ||
		why="samples of library work are $ratio % of what its CPU time asks for"
}

# shares NAME ARGUMENTS...: samples to CPU time in the libraries are about what they are in the program's loop. Some hundred samples of
# two clocks are off by a fifth now and then, where the program's rounds fall in step with them: two more attempts.
shares() {
	local name=$1 why='' ratio=
	shift
	for _ in 1 2 3; do
		ratio_of "$@"
		[ -n "$why" ] || break
		printf '# %s: %s\n' "$name" "$why"
	done
	verdict "library work in $name is charged to its callers" "$why" "$tmp/err" "$tmp/out"
	printf '# %s %%\n' "$ratio"
}

shares 'a position-independent executable' "$programs/library" 2
shares 'a static executable' "$programs/library_static" 2
if [ "${FULL:-0}" -eq 1 ]; then
	shares 'an executable at a fixed address' "$programs/library_fixed" 2
	shares 'a static position-independent executable' "$programs/library_static_pie" 2
fi
shares 'a plug-in loaded later' "$programs/library" 3 "$programs/libplugin.so"
shares 'a plug-in, 150 calls deep' "$programs/library" 3 "$programs/libplugin.so" 150

# What is deeper is said, and not taken for code that nothing in scope called.
too_deep() {
	profiled -p progress -- "$programs/library" 3 "$programs/libplugin.so" 400 || why+=' it failed;'
	"$COZBPF" report --verbose "$profile" 2>&1 | tr -s '\n ' ' ' >"$tmp/report"
	holds 'too_deep > 0.3 * unattributed > 3' || why+=" the profile does not count them: $(ask too_deep) of $(ask unattributed);"
	grep -qE 'had call chains of more frames than are looked at, .*the others are in code out of scope' "$tmp/report" || why+=' the report does not say so;'
}
tried too_deep
verdict 'call chains that are too long are told apart' "$why" "$tmp/err" "$tmp/report"
