#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# A profile or a report that cannot be written: the program goes on undisturbed, what was measured is reported, the exit status is 125, and one
# line says why.
# needs: root btf python3
# beside: others
# shellcheck disable=SC2154 # what helpers.sh sets
set -uo pipefail
# shellcheck source=tests/e2e/helpers.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/helpers.sh"
cd "$tmp" || exit 1

# Room for one page: the startup record and a few experiments.
mkdir small || exit 1
if ! mount -t tmpfs -o size=4k none small 2>/dev/null; then
	printf 'skip a full disk: no tmpfs can be mounted here\n'
else
	trap 'umount -l "$tmp/small" 2>/dev/null; clean_up' EXIT
	run_full=1
fi
profile=$tmp/small/profile.jsonl

# What a run on a full disk must have left, with at least so many experiments more in the report than in the file.
told() { # NAME STATUS MORE
	local name=$1 status=$2 why='' reported written
	[ "$status" -eq 125 ] || why+=" status $status;"
	[ "$(wc -l <err)" -eq 1 ] || why+=" $(wc -l <err) lines on stderr;"
	grep -q "cannot write .*profile.jsonl: No space left" err || why+=' it does not say why;'
	grep -qE '^[1-9][0-9]* experiments, ' report || why+=' no report;'
	reported=$(sed -n 's/^\([0-9]*\) experiments, .*/\1/p' report)
	written=$(grep -c '"type": *"experiment"' "$profile")
	[ "${reported:-0}" -ge $((written + $3)) ] || why+=" the report has $reported experiments, the file $written;"
	python3 -c 'import json, sys; [json.loads(x) for x in open(sys.argv[1])]' "$profile" 2>/dev/null || why+=' half a record is in the file;'
	[ -z "$(left_behind)" ] || none_left || why+=" left behind: $(left_behind);"
	verdict "$name" "$why" err
}

while_it_runs() {
	local why='' status
	timeout -k 5 "$limit" "$COZBPF" run "${switched_off[@]}" --keep-root -q --experiment 20 -p progress -o "$profile" --report report -- "$programs/steady" 2.5 >out 2>err
	status=$?
	told 'a disk that is full in the middle of a run' "$status" 10
	[ "$(grep -c '^at_ms=' out)" -eq 25 ] || why+=" $(grep -c '^at_ms=' out) of 25 lines of the program's;"
	verdict 'the program goes on when the disk is full' "$why" err
	rm -f "$profile"
}

repeated() {
	local status
	timeout -k 5 "$limit" "$COZBPF" run "${switched_off[@]}" --keep-root -q -n 12 -o "$profile" --report report -- "$programs/visits" 300 0.8 >out 2>err
	status=$?
	# It may be full at the record of the run's end, when its experiment is there.
	told 'a disk that is full after some of several runs' "$status" 0
	rm -f "$profile"
}

attached() {
	local status victim
	"$programs/steady" 30 >victim.out &
	victim=$!
	timeout -k 5 "$limit" "$COZBPF" attach "${switched_off[@]}" "$victim" -q --experiment 20 -d 2 -p progress -o "$profile" >report 2>err
	status=$?
	if grep -q 'task work' err; then
		printf 'skip attached, and a full disk: %s\n' "$(head -n 1 err)"
	else
		kill -0 "$victim" 2>/dev/null || status=0
		kill "$victim"
		wait "$victim" 2>/dev/null
		told 'a disk that is full while a process is attached to' "$status" 10
	fi
	kill "$victim" 2>/dev/null
	rm -f "$profile"
}

# What is said where standard output cannot be written to.
no_report() { # NAME STATUS
	local why=''
	[ "$2" -eq 125 ] || why+=" status $2;"
	[ "$(wc -l <err)" -eq 1 ] || why+=" $(wc -l <err) lines on stderr;"
	grep -q 'standard output: ' err || why+=' it does not say what failed;'
	verdict "$1" "$why" err
}
# The profile is whole where nobody can be told anything.
untold() { # NAME STATUS
	local why=''
	[ "$2" -eq 125 ] || why+=" status $2;"
	! grep -qv '^elapsed_ns=' out || why+=' something else than the program says is on standard output;'
	holds 'len(runs) == 1 and len(runtimes) == 1' || why+=' the profile is not whole;'
	verdict "$1" "$why" out
	rm -f "$profile"
}

standard_output() {
	profile=$tmp/whole.jsonl
	timeout -k 5 "$limit" "$COZBPF" run "${switched_off[@]}" --keep-root -q -o "$profile" -- "$programs/cpu" 1 2>/dev/full >out
	untold 'run: standard error is full' $?
	timeout -k 5 "$limit" "$COZBPF" run "${switched_off[@]}" --keep-root -q -o "$profile" -- "$programs/cpu" 1 >out 2>&-
	untold 'run: standard error is closed' $?
	timeout -k 5 "$limit" "$COZBPF" run "${switched_off[@]}" --keep-root -q -o "$profile" --report - -- "$programs/cpu" 1 >/dev/full 2>err
	no_report 'run: standard output is full' $?
	grep -q "cozbpf report $profile. prints it again" err && holds 'len(runtimes) == 1' || verdict 'a report that could not be printed can be' ' it is not said how' err
	timeout -k 5 "$limit" "$COZBPF" run "${switched_off[@]}" --keep-root -q -o "$profile" -- sh -c '[ ! -e /proc/self/fd/1 ]' 2>err >&-
	status=$?
	verdict 'the program finds standard output closed' "$([ "$status" -eq 0 ] || echo " status $status")" err
	for what in "list functions $programs/cpu" check --help 'report --help' --version "report --csv $SRC/tests/data/exact.jsonl" "report --markdown $SRC/tests/data/exact.jsonl" \
		"export --to trace $SRC/tests/data/exact.jsonl"; do
		# shellcheck disable=SC2086 # several words
		timeout -k 5 "$limit" "$COZBPF" $what >/dev/full 2>err
		no_report "$what: standard output is full" $?
	done
}

if [ -n "${run_full:-}" ]; then
	while_it_runs
	repeated
	attached
fi
standard_output
