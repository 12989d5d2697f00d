#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Each kind of progress point counts what the program says that it visited, to the last one; samples of a line within what chance allows.
# needs: root btf python3
# beside: others, first
# shellcheck disable=SC2154 # what helpers.sh sets
set -uo pipefail
# shellcheck source=tests/e2e/helpers.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/helpers.sh"
cd "$tmp" || exit 1
length=8000

first=(-p entered -p 'leave=kinds:entered%return' -p "line=$(line_of kinds round)" -p usdt:kinds:plain -p sg=usdt:kinds:kinds:guarded
	-p syscall:getppid -p marked=kinds:marked+1)
# What the first group would make too slow.
second=(-p left=syscall:getppid%return -p tracepoint:task:task_rename -p tracepoint:syscalls:sys_enter_getppid)

many() {
	local why='' n each=60000 length=30000
	[ "${FULL:-0}" -eq 0 ] || each=1000000 length=120000
	# The program settles for long enough that an experiment counts, a tenth of its length, also where the rounds take no time.
	whole_run --fixed-speedup 0 "${first[@]}" -- "$programs/kinds" "$each" 3.2 || why+=' it failed;'
	n=$(said rounds)
	[ "$n" = "$each" ] || why+=" $n rounds;"
	[ "$(said guarded)" = "$n" ] || why+=" the semaphore let through $(said guarded) of $n;"
	why+=$(counts entered="$n" leave="$n" line="$n" usdt:kinds:plain="$n" sg="$n" syscall:getppid="$n" marked="$n")
	verdict "$each visits each: entry, return, line, offset, USDT probes, system call" "$why" out err
	# Only what is single-stepped or takes two traps is dear, and it says so.
	why=''
	holds 'all(100 < x["points"][p]["cost_ns"] < 1e6 for x in experiments for p in ("entered", "leave", "line", "syscall:getppid"))' ||
		why+=" costs $(ask '{p: x["points"][p].get("cost_ns") for x in experiments for p in x["points"]}');"
	timeout 20 "$COZBPF" report "$profile" >report 2>>err || why+=' report: it failed;'
	grep -q "Warning: to count 'leave' took up to [0-9.]* % of the run" report || why+=' no warning of the cost;'
	verdict 'the cost of visits is measured' "$why" err report

	why=''
	length=12000
	whole_run --fixed-speedup 0 "${second[@]}" -- "$programs/kinds" "$each" 2 || why+=' it failed;'
	why+=$(counts left="$each" tracepoint:task:task_rename="$each" tracepoint:syscalls:sys_enter_getppid="$each")
	verdict "$each visits each: end of a system call, tracepoints" "$why" out err
}

# Without links for many probes, and while threads are paused.
otherwise() {
	local why='' pay n length=20000
	whole_run --fixed-speedup 0 --disable uprobe_multi "${first[@]}" -p 'nested=nested%return' -- "$programs/kinds" 40000 2.2 || why+=' it failed;'
	n=$(said rounds)
	[ "$(said guarded)" = "$n" ] || why+=" the semaphore let through $(said guarded) of $n;"
	why+=$(counts entered="$n" leave="$n" line="$n" usdt:kinds:plain="$n" sg="$n" syscall:getppid="$n" marked="$n" nested="$((2 * n))")
	verdict 'one link for each probe' "$why" out err
	for pay in "${payers[@]}"; do
		[ "$pay" = "${payers[0]}" ] || [ "${FULL:-0}" -eq 1 ] || continue
		why=''
		whole_run --pay "$pay" --fixed-speedup 100 "${first[@]}" -p left=syscall:getppid%return -- "$programs/kinds" 40000 2.2 ||
			why+=' it failed;'
		why+=$(counts entered="$n" leave="$n" line="$n" usdt:kinds:plain="$n" sg="$n" syscall:getppid="$n" marked="$n" left="$n")
		holds 'total("hits") > 0' || why+=' no hit in the line;'
		verdict "counts are exact while threads are paused, $pay" "$why" out err
	done
}

# A library that the program loads while it runs, from where only the program knows.
later() {
	local why='' n
	mkdir hidden
	cp "$BUILD/tests/e2e/programs/libplugin.so" hidden/libhidden.so
	whole_run --fixed-speedup 0 -p in=libhidden.so:plugin_work -p 'out=libhidden.so:plugin_work%return' -p entered -- \
		"$programs/kinds" 40000 "$(lasting 0.7)" "$tmp/hidden/libhidden.so" || why+=' it failed;'
	n=$(said rounds)
	why+=$(counts in="$n" out="$n" entered="$n")
	verdict 'points in a library that is loaded later' "$why" out err

	why=''
	profiled --fixed-speedup 0 -p in=libhidden.so:plugin_wrok -p entered -- "$programs/kinds" 4000 0.7 "$tmp/hidden/libhidden.so" || why+=' it failed;'
	[ "$(grep -c 'warning: .*no function plugin_wrok.*did you mean plugin_work' err)" = 1 ] || why+=' not one line on the function;'
	profiled --fixed-speedup 0 -p in=libhiden.so:plugin_work -p entered -- "$programs/kinds" 4000 0.7 "$tmp/hidden/libhidden.so" || why+=' it failed;'
	[ "$(grep -c 'warning: .*no process in scope has loaded libhiden.so$' err)" = 1 ] || why+=' not one line on the library;'
	verdict 'what a later library lacks is said' "$why" err
}

