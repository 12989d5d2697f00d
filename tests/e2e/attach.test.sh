#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Attaching to processes that run: what cannot be attached to is refused in one line, what can is left as it was, whatever it does.
# needs: root btf python3
# beside: others, first
# shellcheck disable=SC2154 # what helpers.sh sets
set -uo pipefail
# shellcheck source=tests/e2e/helpers.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/helpers.sh"
cd "$tmp" || exit 1

# attached WHAT ARGUMENT...: cozbpf attach or system on it; the return value is the exit status.
attached() {
	local what=$1
	shift
	rm -f -- "$profile"
	timeout -k 5 "$limit" "$COZBPF" "$what" "${switched_off[@]}" -q --no-report -o "$profile" "$@" >"$tmp/said" 2>"$tmp/complaint"
}

# The run of the background that writes $profile has begun, and half a second of it is over.
begun() {
	await_line "$profile" '"startup"' 15
	sleep 0.5
}

# refused NAME PATTERN WHAT ARGUMENT...: one line, status 125, no profile.
refused() {
	local name=$1 pattern=$2
	shift 2
	attached "$@"
	refusal "$name" "$pattern" $?
}

# Where task work is missing nothing can be attached to, and that is what is said.
"$programs/hostile" steady 60 >victim.out &
victim=$!
if ! attached attach "$victim" -d 0.3 && grep -q 'task work' complaint; then
	printf 'skip attach: %s\n' "$(head -n 1 complaint)"
	exit 0
fi

# --- what is refused
refused "no such process" 'no process 4194303' attach 4194303
refused "not a number" "'x1'" attach x1
refused "nothing named" 'PID' attach
refused "named twice" 'twice' attach "$victim,$victim"
refused "a thread" 'thread of' attach "$(ls "/proc/$victim/task" | tail -n 1)"
if grep -q '^2 (kthreadd)' /proc/2/stat 2>/dev/null; then
	refused "a kernel thread" 'kernel thread' attach 2
fi
sh -c 'sleep 0.1 & exec sleep 30' &
parent=$!
sleep 0.6
zombie=$(cat "/proc/$parent/task/$parent/children" 2>/dev/null | tr -d ' ')
if [ -n "$zombie" ]; then
	refused "a zombie" 'zombie' attach "$zombie"
else
	verdict "a zombie" "there is none to try"
fi
kill "$parent"
refused "a point that is nowhere" 'progres' attach "$victim" -p progres
refused "system without a rule" 'cgroup' system
refused "an empty scope" 'no process is in scope' system --comm hostil
grep -q hostile complaint && why='' || why='what is near is not named'
verdict "an empty scope: what is near" "$why" complaint
refused "no such group" 'no such control group' system --cgroup no/such.slice
refused "no such user" 'no-such-user' system --uid no-such-user
refused "no such file" 'no-such-file' system --exe /no-such-file
if command -v setpriv >/dev/null; then
	install -m 755 "$COZBPF" ./cozbpf-copy
	setpriv --reuid 65534 --regid 65534 --clear-groups ./cozbpf-copy attach "$victim" -o /dev/null >said 2>complaint
	status=$?
	why=''
	[ "$status" -eq 125 ] || why+=" status $status;"
	grep -qE 'belongs to|CAP_|root' complaint || why+=' no reason;'
	[ "$(wc -l <complaint)" -eq 1 ] || why+=' not one line;'
	verdict "another user's process" "$why" complaint
fi

# --- a profile, and the process afterwards
fds_before=$(ls "/proc/$victim/fd" | wc -l)
attached attach "$victim" -p progress -d 3 --experiment 100
status=$?
why=''
[ "$status" -eq 0 ] || why+=" status $status;"
holds "len(experiments) >= 5" || why+=" experiments: $(ask 'len(experiments)');"
holds "visits('progress') > 100" || why+=" visits: $(ask "visits('progress')");"
holds "any('hostile.c' in x['selected'] for x in experiments)" || why+=' no line of the program;'
"$COZBPF" report "$profile" | found "^of: $(tr '\0' ' ' <"/proc/$victim/cmdline" | sed 's/ $//')$" || why+=' it is not called after the program;'
[ "$(ls "/proc/$victim/fd" | wc -l)" -eq "$fds_before" ] || why+=' descriptors were left;'
! maps_of_ours "$victim" || why+=' mappings were left;'
verdict "a profile of a running process" "$why" complaint

# Ctrl-C lets go: the report is there, the process goes on.
rm -f -- "$profile"
"$COZBPF" attach "${switched_off[@]}" -q -o "$profile" "$victim" -p progress --experiment 100 >said 2>complaint &
job=$!
begun
sleep 0.5
kill -INT "$job"
wait "$job"
status=$?
why=''
[ "$status" -eq 0 ] || why+=" status $status;"
[ -s said ] || why+=' no report;'
kill -0 "$victim" || why+=' the process has ended;'
verdict "Ctrl-C lets go" "$why" complaint said

# cozbpf is killed: no process stays delayed, which its own rate tells.
rate() { # visits in half a second
	local before after
	before=$(awk '{ print $14 + $15 }' "/proc/$victim/stat")
	sleep 0.5
	after=$(awk '{ print $14 + $15 }' "/proc/$victim/stat")
	printf '%s' $((after - before))
}
gets_on() {
	[ $(($(rate) * 2)) -ge "$native" ]
}
native=$(rate)
rm -f -- "$profile"
"$COZBPF" attach "${switched_off[@]}" -q --no-report -o "$profile" "$victim" --fixed-line "$(line_of hostile burn)" --fixed-speedup 100 \
	--experiment 600000 >said 2>complaint &
