#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Latency points count what the program says that it did: intervals by thread and by key, and what has no begin or no end. The report says
# so in both forms, and what is wrong on the command line is said in one line.
# needs: root btf python3
# shellcheck disable=SC2154 # what helpers.sh sets
set -uo pipefail
# shellcheck source=tests/e2e/helpers.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/helpers.sh"
cd "$tmp" || exit 1

# is POINT KEY WANTED: a complaint, or nothing
is() {
	[ "$(ask "visits('$1', '$2')")" = "$3" ] || printf ' %s of %s: %s, not %s;' "$2" "$1" "$(ask "visits('$1', '$2')")" "$3"
}

intervals() { # POINT
	ask "sum(n for x in experiments for n in x['points']['$1']['histogram128'].values())"
}

counted() { # PAY
	local why='' requests
	whole_run --pay "$1" --fixed-speedup 0 --latency "req=request_begin,$(line_of requests end)" \
		--latency 'job=job_begin,requests:job_end,key=arg2:arg1' -p progress=job_end -- "$programs/requests" 2000 0.7 || why+=' it failed;'
	requests=$(said requests)
	[ "$(intervals req)" = "$requests" ] || why+=" $(intervals req) intervals of $requests requests;"
	[ "$(intervals job)" = "$(said jobs)" ] || why+=" $(intervals job) intervals of $(said jobs) jobs;"
	why+=$(is req unmatched "$(said stray_ends)")
	# The last of those begun twice is the first request's begin.
	why+=$(is req unended "$(said begun_twice)")
	why+=$(is req departures $((requests + $(said stray_ends))))
	why+=$(is req arrivals $((requests + $(said begun_twice))))
	why+=$(is req in_flight_end 0)
	for key in lost crossed; do
		why+=$(is req $key 0)$(is job $key 0)
	done
	why+=$(is job unmatched 0)$(is job unended 0)$(is progress delta "$(said jobs)")
	holds "$(said inner_ns) <= visits('req', 'sum_ns') <= $(said outer_ns)" ||
		why+=" $(ask "visits('req', 'sum_ns')") ns in all, the program saw $(said inner_ns) to $(said outer_ns);"
	holds "set(experiments[0]['points']) == {'req', 'job', 'progress'}" || why+=" points: $(ask 'sorted(experiments[0]["points"])');"
	verdict "intervals are the program's, $1" "$why" out err
}

# Every kind of point can be an end: the return of a function, the begin and the end of a system call.
kinds() {
	local why=''
	whole_run --fixed-speedup 0 --latency 'serve=serve,serve%return' --latency 'nap=syscall:clock_nanosleep,syscall:clock_nanosleep%return' \
		-- "$programs/requests" 500 0.7 || why+=' it failed;'
	[ "$(intervals serve)" = "$(said requests)" ] || why+=" $(intervals serve) intervals of $(said requests) calls;"
	[ "$(intervals nap)" = "$(said naps)" ] || why+=" $(intervals nap) intervals of $(said naps) naps;"
	holds "visits('nap', 'sum_ns') >= 1e6 * $(said naps)" || why+=" naps of $(ask "visits('nap', 'sum_ns')") ns in all;"
	for point in serve nap; do
		why+=$(is $point unmatched 0)$(is $point unended 0)$(is $point lost 0)
	done
	verdict 'ends of other kinds' "$why" out err
}

# By thread, jobs match nothing: that is said, and how to mend it.
without_key() {
	local why=''
	whole_run --fixed-speedup 0 --latency job=job_begin,job_end -- "$programs/requests" 200 0.7 || why+=' it failed;'
	why+=$(is job unmatched "$(said jobs)")
	timeout 20 "$COZBPF" report "$profile" >report 2>err || why+=' the report fails;'
	grep -q 'they need a key: ,key=argN' report || why+=' the report does not say what is missing;'
	grep -q "$(said jobs) ends without a begin" report || why+=' the report does not say how many;'
	verdict 'intervals of several threads need a key' "$why" out err report
}

