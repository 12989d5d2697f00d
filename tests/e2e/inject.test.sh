#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# A payment handler is put into processes that run already, pays as it should, and goes again without a trace: where the kernel cannot pause threads,
# and where it would hold those that should sleep.
# needs: root btf python3
# shellcheck disable=SC2154 # what helpers.sh sets
set -uo pipefail
# shellcheck source=tests/e2e/helpers.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/helpers.sh"
cd "$tmp" || exit 1
switched_off=(--disable task_work)

attached() { # ARGUMENT...
	rm -f -- "$profile"
	timeout -k 5 "$limit" "$COZBPF" attach --inject=always "${switched_off[@]}" -q --no-report -o "$profile" "$@" >said 2>complaint </dev/null
}

# What must be as it was: mappings of code and of files, handlers, descriptors. The kernel's own page of probes stays. Sockets do not count,
# of which no handler has any: eintr's connections come and go. One that is closed while find looks has no target.
facts() { # PID
	grep -E -- '-xp |rw-s ' "/proc/$1/maps" | grep -v '\[uprobes\]$'
	grep '^Sig[A-Z]' "/proc/$1/status" | grep -v '^SigQ'
	find "/proc/$1/fd" -mindepth 1 -printf '%f %l\n' | grep -Ev ' (socket:.*)?$' | sort -n
}

"$programs/steady" 120 >steady.out &
victim=$!
await_line steady.out '^at_ms' 5
facts "$victim" >before

refused() { # NAME PATTERN ARGUMENT...
	local name=$1 pattern=$2
	shift 2
	attached "$@"
	refusal "$name" "$pattern" $?
}
# With a point there is something that takes no pauses.
alone() {
	timeout -k 5 "$limit" "$COZBPF" attach "${switched_off[@]}" -q -o "$profile" "$victim" -p progress -d 2 >report 2>complaint || why+=" status $?;"
	grep -q 'cannot pause .*: slopes alone' complaint || why+=' it is not said;'
	grep -q '^Slopes of ' report || why+=' no slopes;'
	! grep -q '"type":"experiment"' "$profile" || why+=' experiments;'
}
tried alone
verdict 'slopes alone where nothing can be paused' "$why" complaint report
"$programs/caught" 30 >caught.out &
caught=$!
await_line caught.out '^ready$' 5
python3 -c 'import os, signal, time
signal.signal(signal.SIGRTMAX - 4, lambda *_: None)
open("uses", "w").write("ready\n")
time.sleep(60)' &
uses=$!
await_line uses ready 5
refused 'a program that uses the signal' '--signal' "$uses" -d 1
attached "$uses" --signal $(($(kill -l RTMAX) - 5)) -d 0.3 && why='' || why='another signal does not help'
verdict 'a program that uses the signal: another one' "$why" complaint
kill "$uses"
kill "$caught"

# Two threads compute and pass the point, one of them in the line: twice as fast, the line is worth a third of the time. A busy machine gets a
# second and a third chance.
measured() {
	local status
	attached "$victim" -p progress -d "$(lasting 3)" --experiment 50 --fixed-line "$(line_of steady burn)" --speedups 50 --zero-share 45
	status=$?
	why=''
	[ "$status" -eq 0 ] || why+=" status $status;"
	holds "abs($effect - 33.3) < 10" || why+=" a third, and it says $(ask "$effect") %;"
	[ -z "$why" ]
}
effect='(lambda t: round(100 * (1 - t(0.5) / t(0)), 1))(lambda s: sum(x["duration"] for x in experiments if x["speedup"] == s) / sum(x["points"]["progress"]["delta"] for x in experiments if x["speedup"] == s))'
measured || measured || measured
[ "$(wc -l <complaint)" -eq 1 ] && grep -q "no task work: injecting a payment handler into process $victim " complaint || why+=' not the one line about it;'
holds 'runs[0]["pay"] == "spin" and "injected" in runs[0]["fallback"]' || why+=' the file does not name the fallback;'
holds 'total("paid") > 0.8 * total("growth")' || why+=" paid $(ask 'total("paid")') of $(ask 'total("growth")');"
facts "$victim" | diff before - >difference || why+=' it is not as it was;'
verdict 'sign and size of an effect' "$why" complaint difference

# A program that replaces the injected handler by its own gets no payment signal.
python3 -c 'import os, signal, time
got = 0
def note(*_):
    global got
    got += 1
def compute(until):
    while not until():
        sum(range(10000))
