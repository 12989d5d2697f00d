#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# A program under cozbpf behaves as it does without: output, exit status, environment, descriptors, signals, system calls, children,
# other images, ways of linking, its end. With every payer, all experiments at 100 % in the program's hot line. Nothing here depends
# on how fast anything is.
# needs: root btf python3
# beside: others, first
# shellcheck disable=SC2154 # what helpers.sh sets
set -uo pipefail
# shellcheck source=tests/e2e/helpers.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/helpers.sh"
cd "$tmp" || exit 1

# Options for an experiment at 100 % in the line of PROGRAM with MARK, all the time.
hot() { # PROGRAM MARK
	printf '%s\n' -p progress --fixed-line "$(line_of "$1" "$2")" --fixed-speedup 100 --experiment 100 --cool-off 0
}

options_for() { # PROGRAM MARK
	mapfile -t options < <(hot "$1" "$2")
}

# The test says nothing if nothing was delayed.
had_hits() {
	holds 'total("hits") > 0' || printf ' no hit in the line;'
}

same_output() { # PAY
	local why='' status
	options_for output mix
	"$programs/output" "$(lasting 1500)" >native.out 2>native.err </dev/null
	profiled --pay "$1" "${options[@]}" -- "$programs/output" "$(lasting 1500)" </dev/null
	status=$?
	[ "$status" -eq 0 ] || why+=" status $status;"
	cmp -s native.out out || why+=' stdout differs;'
	cmp -s native.err err || why+=' stderr differs;'
	why+=$(had_hits)
	verdict "output is the same, $1" "$why" err
}