reported() {
	profiled --latency req=request_begin,request_end --experiment 100 --fixed-line "$(line_of requests burn)" --speedups 0,50 --zero-share 50 \
		-- "$programs/requests" 60000 0.001 || why+=' it failed;'
	timeout 20 "$COZBPF" report --width 120 --verbose "$profile" >report 2>err || why+=' the report fails;'
	grep -qE "^Latency point 'req': [0-9]+ intervals" report || why+=' no heading;'
	grep -qE '^At 0 %: mean .* p50 .* p90 .* p99 .* p99\.9 ' report || why+=' no percentiles;'
	grep -qE '^In flight: [0-9.]+\. Not timed: .* lost' report || why+=' no counts;'
	for word in p50 p90 p99 "Little's law"; do
		grep -qE "$word +.*[-0-9.]+ \+?.*[0-9.]" report || why+=" no effect on $word;"
	done
	timeout 20 "$COZBPF" report --json "$profile" >json 2>>err || why+=' the report in JSON fails;'
	python3 - json <<'END' || why+=' the report in JSON is not as it should be;'
import json, sys
point = json.load(open(sys.argv[1]))["points"][0]
line = point["lines"][0]
ns, cells = point["intervals"]["ns"], line["latency"]["cells"]
assert 0 < ns["p50"] <= ns["p90"] <= ns["p99"] and abs(ns["mean"] / ns["p50"] - 1) < 0.5, ns
assert [c["speedup"] for c in cells] == [0.5], cells
for name in ("mean", "p50", "p90", "p99", "little"):
    # The program settles first. If the report sees that the line runs during a part of the time only, it has no percentiles of the whole run.
    if name in ("p50", "p90", "p99") and line["presence_factor"] != 1:
        assert cells[0][name]["effect"] is None, cells[0]
        continue
    # What is under way is read twice an experiment: too rarely here, now and then, to agree with the timed mean.
    if name != "little" or cells[0][name]["effect"] is not None:
        assert cells[0][name]["low"] <= cells[0][name]["effect"] <= cells[0][name]["high"], cells[0]
    else:
        assert any(abs(x["little"] / x["mean"] - 1) > 0.1 for x in (ns, {n: cells[0][n]["ns"] for n in ("little", "mean")})), cells[0]
END
}

# refused NAME PATTERN OPTION...: one line that matches, status 125, no file, and the program did not run.
refused() {
	local name=$1 pattern=$2 why='' status
	shift 2
	profiled "$@" -- "$programs/requests" 10 0.1
	status=$?
	[ "$status" -eq 125 ] || why+=" status $status;"
	[ "$(wc -l <err)" -eq 1 ] || why+=' not one line on stderr;'
	grep -qE -- "$pattern" err || why+=" no line matches '$pattern';"
	[ ! -s out ] || why+=' the program ran;'
	[ ! -e "$profile" ] || why+=' a profile was left;'
	verdict "refused: $name" "$why" err
}

refused 'END is missing' "--latency 'req=request_begin': END is missing; allowed is NAME=BEGIN,END" --latency req=request_begin
refused 'no name' "begins with no name" --latency request_begin,request_end
refused 'unknown key' "'kye=arg1' is no key; allowed are key=argN" --latency req=request_begin,request_end,kye=arg1
refused 'no such argument' "'key=arg9' is no key; .* to arg6" --latency req=request_begin,request_end,key=arg9
refused 'BEGIN is not there' "--latency req, BEGIN: no function request_bgin in .*; did you mean request_begin" \
	--latency req=request_bgin,request_end
refused 'END is not there' "--latency req, END: no source file nosuch.c" --latency req=request_begin,nosuch.c:3
refused 'a malformed END' "--latency req, END 'requests.c:0': lines are numbered" --latency req=request_begin,requests.c:0
refused 'a key at a line' "is not the entry of one" --latency "req=request_begin,$(line_of requests end),key=arg1"
refused 'a key at a return' "is not the entry of one" --latency 'job=job_begin,job_end%return,key=arg1'
refused 'a key of a system call' "is not the entry of one" --latency 'job=syscall:read,syscall:write,key=arg1'
refused 'samples' "cannot be sampled:" --latency "req=sampled:$(line_of requests burn),request_end"
refused 'the same place twice' "the same place" --latency req=request_end,request_end
refused 'a name twice' "there is a point of this name" --latency req=request_begin,request_end -p req=request_end
usable_payers
for pay in "${payers[@]}"; do
	counted "$pay"
done
kinds
without_key
tried reported
verdict 'percentiles are in the report' "$why" report err
