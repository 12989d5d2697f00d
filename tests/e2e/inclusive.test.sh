#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# --attribution: a line that calls functions in scope has next to no share of its own, and with inclusive about all of what it calls: by
# arithmetic, from the lengths of the loops. What is counted is what is hit.
# needs: root btf python3 g++
# shellcheck disable=SC2154 # what helpers.sh sets
set -uo pipefail
directory=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd) || exit 1
# shellcheck source=tests/e2e/helpers.sh
source "$directory/helpers.sh"

# Percent of the samples that are in the line.
share() { # MARK
	local line
	line=$(line_of callers "$1")
	ask "round(100 * sum(n for s, n in samples.items() if s.endswith('/$line')) / sampled)"
}

near() { # MARK PERCENT
	local is
	is=$(share "$1")
	[ "$is" -ge $(($2 - 8)) ] && [ "$is" -le $(($2 + 8)) ] || printf ' %s has %s %% for %s;' "$1" "$is" "$2"
}

why=
profiled -p progress --attribution first -- "$programs/callers" 2.5 || why+=' it failed;'
holds 'runs[0]["attribution"] == "first" and sampled == sum(samples.values())' || why+=" recorded: $(ask 'runs[0].get("attribution")');"
why+=$(near leaf 60)$(near other 20)$(near bottom 20)$(near all 0)$(near leaf-call 0)$(near recursion 0)
[ -z "$why" ] || why+=" all: $(ask 'samples')"
verdict 'first: the innermost line has the samples' "$why" "$tmp/err"

why=
profiled -p progress --attribution inclusive --experiment 100 --fixed-line "$(line_of callers all)" -- "$programs/callers" 2.5 || why+=' it failed;'
holds 'runs[0]["attribution"] == "inclusive" and sampled < sum(samples.values())' || why+=" recorded: $(ask 'runs[0].get("attribution")');"
why+=$(near leaf 60)$(near leaf-call 60)$(near other-call 20)$(near recursion-call 20)$(near recursion 20)$(near all 100)
"$COZBPF" report --all "$profile" >"$tmp/report" || why+=' no report;'
grep -q 'Attribution is inclusive' "$tmp/report" || why+=' the report does not say so;'
"$COZBPF" report --json "$profile" >"$tmp/json" || why+=' no JSON;'
grep -q '"attribution":"inclusive"' "$tmp/json" || why+=' nor does its JSON;'
grep -qE 'callers.c:[0-9]+ +main +(8[5-9]|9[0-9]|100)' "$tmp/report" || why+=" no share of 100 % in the report, as near as above: $(grep 'callers.c:.*main' "$tmp/report")"
[ -z "$why" ] || why+=" all: $(ask 'samples')"
verdict 'inclusive: every line of the call chain has them, once' "$why" "$tmp/err" "$tmp/report"

# Hits: of the experiments' samples.
hits() { # RULE MARK
	profiled -p progress --attribution "$1" --fixed-line "$(line_of callers "$2")" --fixed-speedup 0 -- "$programs/callers" 2 || echo -1
	ask "round(100 * total('selected_samples') / max(1, total('samples')))"
}
why=
is=$(hits first leaf-call)
[ "$is" -le 3 ] && [ "$is" -ge 0 ] || why+=" first: $is %;"
is=$(hits inclusive leaf-call)
[ "$is" -ge 52 ] && [ "$is" -le 68 ] || why+=" inclusive: $is % for 60;"
is=$(hits inclusive recursion)
[ "$is" -ge 12 ] && [ "$is" -le 28 ] || why+=" recursion: $is % for 20;"
verdict 'hits are counted by the same rule' "$why" "$tmp/err"

# Where the compiler inlined the callee, its caller's line counts all the same. By the program first() and second() mix 20 and 40 times.
why=
inlined=$here/programs/inlined.cpp
mark() { # MARK
	grep -n "// LINE:$1\$" "$inlined" | cut -d : -f 1
}
of() { # MARK: percent of the samples
	ask "round(100 * sum(n for s, n in samples.items() if s.endswith('inlined.cpp:$(mark "$1")')) / sampled)"
}
g++ -O2 -g -std=c++17 -o "$tmp/inlined" "$inlined" 2>"$tmp/err" || why+=' it does not compile;'
profiled -p progress -- "$tmp/inlined" 2 || why+=' it failed;'
[ "$(of first)" -le 5 ] || why+=" first: $(of first) % of the samples are the caller's;"
profiled -p progress --attribution inclusive --fixed-line "inlined.cpp:$(mark second)" --fixed-speedup 0 -- "$tmp/inlined" 2.5 || why+=' it failed;'
mixed=$(of mix)
[ "$mixed" -ge 30 ] || why+=" only $mixed % mix;"
[ "$(of first)" -ge $((mixed / 3 - 8)) ] && [ "$(of first)" -le $((mixed / 3 + 8)) ] || why+=" $(of first) % for a third of $mixed;"
[ "$(of second)" -ge $((mixed * 2 / 3 - 8)) ] && [ "$(of second)" -le $((mixed * 2 / 3 + 8)) ] || why+=" $(of second) % for two thirds of $mixed;"
[ "$(of deeper)" -ge $((mixed * 2 / 3 - 8)) ] || why+=" $(of deeper) % in between;"
hit=$(ask "round(100 * total('selected_samples') / max(1, total('samples')))")
[ "$hit" -ge $((mixed * 2 / 3 - 8)) ] && [ "$hit" -le $((mixed * 2 / 3 + 8)) ] || why+=" $hit % hits for two thirds of $mixed;"
verdict 'inclusive: a line has what was inlined into it' "$why" "$tmp/err"
