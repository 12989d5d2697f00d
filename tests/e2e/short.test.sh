#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Programs that end soon: many short experiments, and starting them again.
# needs: root btf python3
# shellcheck disable=SC2154 # what helpers.sh sets
set -uo pipefail
# shellcheck source=tests/e2e/helpers.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/helpers.sh"
cd "$tmp" || exit 1

# Where a verdict is asked for, one thread: two leave no CPU to the profiler, whose work then disturbs
# experiments.
busy=("$BUILD/tests/truth/independent" --threads 1 --round 100)
both=("$BUILD/tests/truth/independent" --threads 2 --round 200)

# Half of the distance between the ends of the intervals at 50 %, points, of the best line.
half_width() {
	"$COZBPF" report --json "$profile" | python3 -c '
import json, sys
at = json.load(sys.stdin)["points"][0]["lines"][0]["curve"]["at"][1]
print(50 * (at["high"] - at["low"]) if at["low"] is not None else 1000)'
}

why=
for turn in 1 2 3; do
	why=''
	profiled -p progress -- "${both[@]}" --seconds "$(lasting 3.5)" || why+=" status $?;"
	holds 'len(experiments) >= 25' || why+=" $(ask 'len(experiments)') experiments;"
	holds 'min(x["elapsed"] for x in experiments[1:-1]) < 2e8' || why+=' none is short;'
	[ -n "$why" ] || break
done
verdict 'a program of seconds has many experiments' "$why" err

why=
profiled -p progress --experiment 500 -- "${busy[@]}" --seconds "$(lasting 2)" || why+=" status $?;"
holds 'all(x["elapsed"] > 4.5e8 for x in experiments[:-1])' || why+=' some are shorter than was asked for;'
verdict 'a length that is asked for is kept' "$why" err

why=
rm -f "$profile"
SECONDS=0
"$COZBPF" run --keep-root -q -o "$profile" --repeat auto --until-ci 12 -d 50 -p progress -- "${busy[@]}" --seconds "$(lasting 1.5)" >out 2>err </dev/null || why+=" status $?;"
elapsed=$SECONDS
grep -qE 'independent\.c:[0-9]+ .*helps' err || why+=' no verdict;'
runs=$(grep -c '^visits=' out)
[ "$runs" -ge 1 ] || why+=' it was never run;'
holds 'len(runs) >= '"$runs" || why+=" $(ask 'len(runs)') runs in the profile;"
[ "$(python3 -c "print($(half_width) <= 12.01)")" = True ] || [ "$elapsed" -ge 45 ] || why+=" +-$(half_width) points;"
verdict 'it is started again until enough is known' "$why" err out

why=
profiled --repeat 3 -p progress -- "${busy[@]}" --seconds "$(lasting 0.7)" || why+=" status $?;"
[ "$(grep -c '^visits=' out)" -eq 3 ] || why+=" $(grep -c '^visits=' out) runs;"
holds 'len(runs) == 3 and len(set(s["seed"] for s in runs)) == 3' || why+=' not three runs of their own;'
SECONDS=0
profiled --repeat auto -d 3 -p progress -- "${busy[@]}" --seconds "$(lasting 0.7)" || why+=" status $?;"
[ "$SECONDS" -le 20 ] || why+=" $SECONDS s for 3;"
profiled --repeat 5 -p main -- sh -c 'echo x >>runs; exit 3'
[ $? -eq 3 ] || why+=' its status is not that of the program;'
[ "$(wc -l <runs)" -eq 1 ] || why+=' a program that fails is started again;'
none_left || why+=' something is left;'
verdict 'so many runs, or so long' "$why" err out

why=
"$COZBPF" run --keep-root -q --width 400 -o hint.jsonl -p progress -- "${busy[@]}" --seconds 0.6 >out 2>err </dev/null
grep -q 'As often as it takes: cozbpf run --repeat auto --until-ci 5 --keep-root -q --width 400 -o hint.jsonl -p progress -- ' err || why+=' not said;'
for bad in '--repeat auto' '--repeat 0' '--repeat 2 -n 2'; do
	# shellcheck disable=SC2086 # words
	! "$COZBPF" run $bad -- true 2>>err || why+=" $bad is accepted;"
done
verdict 'a run that was too short says what to do' "$why" err out