same_statuses() { # PAY
	local asked status wanted why=''
	options_for ending burn
	for asked in 0:0 7:7 TERM:143 SEGV:139 ABRT:134 KILL:137; do
		wanted=${asked#*:}
		# A core file is no part of the test.
		(
			ulimit -c 0
			profiled --pay "$1" "${options[@]}" -- "$programs/ending" "${asked%:*}" "$(lasting 0.3)"
		)
		status=$?
		[ "$status" -eq "$wanted" ] || why+=" ${asked%:*}: status $status, not $wanted;"
		[ ! -s err ] || why+=" ${asked%:*}: something on stderr;"
		holds 'runtime > 0' || why+=" ${asked%:*}: the profile is not complete;"
	done
	verdict "exit statuses are the program's, $1" "$why" err
}

# facts' output without what may differ: the caught signals are looked at apart, because a payer's signal has a handler; bash has the command
# that it starts in _.
facts_but_caught() { # FILE
	grep -v -e '^SigCgt:' -e '^environment _=' "$1"
}

# Real-time signals that the second mask has and the first has not, "other" for any other difference.
added_signals() { # FILE FILE
	python3 - "$1" "$2" <<'PYTHON'
import re, sys
a, b = (int(re.search(r"^SigCgt:\s*(\w+)", open(f).read(), re.M)[1], 16) for f in sys.argv[1:])
print("other" if a & ~b or (b & ~a) & 0x3FFFFFFFF else bin(b & ~a).count("1"))
PYTHON
}

same_facts_of() { # NAME PAY ADDED NATIVE-COMMAND... : the program is the same, with and without
	local name=$1 pay=$2 allowed=$3 why='' status
	shift 3
	# Not by timeout, which of newer coreutils has its child die with it: a fact that nobody else's child has.
	"$@" >native.out 2>native.err </dev/null
	profiled --pay "$pay" -p progress --fixed-speedup 100 --experiment 50 -- "$@" </dev/null
	status=$?
	[ "$status" -eq 0 ] || why+=" status $status;"
	[ ! -s err ] || why+=' something on stderr;'
	grep -q '^limit ' native.out || why+=' the program told nothing;'
	[ -z "${LD_PRELOAD:-}" ] || grep -qx 'marker preloaded' out || why+=' the library is not loaded;'
	facts_but_caught native.out >a
	facts_but_caught out >b
	if ! diff a b >difference; then why+=' what the program sees differs;'; fi
	[[ " $allowed " == *" $(added_signals native.out out) "* ]] || why+=' other signals are caught;'
	verdict "$name, $pay" "$why" difference err
}

same_facts() { # PAY
	local added=1 after=1
	same_facts_of 'environment, descriptors, signals, limits are the same' "$1" "$added" "$programs/facts" one '' 'three words'
	# The image that follows has the library, too, but where only one image's calls are seen.
	[[ " ${switched_off[*]} " != *" --sync pthread "* ]] || after=0
	same_facts_of 'the same after exec' "$1" "$after" "$programs/launch" "$programs/facts" one
	exec 7</dev/null 9>/dev/null 201</dev/null
	same_facts_of 'inherited descriptors stay' "$1" "$added" "$programs/facts"
	exec 7<&- 9>&- 201<&-
	[ "$1" = "${payers[0]}" ] || [ "${FULL:-0}" -eq 1 ] || return
	# Its runtime ends a program in which another library was loaded before it.
	same_facts_of 'with AddressSanitizer' "$1" "$added" "$programs/facts_asan"
	same_facts_of 'with AddressSanitizer after exec' "$1" "$after" "$programs/launch" "$programs/facts_asan"
	LD_PRELOAD='' same_facts_of 'with AddressSanitizer, and LD_PRELOAD empty' "$1" "$added" "$programs/facts_asan"
	LD_PRELOAD=$programs/libmarker.so same_facts_of "the user's LD_PRELOAD stays" "$1" "$added" "$programs/facts"
}

# cozbpf blocks and ignores signals of its own; the program gets what cozbpf itself was started with.
signals_as_inherited() { # PAY
	local why='' added=1
	env --ignore-signal=PIPE,USR1 --block-signal=USR2,WINCH "$programs/facts" >native.out </dev/null
	rm -f -- "$profile"
	timeout -k 5 60 env --ignore-signal=PIPE,USR1 --block-signal=USR2,WINCH \
		"$COZBPF" run "${switched_off[@]}" --keep-root -q --no-report -o "$profile" --pay "$1" -p progress -- "$programs/facts" >out 2>err </dev/null
	facts_but_caught native.out >a
	facts_but_caught out >b
	if ! diff a b >difference; then why+=' what the program sees differs;'; fi
	[ "$(added_signals native.out out)" = "$added" ] || why+=' other signals are caught;'
	verdict "ignored and blocked signals are inherited, $1" "$why" difference err
}

no_eintr() { # PAY
	local seconds why='' status
	seconds=$(lasting 2.5)
	[ "${FULL:-0}" -eq 0 ] || seconds=30
	options_for eintr burn
	profiled --pay "$1" "${options[@]}" -- "$programs/eintr" "$seconds" </dev/null
	status=$?
	[ "$status" -eq 0 ] || why+=" status $status;"
	[ "$(grep -c ' calls=[1-9][0-9]* eintr=0$' out)" -eq 6 ] || why+=' a call was interrupted, or never made;'
	why+=$(had_hits)
	verdict "no system call is interrupted, $1" "$why" out err
}

# Starts cozbpf in a group of its own, with the default action for every signal: a shell's background job ignores Ctrl-C. $job is
# cozbpf itself.
start() { # OPTION...
	rm -f -- "$profile" out err
	env --default-signal setsid "$COZBPF" run "${switched_off[@]}" --keep-root -o "$profile" "$@" >out 2>err </dev/null &
	job=$!
}

# Ends if the job does not within SECONDS: 255.
wait_for_job() { # SECONDS
	local turn
	for ((turn = 0; turn < $1 * 20; turn++)); do
		if ! kill -0 "$job" 2>/dev/null; then
			wait "$job"
			return
		fi
		sleep 0.05
	done
	kill -KILL -- "-$job"
	wait "$job" 2>/dev/null
	return 255
}

forwarded() { # PAY
	local why='' status signal
	options_for caught burn
	start -q --no-report --pay "$1" "${options[@]}" -- "$programs/caught" 40
	await_line out '^ready$' 20 || why+=' not ready;'
	sleep 0.3
	for signal in USR1 USR2 HUP TERM; do
		kill -s "$signal" "$job"
		await_line out "^$signal\$" 10 || why+=" $signal did not arrive;"
	done
	wait_for_job 20
	status=$?
	[ "$status" -eq 5 ] || why+=" status $status, not 5;"
	[ "$(sort out | uniq -d)" = '' ] || why+=' a signal arrived twice;'
	holds 'runtime > 0' || why+=' the profile is not complete;'
	verdict "signals are forwarded, $1" "$why" out err
}

# A terminal sends the signal to the whole group.
interrupted() { # PAY
	local why='' status
	options_for steady burn
	start --pay "$1" "${options[@]}" -- "$programs/steady" 60
	await_line out '^at_ms=' 20 || why+=' the program does not run;'
	sleep 1
	kill -s INT -- "-$job"
	wait_for_job 20
	status=$?
	[ "$status" -eq 130 ] || why+=" status $status, not 130;"
	holds 'runtime > 0 and len(experiments) > 0' || why+=' the profile is not complete;'
	grep -q 'steady\.c' err || why+=' no report;'
	! grep -qvE '^at_ms=' out || why+=' the report is among what the program prints;'
	none_left || why+=' a process was left behind;'
	verdict "Ctrl-C ends a run with profile and report, $1" "$why" out err
}

input() { # PAY
	local why='' status
	head -c 3000000 /dev/urandom | base64 >in
	profiled --pay "$1" -p progress --fixed-speedup 100 -- "$programs/launch" - <in
	status=$?
	[ "$status" -eq 0 ] || why+=" status $status;"
	cmp -s in out || why+=' its input did not arrive whole;'
	tr a-z A-Z <in | profiled --pay "$1" -p progress --fixed-speedup 100 -- "$programs/launch" tr A-Z a-z
	tr A-Z a-z <in | cmp -s - out || why+=' through a pipe and an exec neither;'
	verdict "input is passed through, $1" "$why" err
}

ends_at_once() { # PAY
	local why='' status
	profiled --pay "$1" -p progress -- "$programs/launch"
	status=$?
	[ "$status" -eq 0 ] || why+=" status $status;"
	[ ! -s err ] || why+=' something on stderr;'
	holds 'len(runs) == 1 and len(experiments) == 0' || why+=' the profile is not that of an empty run;'
	timeout 20 "$COZBPF" report "$profile" >out 2>err || why+=' the report fails;'
	[ -s out ] || why+=' the report of nothing does not say why;'
	verdict "a program that ends at once, $1" "$why" out err
}

execs() { # PAY
	local why='' status
	# Pauses are owed when the first image goes; the second computes on in two threads and owes none to its payer's signal.
	profiled --pay "$1" -p progress --fixed-speedup 100 --experiment 2000 -- "$programs/launch" "$programs/ending" 7 1
	status=$?
	[ "$status" -eq 7 ] || why+=" status $status, not 7;"
	profiled --pay "$1" -p progress --fixed-speedup 100 --experiment 2000 -- "$programs/launch" sh -c "exec $programs/output 300"
	status=$?
	[ "$status" -eq 0 ] || why+=" through a shell: status $status;"
	"$programs/output" 300 >native.out 2>native.err
	cmp -s native.out out || why+=' output differs;'
	cmp -s native.err err || why+=' stderr differs;'
	verdict "a program that executes another, $1" "$why" err
}

children() { # PAY
	local why='' status
	options_for children burn
	# A burner that never waits, in a line that takes no time, would leave no time to the children: half the speed shows as much.
	profiled --pay "$1" "${options[@]}" --fixed-speedup 50 -- "$programs/children" 20
	status=$?
	[ "$status" -eq 0 ] || why+=" status $status;"
	grep -qx 'rounds=20 forked=40 spawned=20 shells=20' out || why+=' a child did not end as it should;'
	[ ! -s err ] || why+=' something on stderr;'
	why+=$(had_hits)
	none_left || why+=' a process was left behind;'
	verdict "children end as they should, $1" "$why" out err
}

linked_without_pie() { # PAY
	local why='' status
	options_for ending burn
	profiled --pay "$1" "${options[@]}" -- "$programs/ending_fixed" 7 "$(lasting 0.5)"
	status=$?
	[ "$status" -eq 7 ] || why+=" status $status, not 7;"
	why+=$(had_hits)
	holds 'visits("progress") > 0' || why+=' its progress point was not counted;'
	verdict "an executable that is not position-independent, $1" "$why" err
}

linked_statically() { # PAY
	local why='' status
	options_for ending burn
	profiled --pay "$1" "${options[@]}" -- "$programs/ending_static" 7 "$(lasting 0.5)"
	status=$?
	[ "$status" -eq 7 ] || why+=" status $status, not 7;"
	why+=$(had_hits)
	holds 'visits("progress") > 0' || why+=' its progress point was not counted;'
	[ ! -s err ] || why+=' something is said on stderr;'
	verdict "a static executable, $1" "$why" err
}

by_duration() { # PAY
	local why='' status
	options_for steady burn
	profiled --pay "$1" "${options[@]}" -d 1 -- "$programs/steady" 50
	status=$?
	[ "$status" -eq 0 ] || why+=" status $status;"
	[ "$(wc -l <out)" -lt 400 ] || why+=' it was not ended;'
	holds 'runtime > 0 and total("hits") > 0' || why+=' the profile is not complete;'
	none_left || why+=' a process was left behind;'
	verdict "the end by --duration is success, $1" "$why" err
}

usable_payers
for pay in "${payers[@]}"; do
	same_statuses "$pay"
	same_facts "$pay"
	signals_as_inherited "$pay"
	no_eintr "$pay"
	forwarded "$pay"
	execs "$pay"
	children "$pay"
	linked_statically "$pay"
	# How threads are paused does not matter to these.
	[ "$pay" = "${payers[0]}" ] || [ "${FULL:-0}" -eq 1 ] || continue
	same_output "$pay"
	interrupted "$pay"
	input "$pay"
	ends_at_once "$pay"
	linked_without_pie "$pay"
	by_duration "$pay"
done
why=''
none_left || why="still there: $(left_behind)"
verdict 'no process is left behind' "$why"
