#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Programs that make it hard for `run` and `system` (attach.test.sh has them for `attach`), and cozbpf killed in the middle of `attach` and
# `system`: each run ends, in time, with a clear line or none, the program does what it would have done, and nothing is left behind.
# needs: root btf python3 strip
# beside: others, first
# shellcheck disable=SC2154 # what helpers.sh sets
set -uo pipefail
# shellcheck source=tests/e2e/helpers.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/helpers.sh"
cd "$tmp" || exit 1
limit=$(lasting 20)

# The kernel writes to a thread's rseq area, which is among what unmap gives up.
export GLIBC_TUNABLES=glibc.pthread.rseq=0
bpf_before=$(bpf_orphans)
[ -n "$bpf_before" ] || bpf_before=none

# The program of before has done what it was for.
finish() {
	kill -KILL "$victim"
	wait "$victim" 2>/dev/null
}

# cozbpf WHAT on ARGUMENT..., in the background: its process id in $job.
start() {
	rm -f -- "$profile"
	timeout -k 5 "$limit" "$COZBPF" "$@" >said 2>complaint </dev/null &
	job=$!
}
options=("${switched_off[@]}" -q --no-report -o "$profile" --experiment 100)

# The run of the background that writes $profile has begun, and some experiments of it are over.
begun() {
	await_line "$profile" '"experiment"' 15
}

# ended STATUS...: the run has to end with one of these, with one line at most, and leave nothing behind; the complaint in $why.
watched=()
ended() {
	local status wanted good=''
	wait "$job"
	status=$?
	for wanted; do
		[ "$status" -ne "$wanted" ] || good=1
	done
	why=''
	[ -n "$good" ] || why+=" it ended with status $status;"
	[ "$status" -ne 125 ] || [ -s complaint ] || why+=' no line says why;'
	[ "$(wc -l <complaint)" -le 1 ] || why+=' more than one line;'
	! grep -qvE '^cozbpf: ' complaint || why+=' a line that is not ours;'
	why+=$(left_over "${watched[@]}")
}

# Under `run` the program's own end is the run's; what the program prints is its own.
pays() { # the payer's option: a program that gives up what a handler stands in can be paid by the kernel alone
	start run "${options[@]}" --keep-root -p progress "$@"
}

pays --pay hold -- "$programs/hostile" unmap 1
watched=()
ended 0
verdict "run: unmaps everything" "$why" complaint said

cp "$programs/hostile" ./moving
pays -- ./moving steady 1.5
begun
mv ./moving ./moved
sleep 0.3
rm ./moved
watched=()
ended 0
grep -q '^batches [1-9]' said || why+=' it did not end as it should;'
holds "visits('progress') > 10" || why+=' its point was not seen;'
verdict "run: renames and removes its executable" "$why" complaint said

# The program asks for the descriptors, as the library does, and makes what it shares with us shorter than what we have mapped.
cat >cut.py <<'END'
import re, socket, time, os
name = re.findall(r"@(cozbpf-[0-9a-f]{16})\s", open("/proc/net/unix").read())
for each in name:
    asking = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    asking.connect("\0" + each)
    try:
        asking.send(b"d")
        answer, descriptors, *_ = socket.recv_fds(asking, 1, 3)
    except OSError:
        continue  # another run's: it turns us away
    for fd in descriptors[:2]:
        for how in (lambda: os.ftruncate(fd, 0), lambda: os.ftruncate(fd, 1 << 20), lambda: os.pwrite(descriptors[0], b"x", 0)):
            try:
                how()
                print("changed")
            except OSError:
                print("kept")
time.sleep(1)
END
start run "${options[@]}" --keep-root -- python3 cut.py
watched=()
ended 0
[ "$(grep -c kept said)" -eq 6 ] || why+=' the shared page or the library can be changed;'
verdict "run: cuts the shared page" "$why" complaint said

pays -- "$programs/hostile" exec 1
watched=()
ended 0
verdict "run: execs in a loop" "$why" complaint said

