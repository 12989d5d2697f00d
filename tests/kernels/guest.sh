#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# What runs in a guest: tries every feature for what it does, not for how exactly. guest.sh quick|features|options|bpf|refused
# (options: as features, but loading is left out, since the kernel is one that another guest has loaded everything on). Of each feature it prints
# "@@ begin NAME" and, after it, one of
#   @@ ok NAME
#   @@ refused NAME: REASON      cozbpf said in one line that this kernel cannot do it, and check says the same
#   @@ failed NAME: WHAT         followed by lines of output that begin with "# "
# shellcheck disable=SC2154 # what helpers.sh sets
set -uo pipefail
# shellcheck source=tests/e2e/helpers.sh
source "$SRC/tests/e2e/helpers.sh"
cd "$tmp" || exit 1
limit=180
what=$1

# What the kernel complained of before anything of ours ran does not count.
dmesg >dmesg.before

# Tries one: the function leaves a complaint in $why, or in $refused the reason for which the kernel cannot.
feature() { # NAME FUNCTION ARGUMENT...
	local name=$1
	shift
	why=''
	refused=''
	rm -f -- "$profile" out err report complaint
	: >out
	: >err
	printf '@@ begin %s\n' "$name"
	"$@"
	if [ -n "$why" ]; then
		printf '@@ failed %s:%s\n' "$name" "$why"
		for file in err out report complaint; do
			[ ! -s "$file" ] || tail -n 25 -- "$file" | sed "s|^|# ${file##*/}: |"
		done
	elif [ -n "$refused" ]; then
		printf '@@ refused %s: %s\n' "$name" "$refused"
	else
		printf '@@ ok %s\n' "$name"
	fi
}

# Does check say that the kernel lacks this?
lacks() { # FEATURE
	! grep -qE "^$1 +ok" checked
}

# The command failed. That is a refusal if it says why in one line, with the status for it, and check says so of the feature that it names.
refusal_or() { # STATUS FILE FEATURE PATTERN
	if [ "$1" -eq 125 ] && lacks "$3" && [ "$(wc -l <"$2")" -eq 1 ] && grep -qE -- "$4" "$2"; then
		# Without directories, which are the build's.
		refused=$(sed 's/^cozbpf: //; s|/[^ ]*/||g' "$2")
		return
	fi
	why+=" status $1;"
}

check() {
	"$COZBPF" check --color never >checked 2>err || why+=" status $?;"
	cp checked out
	grep -q '^A run is possible' checked || why+=' no run is possible;'
}

# Quickly: what a run loads on this kernel, not what it would load on an older one.
load_all() {
	local which=(--pairs)
	[ "$what" != quick ] || which=(--one-each loads_without_newer_features)
	CMOCKA_MESSAGE_OUTPUT=TAP timeout 1200 "$BUILD/tests/bpf/load_test" "${which[@]}" >out 2>err || why=" status $?;"
	! grep -q '^ok' out && why+=' no test passed;'
}

# All are skipped where the kernel cannot do what they are for.
none_passed() {
	if lacks task_work && ! grep -v '# SKIP' out | found '^not ok' && grep -q '^skipped: ' out; then
		refused="$(sed -n 's/^skipped: //p' out | head -n 1)"
	else
		why+=' no test passed;'
	fi
}

# A program of the bpf tests. How exactly it measures is judged as everywhere; a machine that is emulated gets three chances.
bpf_test() { # NAME
	local turn
	for turn in 1 2 3; do
		why=''
		CMOCKA_MESSAGE_OUTPUT=TAP timeout 600 "$BUILD/tests/bpf/$1" >out 2>err || why=" status $?;"
		grep -q '^ok' out || none_passed
		[ -n "$why" ] || return 0
	done
}

# Two threads compute, one of them in the line; the other one pays for it.
runs() { # FEATURE PATTERN OPTION...
	local lacking=$1 pattern=$2 status
	shift 2
	profiled "$@" -p progress --fixed-line "$(line_of steady burn)" --fixed-speedup 50 --experiment 200 -- "$programs/steady" 3 </dev/null
	status=$?
	if [ "$status" -ne 0 ]; then
		refusal_or "$status" err "$lacking" "$pattern"
		return
	fi
	holds 'len(experiments) >= 5' || why+=" $(ask 'len(experiments)') experiments;"
	holds "visits('progress') > 0.5 * $(awk -F '[= ]' '{ n += $4 } END { print n + 0 }' out) > 0" || why+=" $(ask "visits('progress')") visits;"
	holds "total('hits') > 0" || why+=' no hit;'
	holds "total('paid') > 0.3 * total('growth') > 0" || why+=" paid $(ask "total('paid')") of $(ask "total('growth')") ns;"
	holds 'all(x["imbalance"] == 0 for x in experiments)' || why+=" imbalance $(ask '[x["imbalance"] for x in experiments]');"
	[ ! -s err ] || why+=' something on stderr;'
}

