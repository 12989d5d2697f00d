#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# A job that is stopped, as by Ctrl-Z: the experiment under way is none of the profile's, and those after it are.
# needs: root btf python3
# beside: others
# shellcheck disable=SC2154 # what helpers.sh sets
set -uo pipefail
# shellcheck source=tests/e2e/helpers.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/helpers.sh"
cd "$tmp" || exit 1

# No experiment is longer than it was asked to be, though the program stood still for a second and a half: 0.5 s, and what the machine's load adds.
judge() { # STATUS
	[ "$1" -eq 0 ] || why+=" exit status $1;"
	holds 'len(experiments) >= 3' || why+=" $(ask 'len(experiments)') experiments;"
	holds 'max(x["elapsed"] for x in experiments) < 1.4e9' || why+=" one of $(ask 'max(x["elapsed"] for x in experiments)') ns;"
	grep -qE '[0-9]+ experiments? w(as|ere) dropped: the program was stopped' err || why+=' nothing is said of it;'
	none_left || why+=' something is left;'
}

# In the middle of the second experiment: there is nothing to drop between two.
begun() {
	await_line "$profile" '"experiment"' 15
	sleep 0.2
}

# What a terminal sends, it sends to the whole process group, of which a test's cozbpf is not the first.
stopped() { # SIGNAL WHOM
	local job whom
	rm -f -- "$profile"
	setsid "$COZBPF" run "${switched_off[@]}" --keep-root --no-report --experiment 500 -p progress -o "$profile" -- "$programs/steady" "$(lasting 7.5)" >out 2>err &
	job=$!
	begun
	case $2 in
	job) whom=-$job ;;
	program) whom=$(pgrep -g "$job" -x steady) ;;
	profiler) whom=$(pgrep -g "$job" -x cozbpf | head -n 1) ;;
	esac
	kill "-$1" -- "$whom"
	sleep 1.5
	kill -CONT -- "$whom"
	wait "$job"
	judge $?
}

tried stopped STOP job
verdict 'the job is stopped by SIGSTOP' "$why" err
tried stopped STOP program
verdict 'the program alone is stopped' "$why" err
tried stopped TSTP profiler
verdict 'the profiler is told to stop, and hands it on' "$why" err

attached() {
	local job victim status
	"$programs/steady" "$(lasting 60)" >victim.out &
	victim=$!
	rm -f -- "$profile"
	"$COZBPF" attach "${switched_off[@]}" "$victim" --no-report --experiment 500 -p progress -d "$(lasting 5)" -o "$profile" >out 2>err &
	job=$!
	begun
	if grep -q 'task work' err; then
		unusable=$(head -n 1 err)
		kill "$victim"
		return
	fi
	kill -STOP "$victim"
	sleep 1.5
	kill -CONT "$victim"
	wait "$job"
	status=$?
	kill "$victim"
	wait "$victim"
	judge "$status"
}

unusable=
tried attached
if [ -n "$unusable" ]; then
	printf 'skip attached: %s\n' "$unusable"
else
	verdict 'a process that was attached to is stopped' "$why" err
fi