job=$!
begun
kill -KILL "$job"
wait "$job" 2>/dev/null
sleep 0.3
why=''
kill -0 "$victim" || why+=' the process has ended;'
grep -q '^SigPnd:.*[1-9a-f]' "/proc/$victim/status" && why+=' a signal is pending;'
gets_on || gets_on || gets_on || why+=' it does not get on;' # the machine may have other work for a moment
verdict "cozbpf is killed" "$why" complaint

# --- again and again, under load: no EINTR, the same output, nothing left
"$programs/output" 12000 >native.out 2>native.err
"$programs/eintr" 120 enough >eintr.out 2>&1 &
eintr=$!
"$programs/output" 12000 >out 2>err &
output=$!
turns=0
sleep 0.3
why=''
# The last time with a probe, for which a run without a point is prepared as well: to remove one makes the kernel wait for all CPUs, which takes seconds when they are as busy as here.
both_run() {
	[ -d "/proc/$output" ] && [ -d "/proc/$eintr" ]
}
while both_run && [ "$turns" -lt 6 ]; do
	point=(-p syscall:nanosleep)
	[ "$turns" -lt 5 ] || point=(-p progress)
	attached attach "$eintr,$output" -d 0.2 --experiment 100 "${point[@]}" || {
		both_run && why+=" turn $turns: $(head -n 1 complaint);"
	}
	! maps_of_ours "$output" || why+=' mappings were left;'
	turns=$((turns + 1))
done
[ "$turns" -ge 2 ] || why+=" only $turns turns;"
: >enough
wait "$output" || why+=' output failed;'
wait "$eintr" || why+=' a system call was interrupted;'
cmp -s native.out out || why+=' stdout differs;'
cmp -s native.err err || why+=' stderr differs;'
verdict "attached $turns times under load" "$why" eintr.out

# --- targets that make it hard
kill "$victim"
wait "$victim" 2>/dev/null

# hard NAME PID PATTERN [OPTION]...: the run ends by itself, in time, with at most one line of complaint.
hard() {
	local name=$1 pid=$2 pattern=$3 why='' status
	shift 3
	attached attach "$pid" "$@"
	status=$?
	{ [ "$status" -eq 0 ] || [ "$status" -eq 125 ]; } || why+=" status $status;"
	[ "$status" -eq 0 ] || grep -qE -- "$pattern" complaint || why+=" no '$pattern';"
	[ "$(wc -l <complaint)" -le 1 ] || why+=' more than one line;'
	verdict "$name" "$why" complaint
}

# The kernel writes to a thread's rseq area, which is among what it gives up.
GLIBC_TUNABLES=glibc.pthread.rseq=0 "$programs/hostile" unmap 3 >unmap.out &
await_line unmap.out '^pid' 5
hard "unmaps everything" $! 'cannot|ended|executable' -d 1 --experiment 100
wait $!

cp "$programs/hostile" ./moving
./moving steady 60 >moving.out &
await_line moving.out '^pid' 5
mv ./moving ./moved
hard "renames its executable" $! 'never' -d 1 --experiment 100 -p progress
holds "visits('progress') > 10" && why='' || why='its point was not seen'
verdict "renames its executable: its point" "$why" complaint
rm -f ./moved
hard "removes its executable" $! 'never' -d 1 --experiment 100 -p progress
kill $!
wait $! 2>/dev/null

# The child is dead before the program begins, and stays unburied.
bash -c 'sleep 0 & exec "$@"' bash "$programs/hostile" steady 60 >unburied.out &
victim=$!
await_line unburied.out '^pid' 5
hard "has a child that is a zombie" "$victim" 'never' -d 1 --experiment 100 -p progress
kill "$victim"
wait "$victim" 2>/dev/null

"$programs/hostile" exec 4 &
sleep 0.2
hard "execs in a loop" $! 'ended' -d 1.5 --experiment 100
wait $! && why='' || why="it ended with status $?"
verdict "execs in a loop: it ends as it should" "$why"

"$programs/hostile" block 10 >block.out &
await_line block.out '^pid' 5
hard "blocks all signals" $! 'never' -d 1 --experiment 100 -p progress
wait $! && why='' || why="it ended with status $?"
verdict "blocks all signals: it ends as it should" "$why"

"$programs/hostile" steady 30 >stopped.out &
stopped=$!
await_line stopped.out '^pid' 5
kill -STOP "$stopped"
hard "is stopped" "$stopped" 'never' -d 1 --experiment 100 -p progress
[ "$(awk '{ print $3 }' "/proc/$stopped/stat")" = T ] && why='' || why='it goes on'
verdict "is stopped: it stays so" "$why"
kill -CONT "$stopped"
rm -f -- "$profile"
"$COZBPF" attach "${switched_off[@]}" -q --no-report -o "$profile" "$stopped" --fixed-line "$(line_of hostile burn)" --fixed-speedup 100 \
	--experiment 300 >said 2>complaint &
job=$!
begun
kill -KILL "$stopped"
wait "$job"
status=$?
wait "$stopped" 2>/dev/null || true
[ "$status" -eq 0 ] && why='' || why="status $status"
verdict "dies in mid-payment: the run ends with it" "$why" complaint
