#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Functions instead of lines: for programs without line information, from a symbol table, from mini debug information, not from nothing;
# with the copies and parts that compilers make of them.
# needs: root btf python3 strip objcopy
# beside: others
# shellcheck disable=SC2154 # what helpers.sh sets
set -uo pipefail
# shellcheck source=tests/e2e/helpers.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/helpers.sh"
cd "$tmp" || exit 1

strip -g -o plain "$programs/clones"
python3 -c 'import lzma, sys; sys.stdout.buffer.write(lzma.compress(open("plain", "rb").read()))' >packed
strip -s -o bare "$programs/clones"
objcopy -R .eh_frame -R .eh_frame_hdr bare nothing
objcopy --add-section .gnu_debugdata=packed bare mini
head -c 100 packed >damaged
objcopy --add-section .gnu_debugdata=damaged bare broken

# by_function PROGRAM NAME: its profile is one of functions, the parts under their function's name, and the calls are counted.
by_function() {
	local why=''
	profiled -p worker -p partial --experiment 5000 -- "./$1" 1000 || why+=' it failed;'
	[ "$(wc -l <err)" -eq 1 ] || why+=" $(wc -l <err) lines on stderr;"
	grep -q "^cozbpf: .*$1: no line information: trying functions" err || why+=' nothing says why functions are tried;'
	holds 'runs[0]["granularity"] == "function"' || why+=' not by function;'
	# What the C library does before main belongs to _start, which calls it, and what it does at the end to __do_global_dtors_aux.
	holds '{x["selected"] for x in experiments} <= {"main", "worker", "partial", "_start"}' ||
		why+=" selected: $(ask '{x["selected"] for x in experiments}');"
	holds 'set(samples) <= {"main", "worker", "partial", "_start", "__do_global_dtors_aux"} and "worker" in samples' ||
		why+=" samples in $(ask 'samples');"
	# Three of four turns of the loops are the worker's.
	holds 'samples["worker"] > 3 * samples["partial"]' || why+=" too few in worker: $(ask 'samples');"
	holds "len(experiments) != 1 or visits('worker') == $(sed -n 's/.*worker=\([0-9]*\).*/\1/p' out)" ||
		why+=" worker: $(ask 'visits("worker")') visits, the program: $(cat out);"
	holds "len(experiments) != 1 or visits('partial') == $(sed -n 's/.*partial=\([0-9]*\).*/\1/p' out)" ||
		why+=" partial: $(ask 'visits("partial")') visits, the program: $(cat out);"
	holds 'len(experiments) > 0' || why+=' no experiment;'
	verdict "$2" "$why" err out
}

# All parts of the fixed function are hit.
fixed() {
	local why=''
	profiled -p worker --granularity function --fixed-line worker --fixed-speedup 50 --experiment 300 --delay 0.8 -- ./plain 4000 ||
		why+=' it failed;'
	holds 'len(experiments) > 1 and all(x["selected"] == "worker" for x in experiments)' || why+=' another function;'
	holds 'total("selected_samples") > 0.6 * total("samples") and total("selected_samples") > 100' ||
		why+=" hits: $(ask '[(x["selected_samples"], x["samples"]) for x in experiments]');"
	verdict 'a fixed function is hit in all its parts' "$why" err
}

by_lines() {
	local why=''
	profiled -p worker --experiment 100 -- "$programs/clones" 100 || why+=' it failed;'
	# A sample can fall into a line of the header that the program includes.
	holds 'runs[0]["granularity"] == "line" and all("clones.c:" in x["selected"] or "helper.h:" in x["selected"] for x in experiments)' ||
		why+=" not by line: $(ask '{x["selected"] for x in experiments}');"
	[ ! -s err ] || why+=' something on stderr;'
	verdict 'lines where there are some' "$why" err
	why=''
	profiled -p worker --granularity line -- ./plain 100 && why+=' it is not refused;'
	[ "$(wc -l <err)" -eq 1 ] && grep -q 'plain: no line information; .*--granularity function' err ||
		why+=' the line does not name reason and remedy;'
	verdict 'lines that are asked for must be there' "$why" err
}

nothing() {
	local why=''
	profiled -- ./nothing 100 && why+=' it is not refused;'
	[ "$(wc -l <err)" -eq 1 ] && grep -q 'nothing: neither line information nor function symbols; ' err || why+=' no clear reason;'
	verdict 'a program without any names is refused' "$why" err
	why=''
	profiled -- ./broken 500 || why+=" status $?;"
	grep -q 'broken: its mini debug information .* corrupt' err || why+=' no clear reason;'
	holds 'any(name.startswith("broken+0x") for name in samples)' || why+=' no function is called after its place;'
	verdict 'with corrupt mini debug information functions have no names, and the reason is given' "$why" err
	why=''
	profiled -- ./bare 500 || why+=" status $?;"
	holds 'runs[0]["granularity"] == "function" and any(name.startswith("bare+0x") for name in samples)' || why+=' no function is called after its place;'
	verdict 'functions of a stripped program are called after their place' "$why" err
}

by_function plain 'functions of a program without -g'
by_function mini 'functions from mini debug information'
fixed
by_lines
nothing
