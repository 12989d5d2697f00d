#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run --repeat of a program that has no point: slopes of whole runs.
# needs: root btf python3
# shellcheck disable=SC2154 # what helpers.sh sets
set -uo pipefail
# shellcheck source=tests/e2e/helpers.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/helpers.sh"
cd "$tmp" || exit 1

# The slope of the line of that mark in the report of the profile, in per cent; nothing where it has no row.
slope() { # PROGRAM MARK
	"$COZBPF" report --json "$profile" | python3 -c '
import json, sys
for line in json.load(sys.stdin)["points"][0]["lines"]:
    if line["selected"].endswith("/" + sys.argv[1]) or line["selected"] == sys.argv[1]:
        print(round(100 * line["slope"], 1))' "$(line_of "$1" "$2")"
}

# The run lasts as long as 120 units of one thread and then 80 of another, beside 40 of a third that nobody waits for: 60 and 40 per cent.
# On one CPU the other threads have to wait for the third, too.
whole_runs() {
	local alone longer shorter
	profiled --repeat 9 -- "$programs/ends" 120 80 || why+=" status $?;"
	[ "$(grep -c '^alone=' out)" -eq 9 ] || why+=" the program ran $(grep -c '^alone=' out) times;"
	holds 'len(runs) == 9 and len(experiments) == 0' || why+=" $(ask '(len(runs), len(experiments))') runs and experiments;"
	# The first run finds the lines.
	holds 'len([s for s in slopes if s["point"] == "end-to-end" and s["visits"] == 1]) == 8' || why+=" $(ask 'len(slopes)') windows;"
	alone=$(slope ends alone) longer=$(slope ends longer) shorter=$(slope ends shorter)
	python3 -c "a, l, s = ${alone:-0}, ${longer:-0}, ${shorter:-0}
exit(0 if a + l > 70 and 1.2 < a / l < 1.85 and s < l / 1.5 else 1)" || why+=" slopes $alone, $longer and $shorter;"
}
tried whole_runs
verdict 'slopes of whole runs' "$why" err

# What a shell starts, one after the other, is part of its run.
why=
# shellcheck disable=SC2016 # the inner shell's
profiled --repeat 4 -- sh -c '"$0" 300 20; "$0" 300 20' "$programs/ends" || why+=" status $?;"
holds 'len([s for s in slopes if s["visits"] == 1]) == 3' || why+=" $(ask 'len(slopes)') windows;"
python3 -c "exit(0 if ${x:=$(slope ends alone)} > 50 else 1)" || why+=" slope $x;"
verdict 'slopes of a run of several programs' "$why" err

# How long the runs took, and in what time they had to be done. The last one is not cut short.
times() {
	local report
	profiled --repeat auto -d 5 -- "$programs/ends" 60 60 || why+=" status $?;"
	holds 'len(runs) >= 2 and all("run_ns" in log for log in logs)' || why+=" $(ask '[log.get("run_ns") for log in logs]') ns;"
	holds 'all(0 < log["user_ns"] <= 2.5 * log["run_ns"] for log in logs)' || why+=" $(ask 'logs');"
	report=$("$COZBPF" report --json "$profile" | python3 -c '
import json, sys
t = json.load(sys.stdin)["run_time"]
print(t["runs"], t["min_ns"] <= t["mean_ns"] <= t["max_ns"])')
	[ "$report" = "$(ask 'len(runs)') True" ] || why+=" reported: $report;"
	"$COZBPF" report "$profile" | found '^Run time: .* of [0-9]* runs' || why+=' not in the report;'
}
why=
times
verdict 'how long runs took' "$why" err

# Slopes that are known end it: at least twelve windows.
why=
rm -f -- "$profile"
timeout -k 5 "$limit" "$COZBPF" run "${switched_off[@]}" --keep-root --status none --no-report -o "$profile" --repeat auto --until-ci 30 -d 40 -- "$programs/ends" 60 60 \
	>out 2>err || why+=" status $?;"
grep -q 'stopped: the top lines are known to +-30 points' err || why+=' it does not say why it stopped;'
holds '12 <= len(slopes) <= 30' || why+=" $(ask 'len(slopes)') windows;"
verdict 'enough is known of whole runs' "$why" err

# Runs that are not measured, and what comes before each of all.
why=
profiled --repeat 2 --warmup 3 --prepare 'echo secret; echo x >>prepared; cat' -- sh -c 'echo run; cat prepared' || why+=" status $?;"
[ "$(grep -c '^run' out)" -eq 5 ] || why+=" $(grep -c '^run' out) runs;"
[ "$(wc -l <prepared)" -eq 5 ] || why+=" $(wc -l <prepared) times prepared;"
holds 'len(runs) == 2' || why+=" $(ask 'len(runs)') runs are measured;"
! grep -q secret out err || why+=' what the command prints is shown;'
profiled --verbose --repeat 1 --prepare 'echo secret' -- true
grep -q secret err || why+=' what the command prints is not shown with --verbose;'
verdict 'runs that are not measured' "$why" out err

why=
profiled --repeat 2 --prepare 'echo secret >&2; printf "a\033b\n"; exit 7' -- echo run
status=$?
[ "$status" -eq 125 ] || why+=" status $status;"
grep -q "exit 7' failed: exit status 7" err || why+=' not said;'
{ grep -q '^  secret$' err && grep -q '^  a?b$' err; } || why+=' what it printed is not shown;'
! grep -q run out || why+=' the program ran;'
profiled --repeat 2 --warmup 1 --prepare true -- sh -c 'echo run; exit 4'
status=$?
[ "$status" -eq 4 ] || why+=" a warm-up that fails: status $status;"
[ "$(wc -l <out)" -eq 1 ] || why+=" $(wc -l <out) runs after a warm-up that failed;"
verdict 'what comes before a run fails' "$why" out err

# What a run reports, and what its file says.
same_report() { # NAME ARGUMENT...
	local why='' name=$1
	shift
	rm -f -- "$profile"
	timeout -k 5 "$limit" "$COZBPF" run "${switched_off[@]}" --keep-root -q --status none -o "$profile" "$@" >out 2>err || why+=" status $?;"
	grep -v '^cozbpf: ' err >of_run
	"$COZBPF" report "$profile" >of_file || why+=" report: status $?;"
	[ "$(wc -l <of_run)" -gt 8 ] || why+=' the run has no report;'
	diff of_run of_file >differences || why+=' they differ;'
	verdict "the report of a file is that of the run: $name" "$why" differences err
}
same_report 'one run' -p progress -d 3 -- "$BUILD/tests/truth/independent" --threads 1 --seconds 9
same_report 'repeated' --repeat 3 -p progress -- "$BUILD/tests/truth/independent" --threads 1 --seconds 1.5
same_report 'whole runs' --repeat 5 -- "$programs/ends" 60 60

# A status that is none of success ends it.
why=
profiled --repeat 3 -- sh -c 'echo run; exit 1'
status=$?
[ "$status" -eq 1 ] || why+=" status $status;"
[ "$(grep -c '^run' out)" -eq 1 ] || why+=" $(grep -c '^run' out) runs;"
grep -q '^cozbpf: sh ended with status 1 and is not started again' err || why+=' it is not said;'
verdict 'a program that fails is not started again' "$why" out err

# A counter of coz.h is a point, and then there are experiments.
why=
profiled --repeat 2 -- "$programs/coz_macros" 1 || why+=" status $?;"
holds 'len(experiments) > 0 and len(slopes) == 0' || why+=" $(ask '(len(experiments), len(slopes))') experiments and slopes;"
verdict 'a program with a point of its own is tried' "$why" err