open("own", "w").write("ready\n")
compute(lambda: os.path.exists("now"))
signal.signal(signal.SIGRTMAX - 4, note)
end = time.monotonic() + 2
compute(lambda: time.monotonic() > end)
print(got)' >own.out &
own=$!
await_line own ready 5
rm -f -- "$profile"
(
	await_line "$profile" '"startup"' 15
	sleep 0.5
	: >now
) &
attached "$victim,$own" -d 5 --experiment 200 --fixed-line "$(line_of steady burn)" --fixed-speedup 100 && why='' || why=" status $?;"
wait "$own"
[ "$(cat own.out)" = 0 ] || why+=" it got $(cat own.out) signals;"
holds 'total("paid") > 0' || why+=' nothing was paid;'
verdict 'a program that replaces the handler' "$why" complaint

# cozbpf is killed: at once nobody is delayed, and a little later nothing is left. What the machine does besides is not judged.
rate() {
	local from
	from=$(wc -l <steady.out)
	sleep 1
	tail -n "+$((from + 2))" steady.out | sed -n 's/.* batches=\([0-9]*\) .*/\1/p' | sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'
}
killed() {
	local job native slowed after _
	native=$(rate)
	rm -f -- "$profile"
	"$COZBPF" attach --inject=auto "${switched_off[@]}" -q --no-report -o "$profile" "$victim" --fixed-line "$(line_of steady burn)" --fixed-speedup 100 \
		--experiment 600000 >said 2>complaint </dev/null &
	job=$!
	await_line "$profile" '"startup"' 15
	sleep 0.5
	slowed=$(rate)
	kill -KILL "$job"
	wait "$job" 2>/dev/null
	after=$(rate)
	why=''
	[ $((slowed * 100)) -lt $((native * 75)) ] || why+=" not slowed before: $slowed, natively $native;"
	[ $((after * 100)) -ge $((native * 75)) ] || why+=" $after after the kill, natively $native;"
	for _ in {1..60}; do
		facts "$victim" | diff before - >difference && break
		sleep 0.1
	done
	[ -z "$why" ]
}
killed || killed || killed
[ ! -s difference ] || why+=' it is not as it was;'
verdict 'cozbpf is killed' "$why" complaint difference
kill "$victim"
wait "$victim" 2>/dev/null

# Again and again, under load.
wanted=2
[ "$FULL" -eq 0 ] || wanted=20
"$programs/output" 6000 >native.out 2>native.err
"$programs/eintr" 120 enough >eintr.out 2>&1 &
eintr=$!
"$programs/output" 6000 >out 2>err &
output=$!
await_line err '^note' 5
facts "$eintr" >before
why=''
: >difference
turns=0
while [ "$turns" -lt "$wanted" ] && [ -d "/proc/$eintr" ]; do
	both=$eintr
	[ ! -d "/proc/$output" ] || both+=,$output
	attached "$both" -d 0.2 --experiment 100 --fixed-line "$(line_of eintr burn)" --fixed-speedup 100
	status=$?
	if [ -d "/proc/$eintr" ]; then
		[ "$status" -eq 0 ] || grep -qE "no process $output|process $output .*ended" complaint || why+=" turn $turns: $(head -n 1 complaint);"
		facts "$eintr" 2>/dev/null | diff before - >>difference || [ ! -d "/proc/$eintr" ] || why+=" turn $turns: it is not as it was;"
	fi
	turns=$((turns + 1))
done
[ "$turns" -ge 2 ] || why+=" only $turns turns;"
: >enough
wait "$output" || why+=' output failed;'
wait "$eintr" || why+=' a system call was interrupted;'
cmp -s native.out out || why+=' stdout differs;'
cmp -s native.err err || why+=' stderr differs;'
verdict "attached $turns times under load" "$why" eintr.out complaint difference

# In a container numbers of threads are others, and /proc may be another's.
if unshare --pid --mount --fork --mount-proc true 2>/dev/null; then
	unshare --pid --mount --fork --mount-proc --kill-child "$programs/steady" 60 >contained.out 2>/dev/null &
	await_line contained.out '^at_ms' 5
	victim=$(pgrep -P $!)
	facts "$victim" >before
	measured || measured || measured
	holds 'total("paid") > 0.8 * total("growth")' || why+=" paid $(ask 'total("paid")') of $(ask 'total("growth")');"
	facts "$victim" | diff before - >difference || why+=' it is not as it was;'
	verdict 'a container' "$why" complaint difference
	kill -KILL "$victim" # the first process of its own
else
	printf 'skip a container: no PID namespace can be made here\n'
fi