# Sampling chooses the lines, the report names them.
short_run() {
	rm -f -- "$profile"
	timeout "$limit" "$COZBPF" run --keep-root -q --report report -o "$profile" -p progress --experiment 100 -- "$programs/steady" 3 >out 2>err </dev/null ||
		why+=" status $?;"
	grep -q 'steady\.c:[0-9]' report || why+=' no line of the program in the report;'
	holds "visits('progress') > 0" || why+=' no visits;'
	holds 'len(experiments) >= 5' || why+=" $(ask 'len(experiments)') experiments;"
	timeout "$limit" "$COZBPF" report --json "$profile" >out 2>>err && python3 -m json.tool out >/dev/null || why+=' report --json failed;'
	[ ! -s err ] || why+=' something on stderr;'
}

# It finds a point.
no_point() {
	rm -f -- "$profile"
	timeout "$limit" "$COZBPF" run --keep-root --status none --report report -o "$profile" -d 6 -- "$programs/answers" 1000 >out 2>err </dev/null ||
		why+=" status $?;"
	grep -q '^cozbpf: no -p: counting syscall:sendto (' err && [ "$(wc -l <err)" -eq 1 ] || why+=' it is not said that one was found;'
	holds "visits('syscall:sendto') > 0" || why+=' no visits;'
}

# Of two threads that take turns each has its part of a round, 60 and 40 %, in the profile of a run, of attach and of system. What an interval of the
# one is made of is its line.
slopes() {
	local command=("$BUILD/tests/truth/handover" --round 5000 --share-a 60 --kind mutex --window 1) options=(-q --no-report --slopes-only -o "$profile") way status
	for way in run attach system; do
		rm -f -- "$profile"
		if [ "$way" = run ]; then
			timeout "$limit" "$COZBPF" run "${options[@]}" -p progress --latency step=work_a,work_a%return -- "${command[@]}" --seconds 4 >out 2>err </dev/null
			status=$?
		else
			"${command[@]}" --seconds 600 >/dev/null &
			local -a whom=("$!")
			[ "$way" = attach ] || whom=(--exe "${command[0]}")
			timeout "$limit" "$COZBPF" "$way" "${whom[@]}" "${options[@]}" -p "progress=${command[0]}:progress" -d 4 >out 2>err </dev/null
			status=$?
			kill $!
			wait $! 2>/dev/null
		fi
		[ "$status" -eq 0 ] || why+=" $way: status $status;"
		[ ! -s err ] || why+=" $way: something on stderr;"
		"$COZBPF" report --json "$profile" 2>>err | python3 -c '
import json, sys
report = json.load(sys.stdin)
slopes = {line["selected"].split(":")[-1]: line["slope"] for line in report["points"][0]["lines"]}
a, b = (slopes.get(number, 0) for number in sys.argv[1:])
print(report["experiments"], slopes)
sys.exit(not (report["experiments"] == 0 and a > 0.2 and 1.1 < a / b < 2))' \
			"$(line_in_handover a)" "$(line_in_handover b)" >>out 2>>err || why+=" $way: other slopes;"
		[ "$way" != run ] || python3 -c '
import json, sys
made = whole = 0
for record in map(json.loads, open(sys.argv[1])):
    if record["type"] == "slopes" and "class" in record:
        whole += record["time_ns"] - record["own_ns"]
        made += sum(int(p.split("\t")[0]) for p in record["places"].splitlines() if p.endswith(f":{sys.argv[2]}"))
print("of intervals", made, whole)
sys.exit(not (whole and 0.6 < made / whole < 1.4))' "$profile" "$(line_in_handover a)" >>out 2>>err || why+=' run: not what intervals are made of;'
	done
}

