#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Programs whose first thread has ended: /proc shows a zombie without memory, but the other threads are profiled and counted like those of any program.
# needs: root btf python3
# beside: others
# shellcheck disable=SC2154 # what helpers.sh sets
set -uo pipefail
# shellcheck source=tests/e2e/helpers.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/helpers.sh"
cd "$tmp" || exit 1
rounds=1250 visits=2500 length=6000

# One experiment, which counts, over all that the program does from the end of its standard input on. Of one that is cut to less than a tenth nothing is kept: a fast CPU needs a second for all.
attached() { # SECONDS OPTION...: until main ends
	local main=$1 status job
	shift
	rm -f -- "$profile" gate
	mkfifo gate
	"$programs/leaderless" "$rounds" 1 "$main" <gate >out &
	target=$!
	exec {open}>gate
	sleep 0.2
	timeout -k 5 "$limit" "$COZBPF" attach "$target" -q --no-report -o "$profile" --experiment "$length" -p progress "$@" \
		>said 2>complaint {open}>&- &
	job=$!
	await_line "$profile" '"startup"' 20
	sleep 0.5
	for _ in {1..100}; do
		[ "$(awk '{ print $3 }' "/proc/$target/stat")" != Z ] || break
		sleep 0.1
	done
	exec {open}>&-
	wait "$job"
	status=$?
	wait "$target"
	[ "$status" -eq 0 ] || why+=" status $status;"
	why+=$(counts "progress=$visits")
}

launched() {
	local job
	rm -f -- "$profile" gate
	mkfifo gate
	profiled --experiment "$length" -p progress -- "$programs/leaderless" "$rounds" 1 <gate &
	job=$!
	exec {open}>gate
	await_line "$profile" '"startup"' 20
	sleep 1.5
	exec {open}>&-
	wait "$job" || why+=' it failed;'
	why+=$(counts "progress=$visits")
}
why=''
tried launched
verdict 'run counts every visit' "$why" out err

for how in '0 ' '4 ' '0 --inject=always --disable task_work' '0 --disable uprobe_multi'; do
	why=''
	# shellcheck disable=SC2086 # several words
	tried attached $how
	verdict "attach counts every visit: main ends after $how" "$why" complaint
done

# A library that comes when the first thread has ended: what was asked for one process alone is not put into all.
plugin=$(echo "$programs"/*plugin.so)
rm -f -- "$profile" gate
mkfifo gate
"$programs/leaderless" 500 1 "$(lasting 4)" "$plugin" <gate >out &
target=$!
exec {open}>gate
timeout -k 5 "$limit" "$COZBPF" attach "$target" -q --no-report -o "$profile" --follow exec -p progress -p "$(basename "$plugin"):plugin_work" >said 2>complaint {open}>&- &
job=$!
await_line "$profile" '"startup"' 20
for _ in $(seq "$(lasting 100)"); do
	[ "$(awk '{ print $3 }' "/proc/$target/stat")" != Z ] || break
	sleep 0.1
done
exec {open}>&-
why=''
wait "$job" || why+=' it failed;'
wait "$target"
grep -q 'first thread of process .* has ended: probes would not be in it alone' complaint || why+=' no reason;'
! grep -q 'slows down all' complaint || why+=' the probe is in all processes;'
verdict 'attach: a library that comes later' "$why" complaint out

# What reads its memory maps, its executable, its user and its state in other ways.
"$programs/leaderless" 900000 0.1 </dev/null >out &
target=$!
for _ in {1..100}; do
	[ "$(awk '{ print $3 }' "/proc/$target/stat")" != Z ] || break
	sleep 0.1
done
sleep 0.3

by_rule() { # OPTION...
	rm -f -- "$profile"
	timeout -k 5 "$limit" "$COZBPF" system "$@" -q --no-report -o "$profile" -p progress -d 2 --experiment 100 >said 2>complaint ||
		why+=' it failed;'
	holds "visits('progress') > 0" || why+=' no visits;'
}
for scope in "--exe $programs/leaderless" '--comm leaderless' "--pid-tree $target"; do
	# shellcheck disable=SC2086 # several words
	tried by_rule $scope
	verdict "system ${scope%% *}" "$why" complaint
done

listed() {
	timeout -k 5 "$limit" "$COZBPF" list functions "$target" >said 2>complaint || why+=' it failed;'
	grep -qx burn said || why+=' no function;'
	# Probes could not be put into it alone.
	timeout -k 5 "$limit" "$COZBPF" list points --rates "$target" >said 2>complaint
	grep -q 'system calls alone: the first thread has ended' said complaint || why+=' not said that only system calls count;'
	grep -qE '^ +[0-9.]+  [a-z ]+ served$' said && why+=' a probe in all processes that run the file;'
}
tried listed
verdict 'list' "$why" said complaint

collected() {
	timeout -k 5 "$limit" "$COZBPF" collect --db db --rate 1000 -d 1s >said 2>complaint || why+=' it failed;'
	timeout -k 5 "$limit" "$COZBPF" top --db db --by line >said 2>>complaint || why+=' top: it failed;'
	grep -q 'leaderless.c:[0-9]' said || why+=' no line of it;'
	timeout -k 5 "$limit" "$COZBPF" annotate --db db --count 1s --pid "$target" burn >said 2>>complaint && why+=' annotate put probes into all processes that run the file;'
	grep -q 'probes could not be put into it alone' complaint || why+=' annotate: no reason;'
}
tried collected
verdict 'collect, annotate --count' "$why" said complaint

# A stopped process is seen to be stopped.
why=''
rm -f -- "$profile"
kill -STOP "$target"
timeout -k 5 "$limit" "$COZBPF" attach "$target" --no-report -o "$profile" -d 0.5 >said 2>complaint || why+=' it failed;'
holds 'not experiments' || why+=' experiments with a stopped process;'
kill -CONT "$target"
verdict 'a stopped process' "$why" complaint
kill "$target"