for pay in hold sleep; do
	pays --pay "$pay" -- "$programs/hostile" block 1
	watched=()
ended 0
	grep -q '^batches [1-9]' said || why+=' it did not end as it should;'
	verdict "run: blocks all signals, $pay" "$why" complaint said
done

# The payment signal would kill it, in whichever way one process or several are followed.
full=(--fixed-line "$(line_of hostile burn)" --fixed-speedup 100 --cool-off 0)
ways=('--pay sleep' '--pay spin --sync pthread --disable task_work')
[ "${FULL:-0}" -eq 0 ] || ways+=('--pay sleep --follow exec' '--pay sleep --sync pthread')
for how in "${ways[@]}"; do
	# shellcheck disable=SC2086 # the options
	pays $how "${full[@]}" -- "$programs/hostile" reset 1
	watched=()
	ended 0
	grep -q '^batches [1-9]' said || why+=' it did not end as it should;'
	verdict "run: resets all handlers, $how" "$why" complaint said
done

pays -- "$programs/hostile" steady 5
begun
pid=$(sed -n 's/^pid //p' said)
kill -STOP "$pid"
sleep 0.5
state=$(awk '{ print $3 }' "/proc/$pid/stat")
kill -CONT "$pid"
ended 0
[ "$state" = T ] || why+=' it was not stopped, or went on;'
grep -q '^batches [1-9]' said || why+=' it did not end as it should;'
verdict "run: is stopped and goes on" "$why" complaint said

start run "${switched_off[@]}" -q --no-report -o "$profile" --keep-root --fixed-line "$(line_of hostile burn)" --fixed-speedup 100 --experiment 300 -- \
	"$programs/hostile" steady 30
begun
kill -KILL "$(sed -n 's/^pid //p' said)"
watched=()
ended 137
verdict "run: dies in mid-payment" "$why" complaint said

# A name that would steer the terminal, by a C0 and a C1 control and a mark that turns the direction. Stripped: the table names it as well.
name=$'red\e[31m\302\23332m\342\200\256der'
strip -o "$name" -- "$programs/launch"
printf '#!%s/%s\n' "$tmp" "$name" >script
chmod +x script
why=''
"$COZBPF" check ./script >said 2>complaint
grep -qF 'red?[31m?32m?der' said || why+=' it does not name the interpreter;'
! LC_ALL=C grep -q -e $'\e' -e $'\302\233' -e $'\342\200\256' said complaint || why+=' what steers the terminal is printed;'
rm -- "$name"
verdict "check: a name with an escape sequence" "$why" said complaint

# --- system: scope by the name of the file that is run, or by process where that changes
scoped() { # RULE... : a short run
	start system "${options[@]}" -d 0.7 "$@"
}

"$programs/hostile" unmap 60 >unmap.out &
victim=$!
await_line unmap.out '^pid' 5
scoped --pid-tree "$victim"
if ! wait "$job" && grep -q 'task work' complaint; then
	printf 'skip system and attach: %s\n' "$(head -n 1 complaint)"
	exit 0
fi
scoped --pid-tree "$victim"
watched=("$victim")
ended 0 125
kill -0 "$victim" 2>/dev/null || why+=' the program has ended;'
verdict "system: unmaps everything" "$why" complaint
finish

cp "$programs/hostile" ./moving
./moving steady 60 >moving.out &
victim=$!
await_line moving.out '^pid' 5
scoped --exe "$tmp/moving" -p progress
begun
mv ./moving ./moved
watched=("$victim")
ended 0
holds "visits('progress') > 10" || why+=' its point was not seen;'
verdict "system: renames its executable" "$why" complaint
rm ./moved
scoped --pid-tree "$victim" -p progress
watched=("$victim")
ended 0
verdict "system: removed its executable" "$why" complaint
finish

"$programs/hostile" exec "$(lasting 3)" &
victim=$!
scoped --exe "$programs/hostile"
watched=()
ended 0
wait "$victim" || why+=" the program ended with status $?;"
verdict "system: execs in a loop" "$why" complaint