# In a PID namespace of its own the kernel's numbers are others than those that a run knows.
# shellcheck disable=SC2016 # for the shell in the namespace
container() {
	local own=(unshare --pid --fork --kill-child --mount --propagation unchanged sh -c 'mount --make-rprivate /proc && mount -t proc proc /proc && exec "$@"' sh)
	timeout "$limit" "${own[@]}" "$COZBPF" run --keep-root -q --no-report -o "$profile" -p progress --fixed-line "$(line_of steady burn)" --fixed-speedup 50 \
		--experiment 200 -- "$programs/steady" 3 >out 2>err </dev/null || why+=" status $?;"
	holds "visits('progress') > 0.5 * $(awk -F '[= ]' '{ n += $4 } END { print n + 0 }' out) > 0" || why+=" $(ask "visits('progress')") visits;"
	holds "total('paid') > 0.3 * total('growth') > 0" || why+=" paid $(ask "total('paid')") of $(ask "total('growth')") ns;"
	holds 'all(x["imbalance"] == 0 for x in experiments)' || why+=" imbalance $(ask '[x["imbalance"] for x in experiments]');"
	"$programs/steady" 60 >/dev/null &
	timeout "$limit" "${own[@]}" sh -c '"$2" 60 >/dev/null & "$1" system --exe "$2" -p "progress=$2:progress" -q --no-report --inject=auto -d 3 --experiment 100 \
		-o "$3"; status=$?; kill $!; exit $status' sh "$COZBPF" "$programs/steady" "$profile" >out 2>err </dev/null || why+=" system: status $?;"
	kill $!
	wait $! 2>/dev/null
}

