#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# A run ends when it knows enough: with --duration the program is ended, too, else it runs on, undisturbed.
# needs: root btf python3
# shellcheck disable=SC2154 # what helpers.sh sets
set -uo pipefail
# shellcheck source=tests/e2e/helpers.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/helpers.sh"
cd "$tmp" || exit 1

pipeline=$BUILD/tests/truth/pipeline
line=pipeline.c:$(grep -n '/\* LINE:a \*/' "$SRC/tests/truth/programs/pipeline.c" | cut -d : -f 1)
options=(--fixed-line "$line" --speedups "0,50" --experiment 100 -p progress)

# Half-width at 50 %, in points, of the one line in the profile.
half_width() {
	"$COZBPF" report --json "$profile" | python3 -c '
import json, sys
at = json.load(sys.stdin)["points"][0]["lines"][0]["curve"]["at"][1]
print(50 * (at["high"] - at["low"]))'
}

run_on() {
	local half
	why=''
	profiled "${options[@]}" --until-ci 12 -- "$pipeline" --round 2000 --seconds 8 || why+=" status $?;"
	grep -q '^visits=' out || why+=' the program did not come to its end;'
	holds 'len(experiments) >= 12' || why+=" $(ask 'len(experiments)') experiments;"
	# Twelve points are known long before the program is done.
	holds 'experiments[-1]["began"] - experiments[0]["began"] < 0.8 * 8e9' || why+=' it went on to the end;'
	half=$(half_width)
	python3 -c "import sys; sys.exit(not $half <= 12.01)" || why+=" +-$half points;"
}

# How soon enough is known depends on what else the machine does: a noisy turn is repeated.
runs_on() {
	local why='' turn
	for turn in 1 2 3; do
		run_on
		[ -n "$why" ] || break
		printf '# turn %s:%s\n' "$turn" "$why"
	done
	verdict 'the program runs on when enough is known' "$why" err out
}

is_ended() {
	local why='' began=$SECONDS
	profiled "${options[@]}" --until-ci 12 -d 50 -- "$pipeline" --round 2000 --seconds 1000 || why+=" status $?;"
	[ $((SECONDS - began)) -lt 45 ] || why+=' it took all of its time;'
	! grep -q '^visits=' out || why+=' the program came to its end;'
	none_left || why+=' something is left;'
	verdict 'with --duration the program is ended when enough is known' "$why" err out
}

runs_on
is_ended