# Children that come faster than anyone can look: the run begins and ends all the same.
for how in attach system; do
	setsid "$programs/hostile" chain "$(lasting 60)" >chain.out &
	victim=$!
	await_line chain.out '^pid' 5
	if [ "$how" = attach ]; then
		start attach "$victim" "${options[@]}" -d 1
	else
		scoped --exe "$programs/hostile"
	fi
	watched=("$victim")
	ended 0
	# All at once, as a group: of those that are looked up one by one there is always one more.
	kill -KILL -- "-$victim"
	wait "$victim" 2>/dev/null
	verdict "$how: a chain of children" "$why" complaint
done

# More of them than the ledger has room for: those that it has room for are profiled.
"$programs/hostile" many "$(lasting 60)" >many.out &
victim=$!
await_line many.out '^born' 30
limit=$(lasting 60)
start attach "$victim" "${switched_off[@]}" -q --no-report -o "$profile" -d 1
watched=()
ended 0
limit=$(lasting 20)
expected='too many processes are in scope; at most 8192; the others are not profiled'
# With sanitizers the time for looks is over before.
[ "$(lasting 1)" = 1 ] || expected+='|processes fork faster than they are found'
grep -qE "$expected" complaint || why+=' nothing is said;'
kill -KILL "$victim"
wait "$victim" 2>/dev/null
verdict "attach: too many processes" "$why" complaint

"$programs/hostile" block "$(lasting 3)" >block.out &
victim=$!
await_line block.out '^pid' 5
scoped --pid-tree "$victim" -p progress
watched=("$victim")
ended 0
wait "$victim" || why+=" the program ended with status $?;"
verdict "system: blocks all signals" "$why" complaint

"$programs/hostile" steady 60 >steady.out &
victim=$!
await_line steady.out '^pid' 5
kill -STOP "$victim"
scoped --pid-tree "$victim" -p progress
watched=("$victim")
ended 0 125
[ "$(awk '{ print $3 }' "/proc/$victim/stat")" = T ] || why+=' it goes on;'
verdict "system: is stopped" "$why" complaint
kill -CONT "$victim"

# --- cozbpf is killed in an experiment at 100 %
ticks() { # of CPU time in half a second
	local before
	before=$(awk '{ print $14 + $15 }' "/proc/$victim/stat")
	sleep 0.5
	printf '%s' $(($(awk '{ print $14 + $15 }' "/proc/$victim/stat") - before))
}
gets_on() { # TICKS-BEFORE
	[ $(($(ticks) * 2)) -ge "$1" ]
}
full=(-q --no-report -o "$profile" --fixed-line "$(line_of hostile burn)" --fixed-speedup 100 --experiment 600000)

# killed NAME WHAT ARGUMENT...: not through timeout, which would be killed in its place.
killed() {
	local name=$1 native why=''
	shift
	native=$(ticks)
	rm -f -- "$profile"
	"$COZBPF" "$1" "${switched_off[@]}" "${full[@]}" "${@:2}" >said 2>complaint </dev/null &
	job=$!
	await_line "$profile" '"startup"' 15 || why+=' it does not begin;'
	sleep 0.5
	kill -KILL "$job"
	wait "$job" 2>/dev/null
	gets_on "$native" || gets_on "$native" || gets_on "$native" || why+=' the program does not get on;' # the machine may have other work for a moment
	why+="$(left_over "$victim")"
	kill -0 "$victim" || why+=' the program has ended;'
	verdict "$name" "$why" complaint
}
killed "attach: cozbpf is killed" attach "$victim"
killed "system: cozbpf is killed" system --pid-tree "$victim"

start system "${full[@]}" --pid-tree "$victim" --experiment 300 -d 2
begun
kill -KILL "$victim"
wait "$victim" 2>/dev/null
watched=()
ended 0 125
verdict "system: dies in mid-payment" "$why" complaint
none_left && why='' || why="$(left_behind)"
verdict "nothing is left behind" "$why"
