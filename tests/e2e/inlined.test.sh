#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Inlined code: what is of the library's headers belongs to the line of the program's that it was inlined by, what is the program's own to its own
# line; address by address as addr2line says, however the debug information is packed, and in a profile with its chain of calls.
# needs: root btf python3 g++ clang++ addr2line llvm-addr2line
# beside: others
# shellcheck disable=SC2154 # what helpers.sh sets
set -uo pipefail
directory=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd) || exit 1
# shellcheck source=tests/e2e/helpers.sh
source "$directory/helpers.sh"
cd "$tmp" || exit 1
source=$here/programs/inlined.cpp

mark() { # MARK
	printf 'inlined.cpp:%s' "$(grep -n "// LINE:$1\$" "$source" | cut -d : -f 1)"
}

compare() { # NAME ADDR2LINE COMPILER...
	local name=$1 tool=$2 why='' figures=
	shift 2
	rm -f program
	if ! "$@" -o program "$source" 2>err; then
		verdict "inlined code by $name" ' it does not compile;' err
		return
	fi
	"$programs/line_owners" "$tmp/program" >owners 2>err || why+=' no owners;'
	figures=$(python3 "$here/inlined_compare.py" owners program "$tool" 2>wrong) || why+=" $figures;"
	verdict "inlined code by $name belongs to the line that $tool says" "$why" err wrong
	printf '# %s\n' "$figures"
}

compare 'g++ -O2' addr2line g++ -O2 -g -std=c++17
compare 'g++ -O3, DWARF 4' addr2line g++ -O3 -g -gdwarf-4 -std=c++17
compare 'g++ -flto' llvm-addr2line g++ -O2 -flto -g -std=c++17
compare 'clang++ -O2' llvm-addr2line clang++ -O2 -g -std=c++17

# The same code with its debug information elsewhere: the same owners.
moved() { # NAME COMPILER...
	local name=$1 why=''
	shift
	"$@" -o program "$source" && "$programs/line_owners" "$tmp/program" >owners 2>err || why+=' it does not work whole;'
	"$@" -gsplit-dwarf -o program "$source" && "$programs/line_owners" "$tmp/program" >./split 2>err || why+=' it does not work split;'
	cmp -- owners ./split >differ 2>&1 || why+=' others than of the whole program;'
	[ "$(wc -l <owners)" -gt 500 ] || why+=' too few;'
	verdict "inlined code by $name -gsplit-dwarf has the same owners" "$why" err differ
}
moved 'g++' g++ -O2 -g -std=c++17
moved 'clang++' clang++ -O2 -g -std=c++17

# A profile.
why=
g++ -O2 -g -std=c++17 -o program "$source" || why+=' it does not compile;'
profiled -p progress --experiment 200 -- ./program 4 || why+=' it failed;'
holds "all('/inlined.cpp:' in s for s in samples)" || why+=" samples in $(ask 'set(samples)');"
holds "sum(n for s, n in samples.items() if s.endswith('/$(mark mix)')) > 0.3 * sum(samples.values())" || why+=" samples: $(ask 'samples');"
holds "any(s.endswith('/$(mark sort)') for s in samples)" || why+=' none in the sort;'
"$COZBPF" report --inline --width 400 "$profile" >report.out 2>report.err || why+=' no report;'
grep -qE "$(mark mix) in .*$(mark first)" report.out || why+=' nothing of the first copy;'
grep -qE "$(mark mix) in .*$(mark deeper) in .*$(mark second)" report.out || why+=' nothing of the second copy;'
"$COZBPF" report "$profile" >plain.out || why+=' no plain report;'
grep -q 'Inlined code' plain.out && why+=' copies unasked;'
"$COZBPF" report --json "$profile" | python3 -c '
import json, sys
lines = [line for point in json.load(sys.stdin)["points"] for line in point["lines"]]
copies = [copy for line in lines for copy in line["inlined"]]
assert copies and all(copy["samples"] > 0 and len(copy["lines"]) > 1 for copy in copies)' 2>json.err || why+=' none in the JSON;'
verdict 'a profile has the inlined copies of lines' "$why" report.out err json.err

# Sources named: what is inlined into them stays theirs.
why=
profiled -p progress -s 'inlined.cpp' --experiment 200 -- ./program 3 || why+=' it failed;'
holds "sum(n for s, n in samples.items() if s.endswith('/$(mark mix)')) > 0.3 * sum(samples.values())" || why+=" samples: $(ask 'samples');"
holds "all('/inlined.cpp:' in s for s in samples)" || why+=" samples in $(ask 'set(samples)');"
verdict 'inlined code stays with a source that is asked for' "$why" err