# Two lines, or the functions that they are, take 3/4 and 1/4 of the time; of n samples that is so within four standard deviations, and all of
# them are there.
in_shares() { # MORE LESS
	# A visit stands for 2 ms of execution. The two lines have the share of all that their samples in the profile have.
	local ours
	ours="sum(n for at, n in samples.items() if at.endswith('/$(line_of shares more)') or at.endswith('/$(line_of shares less)'))"
	holds "visits('$1') + visits('$2') > max(400, 0.8 * total('executed_ns') / 2e6 * $ours / sum(samples.values()))" ||
		why+=" $(ask "visits('$1') + visits('$2')") samples of $1 and $2 only;"
	holds "abs(visits('$1') / (visits('$1') + visits('$2')) - 0.75) < 4 * (0.1875 / (visits('$1') + visits('$2'))) ** 0.5" ||
		why+=" $(ask "visits('$1')") of $(ask "visits('$1') + visits('$2')") samples are in three quarters of the time, $1;"
}

sampled() {
	local why='' more less of
	more=sampled:$(line_of shares more)
	less=sampled:$(line_of shares less)
	profiled --fixed-speedup 0 --experiment 400 -p "$more" -p "$less" -p m=sampled:more -p l=sampled:shares:less -p progress -- \
		"$programs/shares" "$(lasting 6)" || why+=' it failed;'
	in_shares "$more" "$less"
	in_shares m l
	# Points are read one after the other: a sample of each experiment may come in between.
	holds "visits('m') >= visits('$more') - len(experiments) and visits('l') >= visits('$less') - len(experiments)" ||
		why+=' a function has fewer samples than its line;'
	verdict 'samples of lines and functions count within their binomial error' "$why" err

	# Of all frames or of the first; with lines or without. The first frame in scope and whom it called out of scope both count.
	for of in first inclusive; do
		why=''
		profiled --granularity function --attribution "$of" --fixed-speedup 0 --experiment 400 -p own=sampled:burn -p call=sampled:libraries \
			-p lib=sampled:libc.so.6:snprintf -p all=sampled:libc.so.6:__libc_start_main -p progress -- "$programs/library" 2.2 || why+=' it failed;'
		holds "abs(visits('own') / (visits('own') + visits('call')) - $(said burn_ns) / ($(said burn_ns) + $(said library_ns))) <
			0.02 + 2 / (visits('own') + visits('call')) ** 0.5" ||
			why+=" $(ask "visits('own')") samples of its own and $(ask "visits('call')") in libraries, $(cat out);"
		holds "0.02 * visits('call') < visits('lib') < 0.9 * visits('call')" ||
			why+=" $(ask "visits('lib')") of $(ask "visits('call')") in one function of the library;"
		# The caller of main is met by a walk that goes on behind what is in scope, and by no other.
		if [ "$of" = first ]; then
			holds "visits('all') < 0.05 * visits('call')" || why+=" $(ask "visits('all')") samples of the caller of all;"
		else
			holds "visits('all') >= visits('own') + visits('call') - len(experiments)" ||
				why+=" $(ask "visits('all')") samples of the caller of all, $(ask "visits('own') + visits('call')") of what it calls;"
		fi
		verdict "samples of functions in libraries out of scope, attribution $of" "$why" err out
	done

	# Until the library's call frame information has been read, a sample in it does not find its caller.
	why=''
	profiled --fixed-speedup 0 --experiment 200 -p plugin=sampled:plugin -p in=sampled:libhidden.so:plugin_work -p progress -- \
		"$programs/library" "$(lasting 3)" "$tmp/hidden/libhidden.so" || why+=' it failed;'
	holds "visits('plugin') > 50 and 0.7 * visits('plugin') < visits('in') < 1.02 * visits('plugin')" ||
		why+=" $(ask "visits('in')") of $(ask "visits('plugin')") samples;"
	verdict 'samples of a function in a library that is loaded later' "$why" err
}

# Where a probe would make children crash, the place behind it does as well; or the point is refused.
nops() {
	local why='' where status length=4000
	for where in it=entered it=nops:entered it=entered%return it=looping%return; do
		whole_run --fixed-speedup 0 -p "$where" -- "$programs/nops" 1000 0.7 || why+=" $where: it failed;"
		why+=$(counts it="$(said entered)")
	done
	profiled --fixed-speedup 0 -p looping -- "$programs/nops" 1000 0.1
	status=$?
	[ "$status" -eq 125 ] || why+=" looping: status $status;"
	[ "$(grep -c 'nop of five bytes' err)" = 1 ] && [ "$(wc -l <err)" -eq 1 ] || why+=' looping: not one line that says why;'
	verdict 'no probe on a nop of five bytes' "$why" out err
}

usable_payers
nops
if [ ! -x "$programs/kinds" ]; then
	printf 'skip kinds of points: needs package:systemtap-sdt-dev\n'
	exit 0
fi
many
otherwise
later
sampled