# Where the kernel does have task work it holds threads, also for what they owe for having slept. That keeps a CPU from others that want it, so that
# nothing can be said; by a handler they sleep.
"$BUILD/tests/truth/bystander" >/dev/null &
victim=$!
line=bystander.c:$(grep -n 'LINE:a' "$SRC/tests/truth/programs/bystander.c" | cut -d: -f1)
sleep 0.3
facts "$victim" >before
beside() { # SECONDS COMMAND ARGUMENT...
	rm -f -- "$profile"
	timeout -k 5 "$limit" "$COZBPF" "$2" -q -o "$profile" -p "${point-progress}" -d "$1" --experiment 300 --fixed-line "$line" --speedups 50 \
		--zero-share 45 --width 400 --report report "${@:3}" >out 2>complaint </dev/null
}
slept() { # SECONDS COMMAND ARGUMENT...
	beside "$@" && why='' || why=" status $?;"
	holds 'total("held_asleep") < 0.1 * total("growth")' || why+=" held for $(ask 'total("held_asleep")') ns of $(ask 'total("growth")');"
	holds "abs($effect - 30) < 8" || why+=" 30 %, and it says $(ask "$effect") %;"
	! grep -qE 'not measurable|should have slept' report || why+=' the report warns;'
	[ -z "$why" ]
}
slept_by() { # NAME COMPLAINT SECONDS COMMAND ARGUMENT...
	local name=$1 pattern=$2
	shift 2
	slept "$@" || slept "$@" || slept "$@"
	[ -z "$pattern" ] || grep -qE "$pattern" complaint || why+=" no '$pattern';"
	[ -z "$victim" ] || facts "$victim" | diff before - >difference || why+=' it is not as it was;'
	verdict "$name" "$why" complaint difference report
}
if "$COZBPF" check 2>/dev/null | found -E '^task_work +ok'; then
	beside 2 attach "$victim" && why='' || why=" status $?;"
	holds 'total("held_asleep") > 0.3 * total("growth")' || why+=" held for $(ask 'total("held_asleep")') ns of $(ask 'total("growth")');"
	grep -qE "^$line .*-  +-  +-  +-  not measurable without --inject" report || why+=' the report tells what it cannot know;'
	grep -q "^With a handler: cozbpf attach .*$victim --inject=auto$" report || why+=' the report names no remedy;'
	holds 'runs[0]["inject"] == "never"' || why+=' the file does not say so;'
	verdict 'held sleepers are told of' "$why" complaint report
	slept_by 'sleepers sleep by --inject=always' '^cozbpf: injecting a payment handler into process' 3 attach "$victim" --inject=always
	slept_by 'sleepers sleep by --inject=auto' 'for [0-9]+ % of the time .*should have slept: injecting' 6 attach "$victim" --inject=auto
	point="progress=$BUILD/tests/truth/bystander:progress"
	slept_by 'sleepers sleep by system --inject=auto' 'should have slept: injecting .* processes in scope' 6 system --pid-tree "$victim" --inject=auto
	unset point
else
	printf 'skip --inject beside task work: this kernel has none\n'
fi
kill "$victim"
wait "$victim" 2>/dev/null

# A static executable, which takes no preloaded library: started by us, or by a program that we start.
if cc -O2 -g -static -pthread -I"$SRC" -o static "$SRC/tests/truth/programs/bystander.c" 2>complaint; then
	victim=''
	slept_by 'a static executable' '' 3 run -- ./static
	slept_by 'a static executable that a shell starts' '' 3 run -- sh -c './static; exit'
else
	verdict 'a static executable' ' it cannot be built;' complaint
fi

# A program that starts another one, over and over, the last of which forks: that gets the handler anew, its child inherits it. Hits are in
# the parent alone, so only the child pays.
chain=()
for _ in {1..15}; do
	chain+=("$programs/launch")
done
"${chain[@]}" "$programs/tree" fork 2 >tree.out &
victim=$!
why=''
attached "$victim" -p progress --fixed-speedup 100 --experiment 100 || why+=" status $?;"
wait "$victim" || why+=' it failed;'
python3 - "$profile" "$(line_of tree parent)" <<'PYTHON' >sums || why+=" $(cat sums);"
import json, sys
of = [x for x in map(json.loads, open(sys.argv[1])) if x.get("selected", "").endswith(sys.argv[2])]
grown, paid = sum(x["growth"] for x in of), sum(x["paid"] for x in of)
print(f"{len(of)} experiments, {paid} ns paid of {grown}")
sys.exit(not (grown > 1e8 and paid > 0.5 * grown))
PYTHON
verdict 'a program that starts another' "$why" complaint tree.out sums
none_left && why='' || why="$(left_behind)"
verdict 'nothing is left behind' "$why"