# What README advises to users, without CAP_SYS_ADMIN: root with three capabilities and those by which it gives up its rights, as containers leave them,
# and another user with a binary that has the three. Levels above 2 are not mainline's: then a refusal has to name the level, and check has to agree.
capabilities() { # LEVEL...
	local level who status
	cp "$COZBPF" with
	python3 -c 'import os, struct; os.setxattr("with", "security.capability", struct.pack("<5I", 0x02000001, 1 << 19, 0, 3 << 6, 0))'
	mkdir -p -m 777 theirs
	for level; do
		echo "$level" >/proc/sys/kernel/perf_event_paranoid
		for who in root user; do
			local -a as=(setpriv --bounding-set='-all,+bpf,+perfmon,+sys_ptrace,+setuid,+setgid' --inh-caps=-all "$COZBPF")
			[ "$who" = root ] || as=(setpriv --reuid 65534 --regid 65534 --clear-groups ./with)
			rm -f theirs/*
			timeout "$limit" "${as[@]}" check --color never >checked_too 2>&1
			status=$?
			timeout "$limit" "${as[@]}" run -q --no-report -o theirs/profile -p progress --fixed-line "$(line_of steady burn)" --fixed-speedup 50 \
				--experiment 200 -- "$programs/steady" 2 >out 2>err </dev/null
			[ "$?" -eq "$status" ] || why+=" $who at $level: check says $status;"
			if [ "$status" -eq 0 ]; then
				grep -q '"type":"experiment"' theirs/profile || why+=" $who at $level: no experiment;"
				[ ! -s err ] || why+=" $who at $level: something on stderr;"
			elif [ "$level" -gt 2 ] && [ "$(wc -l <err)" -eq 1 ] && grep -q "kernel.perf_event_paranoid is $level,.*sysctl -w" err; then
				grep -q "A run is not possible: kernel.perf_event_paranoid is $level" checked_too || why+=" $who at $level: check does not say it;"
				refused="above 2 kernel.perf_event_paranoid asks for CAP_SYS_ADMIN"
			elif lacks uprobe_multi && [ "$(wc -l <err)" -eq 1 ] && grep -q CAP_SYS_ADMIN err; then
				tr -s '\n ' ' ' <checked_too | grep -q 'A run is not possible: before Linux 6.10 .*CAP_SYS_ADMIN' ||
					why+=" $who at $level: check does not say it;"
				refused="before Linux 6.10 the kernel takes probes from CAP_SYS_ADMIN alone"
			else
				why+=" $who at $level: status $status;"
				sed 's/^/check: /' checked_too >>err
			fi
			[ -z "$why" ] || break 2
		done
	done
	echo 2 >/proc/sys/kernel/perf_event_paranoid
	rm -f with
}

# Samples of the whole machine, with the build and the functions of what runs.
collect() {
	local job
	rm -rf -- db
	"$programs/steady" 60 >/dev/null 2>&1 &
	job=$!
	timeout "$limit" "$COZBPF" collect --db db --rate 200 -d 4s >out 2>err </dev/null || why+=" status $?;"
	kill "$job"
	wait "$job" 2>/dev/null
	grep -q 'samples, .* 0 lost' err || why+=' no account, or something is lost;'
	"$COZBPF" top --db db --by function --process steady --top 0 >report 2>complaint || why+=" top: status $?;"
	grep -q 'burn' report || why+=' no function of the program;'
	grep -q '\[kernel\]' <("$COZBPF" top --db db --by image) || why+=' no kernel;'
	"$COZBPF" db export --db db --to json 2>>complaint | grep '/steady"' | found '"build_id":"[0-9a-f]' || why+=' no build id;'
	[ ! -s complaint ] || why+=' a complaint;'
}

# Whole programs as experiments.
runs_n() {
	timeout "$limit" "$COZBPF" run --keep-root -q -o "$profile" -n 4 -- "$programs/output" 100 >out 2>err </dev/null || why+=" status $?;"
	holds 'len(experiments) == 4' || why+=" $(ask 'len(experiments)') experiments;"
}

# The same bytes as without us, by either way of following waits.
same_answers() { # OPTION...
	timeout 60 "$programs/calls" >native 2>&1 </dev/null
	profiled "$@" --fixed-line "$(line_of calls burn)" --fixed-speedup 100 --experiment 100 --cool-off 0 -p progress -- "$programs/calls" </dev/null ||
		why+=" status $?;"
	cmp -s native out || why+=' it answers otherwise;'
	holds 'total("hits") > 0' || why+=' no hit;'
}

latency() {
	length=10000
	whole_run --fixed-speedup 50 --latency 'serve=serve,serve%return' \
		--latency 'job=job_begin,requests:job_end,key=arg2:arg1' -- "$programs/requests" 2000 0.7 || why+=" status $?;"
	holds "sum(n for x in experiments for n in x['points']['serve']['histogram128'].values()) > 0" || why+=' no interval by thread;'
	holds "sum(n for x in experiments for n in x['points']['job']['histogram128'].values()) > 0" || why+=' no interval by key;'
}

# Each kind of point counts what the program says.
kinds() {
	local n
	length=10000
	whole_run --fixed-speedup 0 -p entered -p 'leave=kinds:entered%return' -p "line=$(line_of kinds round)" -p usdt:kinds:plain \
		-p sg=usdt:kinds:kinds:guarded -p syscall:getppid -p 'left=syscall:getppid%return' -p marked=kinds:marked+1 \
		-p tracepoint:task:task_rename -- "$programs/kinds" 2000 2 || why+=" status $?;"
	n=$(said rounds)
	[ "${n:-0}" -gt 0 ] || why+=' the program said nothing;'
	why+=$(counts entered="$n" leave="$n" line="$n" usdt:kinds:plain="$n" sg="$n" syscall:getppid="$n" left="$n" marked="$n" \
		tracepoint:task:task_rename="$n")
}

sampled() {
	profiled -p "hot=sampled:$(line_of steady burn)" -p cold=sampled:other --experiment 100 -- "$programs/steady" 2 || why+=" status $?;"
	holds "visits('hot') > 50 and visits('cold') > 50" || why+=" $(ask "visits('hot')") and $(ask "visits('cold')") samples;"
}

inclusive() {
	profiled --attribution inclusive -p progress --experiment 100 -- "$programs/steady" 2 || why+=" status $?;"
	holds 'len(experiments) >= 5' || why+=" $(ask 'len(experiments)') experiments;"
	holds "any(at.endswith('$(line_of steady burn)') for at in samples)" || why+=' no sample in the line;'
}

static() {
	profiled -p progress --experiment 100 -- "$programs/calls_static" </dev/null
	local status=$?
	[ "$status" -eq 0 ] || why+=" status $status;"
	holds 'len(experiments) >= 3' || why+=" $(ask 'len(experiments)') experiments;"
}

follow() {
	local how
	for how in fork vfork spawn exec double; do
		profiled -p progress --experiment 100 -- "$programs/tree" "$how" 1.2 || why+=" $how: status $?;"
		holds "sum(n for at, n in samples.items() if at.endswith('$(line_of tree child)')) > 50" || why+=" $how: no samples in the child;"
		holds "visits('progress') > 0" || why+=" $how: no visits;"
	done
}

# What must be as it was in a process that was attached to, but for the kernel's page of probes, which stays.
facts() { # PID
	grep -E -- '-xp |rw-s ' "/proc/$1/maps" | grep -v '\[uprobes\]$'
	grep '^Sig[A-Z]' "/proc/$1/status" | grep -v '^SigQ'
	find "/proc/$1/fd" -mindepth 1 -printf '%f\n' | sort -n
}

begin_victim() {
	"$programs/steady" 600 >steady.out &
	victim=$!
	await_line steady.out '^at_ms' 30
}

end_victim() {
	kill "$victim" 2>/dev/null
	wait "$victim" 2>/dev/null
}

# attach and system: begin_victim has been called. Refused is what check says that the kernel lacks.
lets_go() { # WHAT ARGUMENT...
	local what=$1 status
	shift
	facts "$victim" >before
	timeout -k 5 "$limit" "$COZBPF" "$what" -q --color never -o "$profile" -d 3 --experiment 100 "$@" >report 2>complaint </dev/null
	status=$?
	if [ "$status" -ne 0 ]; then
		refusal_or "$status" complaint task_work 'task work'
	else
		holds 'len(experiments) >= 5' || why+=" $(ask 'len(experiments)') experiments;"
		holds "visits('progress') > 0" || why+=' no visits;'
		grep -q 'steady' report || why+=' the report does not name the program;'
	fi
	kill -0 "$victim" 2>/dev/null || why+=' the process has ended;'
	facts "$victim" | diff before - >out || why+=' the process is not as it was;'
}

attach() { # ARGUMENT...
	begin_victim
	lets_go attach "$victim" -p progress "$@"
	end_victim
}

system() { # ARGUMENT...
	begin_victim
	lets_go system --exe "$programs/steady" -p "progress=$programs/steady:progress" "$@"
	end_victim
}

system_cgroup() {
	local group=/sys/fs/cgroup/cozbpf-test
	mkdir "$group" || why+=' no control group;'
	begin_victim
	echo "$victim" >"$group/cgroup.procs"
	lets_go system --cgroup "$group" -p "progress=$programs/steady:progress"
	end_victim
	rmdir "$group"
}

# Waits as the target, of a thread that sleeps for some 5 ms of each 12. How fast its work is cannot be measured while the profiler starts beside it.
waits() { # COMMAND
	local sleeper=$BUILD/tests/truth/overlap status per_us=125
	local -a arguments=(--fixed-class timer --fixed-speedup 50 --experiment 200 -q --no-report -o "$profile")
	if [ "$1" = run ]; then
		timeout "$limit" "$COZBPF" run --keep-root "${arguments[@]}" -p progress -- "$sleeper" --per-us "$per_us" --seconds 3 >out 2>complaint </dev/null
		status=$?
	else
		"$sleeper" --per-us "$per_us" --seconds 600 >out &
		victim=$!
		case $1 in
		attach) arguments+=("$victim" -p progress) ;;
		system) arguments+=(--exe "$sleeper" -p "progress=$sleeper:progress") ;;
		esac
		timeout -k 5 "$limit" "$COZBPF" "$1" -d 3 "${arguments[@]}" >report 2>complaint </dev/null
		status=$?
		end_victim
	fi
	if [ "$status" -ne 0 ]; then
		refusal_or "$status" complaint task_work 'task work|waits cannot be tried here'
		return
	fi
	holds "visits('progress') > 50" || why+=" $(ask "visits('progress')") visits;"
	holds "total('waits') > 50" || why+=" $(ask "total('waits')") waits;"
	holds "0.1 * total('duration') < total('growth') < 0.4 * total('duration')" || why+=" growth $(ask "total('growth'), total('duration')") ns;"
	[ ! -s complaint ] || why+=' something on stderr;'
}

# Killed in an experiment at 100 %: the program goes on to its end, with the same output, and nothing of ours is left.
killed() {
	local job turn
	"$programs/output" 3000 >native.out 2>native.err </dev/null
	bpf_before=$(bpf_orphans)
	"$COZBPF" run --keep-root -q --no-report -o "$profile" -p progress --fixed-line "$(line_of output mix)" --fixed-speedup 100 \
		--experiment 600000 -- "$programs/output" 3000 >out 2>err </dev/null &
	job=$!
	await_line err '^note 500 ' 60 || why+=' the program does not run;'
	kill -KILL "$job"
	wait "$job" 2>/dev/null
	for ((turn = 0; turn < 600; turn++)); do
		[ -n "$(left_behind)" ] || break
		sleep 0.1
	done
	[ -z "$(left_behind)" ] || why+=' the program does not end;'
	cmp -s native.out out || why+=' stdout differs;'
	cmp -s native.err err || why+=' stderr differs;'
	why+=$(left_over)
	[ -n "$why" ] || : >out
}

line_in_handover() { # MARK
	grep -n "/\* LINE:$1 \*/" "$SRC/tests/truth/programs/handover.c" | cut -d : -f 1
}

