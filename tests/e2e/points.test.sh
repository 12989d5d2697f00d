#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Progress points count what the program says that it visited: functions, an offset in one, lines, also one that was inlined in several
# places, several at once. And what the options ask for is what the file says: line, speedups, seed. And the lists of names.
# needs: root btf python3
# beside: others
# shellcheck disable=SC2154 # what helpers.sh sets
set -uo pipefail
# shellcheck source=tests/e2e/helpers.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/helpers.sh"
cd "$tmp" || exit 1

exact() { # PAY
	local why='' line
	line=$(line_of visits bump)
	whole_run --pay "$1" --fixed-speedup 100 -p request -p entry=stepped -p inner=visits:stepped+4 -p "bump=$line" -p rare \
		-p plain=visits:request -- "$programs/visits" 1000 "$(lasting 0.7)" || why+=' it failed;'
	why+=$(counts "request=$(said request)" "plain=$(said request)" "entry=$(said stepped)" "inner=$(said stepped_inner)" \
		"bump=$(said bump)" rare=1)
	holds 'total("hits") > 0' || why+=' no hit in the line;'
	verdict "several points count exactly, $1" "$why" out err
}

alone() {
	local where wanted why
	for where in request:request visits:stepped+4:stepped_inner "$(line_of visits bump):bump" bump:bump; do
		why=''
		wanted=${where##*:}
		whole_run --fixed-speedup 0 -p "it=${where%:*}" -- "$programs/visits" 1500 "$(lasting 0.7)" || why+=' it failed;'
		why+=$(counts "it=$(said "$wanted")")
		verdict "one point counts exactly: ${where%:*}" "$why" out err
	done
	# A name that nobody gave is the point as written.
	why=''
	whole_run -p request -p "$(line_of visits bump)" -- "$programs/visits" 200 "$(lasting 0.7)" || why+=' it failed;'
	why+=$(counts "request=$(said request)" "$(line_of visits bump)=$(said bump)")
	verdict 'points are named as they are written' "$why" out err
}

# Where the kernel cannot place a probe, a point either counts all the same or is refused: a point that counts nothing, silently, is
# worse than none.
unprobeable() { # WHERE
	local why='' status
	whole_run --fixed-speedup 0 -p "it=$1" -- "$programs/visits" 300 "$(lasting 0.7)"
	status=$?
	if [ "$status" -eq 125 ]; then
		[ "$(wc -l <err)" -eq 1 ] || why+=' not one line on stderr;'
		[ ! -e "$profile" ] || why+=' a profile was left;'
		[ ! -s out ] || why+=' the program ran;'
	else
		[ "$status" -eq 0 ] || why+=" status $status;"
		why+=$(counts "it=$(said locked)")
	fi
	verdict "a point on an atomic instruction counts or is refused: $1" "$why" err
}

# First and last visit of what was timed lie in the experiment, in order.
timed() {
	local why=''
	whole_run -p request --fixed-speedup 50 -- "$programs/visits" 1000 "$(lasting 0.7)" || why+=' it failed;'
	holds 'all(0 <= p["first_ns"] < p["last_ns"] <= x["elapsed"] and 0 < p["effective_ns"] <= p["last_ns"] - p["first_ns"] for x in experiments for p in [x["points"]["request"]])' ||
		why+=' times of the visits are out of order;'
	verdict 'visits are timed' "$why" out err
}

options_in_file() {
	local why='' line
	line=$(line_of visits burn)
	profiled -p burn --fixed-line "$line" --fixed-speedup 35 --experiment 50 -- "$programs/visits" 2000 1 || why+=' it failed;'
	holds 'len(experiments) > 3 and all(x["speedup"] == 0.35 for x in experiments)' || why+=' another speedup than 35 %;'
	holds "all(x['selected'].endswith('/$line') or x['selected'] == '$line' for x in experiments)" || why+=' another line;'
	holds 'all(x["function"] == "burn" for x in experiments)' || why+=' another function;'
	verdict 'the fixed line and speedup are the only ones' "$why" err

	why=''
	profiled -p burn --speedups 0,25,50 --experiment 20 --cool-off 0 --zero-share 50 -- "$programs/visits" 2000 2 || why+=' it failed;'
	holds '{x["speedup"] for x in experiments} == {0, 0.25, 0.5}' || why+=" speedups $(ask '{x["speedup"] for x in experiments}');"
	verdict 'speedups are drawn from the list' "$why" err

	why=''
	profiled -p request --granularity function --experiment 20 -- "$programs/visits" 2000 || why+=' it failed;'
	holds '{x["selected"] for x in experiments} <= {"burn", "settle", "body", "request", "stepped", "one_copy", "two_copy", "three_copy", "main"}' ||
		why+=" selected: $(ask '{x["selected"] for x in experiments}');"
	holds '"burn" in {x["selected"] for x in experiments} and runs[0]["granularity"] == "function"' || why+=' not by function;'
	verdict 'functions instead of lines' "$why" err

	why=''
	profiled -p request --rate 500 -- "$programs/visits" 500 || why+=' it failed;'
	holds '1.9e6 < runs[0]["period_ns"] < 2.1e6' || why+=" a period of $(ask 'runs[0]["period_ns"]') ns;"
	verdict 'the rate is the one asked for' "$why" err
}

# The order of speedups is the seed's; how many experiments a run has is not.
speedups_in_order() {
	ask '[x["speedup"] for x in experiments][:12]'
}

seeded() {
	local why='' first second third options
	# Of a point without visits the next experiments are longer; burn is visited all the time.
	options=(-p burn --fixed-line "$(line_of visits burn)" --experiment 50 --cool-off 0)
	profiled "${options[@]}" -- "$programs/visits" 2000 2 || why+=' it failed;'
	first=$(speedups_in_order)
	seed=$(ask 'runs[0]["seed"]')
	profiled "${options[@]}" --seed "$seed" -- "$programs/visits" 2000 2 || why+=' it failed;'
	second=$(speedups_in_order)
	holds "runs[0]['seed'] == $seed" || why+=' the seed in the file is another one;'
	profiled "${options[@]}" --seed 1 -- "$programs/visits" 2000 2 || why+=' it failed;'
	third=$(speedups_in_order)
	holds 'len(experiments) >= 12' || why+=' too few experiments;'
	[ "$first" = "$second" ] || why+=" drawn: $first, repeated: $second;"
	[ "$first" != "$third" ] || why+=' another seed draws the same;'
	verdict 'the recorded seed repeats the draws' "$why" err
}

lists() {
	local why='' line copies
	line=$(line_of visits bump)
	timeout 20 "$COZBPF" list lines "$programs/visits" >lines 2>err </dev/null || why+=' lines: it failed;'
	timeout 20 "$COZBPF" list functions "$programs/visits" >functions 2>>err </dev/null || why+=' functions: it failed;'
	grep -qE "(^|/)$line\$" lines || why+=" $line is not listed;"
	copies=$(grep -cE "(^|/)$line\$" lines)
	[ "$copies" -eq 1 ] || why+=" $line is listed $copies times;"
	for name in request rare one_copy stepped main; do
		grep -qx "$name" functions || why+=" $name is not listed;"
	done
	grep -qx bump functions && why+=' bump has no symbol, but is listed;'
	timeout 20 "$COZBPF" list functions "$programs/visits" '*_copy' >functions 2>>err </dev/null
	[ "$(sort functions | tr '\n' ' ')" = 'one_copy three_copy two_copy ' ] || why+=' the pattern chooses others;'
	timeout 20 "$COZBPF" list lines "$programs/visits" helper.h >lines 2>>err </dev/null
	[ -s lines ] && ! grep -qv 'helper\.h:[0-9]*$' lines || why+=' the pattern for files chooses others;'
	[ ! -s err ] || why+=' something on stderr;'
	verdict 'lists of lines and functions' "$why" err lines functions
	# A name from the list is one that is accepted.
	why=''
	timeout 20 "$COZBPF" list lines "$programs/visits" visits.c >lines 2>err </dev/null
	whole_run -p "x=$(grep -E "(^|/)$line\$" lines)" -- "$programs/visits" 200 "$(lasting 0.7)" || why+=' it failed;'
	why+=$(counts "x=$(said bump)")
	verdict 'a listed line is a point' "$why" err
}

usable_payers
for pay in "${payers[@]}"; do
	exact "$pay"
done
alone
unprobeable locked
unprobeable "$(line_of visits locked)"
timed
options_in_file
seeded
lists
