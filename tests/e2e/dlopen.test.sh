#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Plug-ins that are loaded and unloaded in a loop, each where the other was: the lines of each are found while it is loaded, and no time of
# the one is charged to the other.
# needs: root btf python3
# beside: others
# shellcheck disable=SC2154 # what helpers.sh sets
set -uo pipefail
# shellcheck source=tests/e2e/helpers.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/helpers.sh"

# The same code from sources of two names: they are alike to the byte but for their debug information.
for name in odd even; do
	{
		printf '#include "%s"\n' "$here/programs/helper.h"
		printf 'void plugin_work(uint64_t n);\n'
		printf 'KEEP void plugin_work(uint64_t n)\n{\n\tBURN(n);\n\t__asm__ volatile("" : : : "memory");\n}\n'
	} >"$tmp/$name.c"
	gcc -g -O2 -fomit-frame-pointer -fPIC -shared -o "$tmp/lib$name.so" "$tmp/$name.c" || exit 1
done

why=''
profiled -b MAIN -b 'libodd.so' -b 'libeven.so' -p progress -- "$programs/reload" 6 "$tmp/libodd.so" "$tmp/libeven.so" ||
	why="exit status $?"
# shellcheck disable=SC2046 # own_ns=N odd_ns=N even_ns=N overlaid=N
[ -n "$why" ] || declare $(tail -n 1 "$tmp/out")
# Samples to CPU time, in percent of what the program's own loop has.
share() { # FILE NS
	ask "round(100 * sum(n for where, n in samples.items() if where.rpartition(':')[0].endswith('/$1')) / $2 /
		(sum(n for where, n in samples.items() if where.endswith('/$(line_of reload burn)')) / ${own_ns:?}))"
}
if [ -z "$why" ]; then
	odd=$(share odd.c "${odd_ns:?}")
	even=$(share even.c "${even_ns:?}")
	[ "${overlaid:?}" -gt 4 ] || why+=" only $overlaid loads where another plug-in had been: nothing is shown;"
	{ [ "$odd" -ge 60 ] && [ "$odd" -le 130 ]; } 2>/dev/null || why+=" the first has $odd % of the samples that its CPU time asks for;"
	{ [ "$even" -ge 60 ] && [ "$even" -le 130 ]; } 2>/dev/null || why+=" the second has $even %;"
	printf '# %s %%, %s %%; %s times in the same place\n' "$odd" "$even" "$overlaid"
fi
verdict 'plug-ins that come and go have their own lines' "$why" "$tmp/err" "$tmp/out"