validate() {
	local status line
	line=handover.c:$(line_in_handover a)
	timeout -k 5 "$limit" "$COZBPF" validate --keep-root -q --report - --color never -p progress -l "$line" -- "$BUILD/tests/truth/handover" --round 5000 \
		--share-a 60 --window 1 --kind futex --seconds 6 >out 2>err
	status=$?
	[ "$status" -le 2 ] || why+=" status $status;"
	grep -q "^Validation of $line, [0-9]* experiments" out || why+=' no heading;'
	[ ! -s err ] || why+=' something on stderr;'
}

# What the kernel says now that it did not say before. Also a guest on its own says some of it, on a busy machine: only from the first
# program of ours on it is ours.
kernel_log() {
	dmesg | tail -n +$(($(wc -l <dmesg.before) + 1)) >out
	if grep -E 'WARNING:|BUG:|Oops|detected stall|lockup|general protection|Call Trace|hung_task|blocked for more than|INFO: |bad page|leak' out >err; then
		why=" $(head -n 1 err)"
	fi
}

# A machine on which no run is possible: each command says so in one line, and names what is missing.
says_no() { # COMMAND...
	local missing='cx16|cmpxchg16b'
	! grep -q PREEMPT_RT /proc/version || missing='real-time kernel'
	! grep -q lockdown= /proc/cmdline || missing='locked down'
	timeout "$limit" "$COZBPF" "$@" >out 2>err </dev/null
	local status=$?
	[ "$status" -ne 0 ] || why+=' it is not refused;'
	[ "$1" = check ] || [ "$(wc -l <err)" -eq 1 ] || why+=" $(wc -l <err) lines;"
	if grep -hqiE "$missing" out err; then
		refused=$(grep -hiE "$missing" out err | head -n 1 | tr -s ' ')
	else
		why+=" it does not say '$missing';"
	fi
}

if [ "$what" = refused ]; then
	feature check says_no check
	feature 'run, report' says_no run -p progress -o "$profile" -- "$programs/launch"
	feature 'attach' says_no attach $$ -o "$profile" -d 1
	feature 'system' says_no system --pid-tree $$ -o "$profile" -d 1
	feature 'kernel log' kernel_log
	exit
fi
if [ "$what" = bpf ]; then
	"$COZBPF" check --color never >checked 2>/dev/null
	for program in "$BUILD"/tests/bpf/*_test; do
		program=${program##*/}
		[ "$program" = load_test ] || feature "bpf ${program%_test}" bpf_test "$program"
	done
	feature 'kernel log, bpf' kernel_log
	exit
fi
feature check check
# Each level takes four commands that load everything. Quickly: the last that mainline knows, and Ubuntu's.
levels=(1 2) above=(3 4)
[ "$what" != quick ] || levels=(2) above=(4)
feature 'three capabilities' capabilities "${levels[@]}"
feature 'three capabilities, perf_event_paranoid 3, 4' capabilities "${above[@]}"
[ "$what" = options ] || feature 'BPF objects load' load_all
feature 'run, report' short_run
feature 'run without -p' no_point
feature 'collect, top' collect
feature 'own PID namespace' container
feature slopes slopes
if [ "$what" != quick ]; then
	feature 'run --pay hold' runs task_work 'task work' --pay hold
	feature 'run --pay sleep' runs none none --pay sleep
	feature 'run --pay spin' runs none none --pay spin
	feature 'run --sync pthread' same_answers --sync pthread
	feature 'same answers' same_answers
	feature 'run -n' runs_n
	feature 'latency points' latency
	feature 'kinds of points' kinds
	feature 'sampled points' sampled
	feature 'inclusive' inclusive
	feature 'static program' static
	feature 'children' follow
	feature 'attach' attach
	feature 'attach --inject' attach --inject=always
	feature 'system' system
	feature 'system --inject' system --inject=always
	feature 'system --kernel' system --kernel
	feature 'system --cgroup' system_cgroup
	feature 'waits' waits run
	feature 'waits, attach' waits attach
	feature 'waits, system' waits system
	feature 'killed' killed
	feature 'validate' validate
fi
feature 'kernel log' kernel_log
