#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# --sync pthread: waits are followed by the program's calls for threads, and the program notices nothing: neither of the wrapped calls nor
# of probes on them. Where it cannot be, that is said.
# needs: root btf python3 g++
# beside: others
# shellcheck disable=SC2154 # what helpers.sh sets
set -uo pipefail
directory=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd) || exit 1
# shellcheck source=tests/e2e/helpers.sh
source "$directory/helpers.sh"
cd "$tmp" || exit 1

hot=(--fixed-line "$(line_of calls burn)" --fixed-speedup 100 --experiment 100 --cool-off 0 -p progress)
# As on a kernel that has neither task work nor the scheduler's BTF tracepoints.
bare=task_work,send_signal_task,sched_switch,sched_waking,switch_raw

# Every experiment's books add up, and there was something to book.
balanced() {
	holds 'total("hits") > 0' || printf ' no hit;'
	holds 'all(x["imbalance"] == 0 for x in experiments)' || printf ' imbalance: %s;' "$(ask '[x["imbalance"] for x in experiments]')"
	holds 'runs[0]["sync"] == "pthread"' || printf ' the file says sync %s;' "$(ask 'runs[0]["sync"]')"
}

same_answers() { # NAME PAY PROGRAM [OPTION]...
	local name=$1 pay=$2 program=$3 why='' status
	shift 3
	timeout 30 "$program" "$(lasting 5)" >native 2>native.err </dev/null
	profiled --sync pthread --pay "$pay" "$@" "${hot[@]}" -- "$program" "$(lasting 5)" </dev/null
	status=$?
	[ "$status" -eq 0 ] || why+=" status $status;"
	[ "$(wc -l <native)" -gt 500 ] || why+=' the program told too little;'
	cmp -s native out || why+=' it answers otherwise;'
	cmp -s native.err err || why+=' stderr differs;'
	why+=$(balanced)
	diff native out >difference || true
	verdict "$name" "$why" err difference
}

kernel_holds() {
	profiled --pay hold -p progress -- "$programs/launch"
}

same_answers 'wrapped calls, sleep' sleep "$programs/calls"
[ "${FULL:-0}" -eq 0 ] || same_answers 'wrapped calls, spin' spin "$programs/calls"
same_answers 'wrapped calls, without the newer kernel features' sleep "$programs/calls" --disable "$bare"
if kernel_holds; then
	same_answers 'wrapped calls, hold' hold "$programs/calls"
else
	printf 'skip payer hold: %s\n' "$(head -n 1 err)"
fi

# What is credited is what a thread waited for another that the line delayed: in ping-pong nobody pays for long.
credits() { # NAME [OPTION]...
	local name=$1 why=''
	shift
	profiled --sync pthread "$@" --fixed-line "handover.c:$(grep -n 'LINE:a' "$SRC/tests/truth/programs/handover.c" | cut -d : -f 1)" \
		--fixed-speedup 100 --experiment 300 -p progress -- \
		"$BUILD/tests/truth/handover" --round 5000 --kind mutex --window 1 --seconds 1.5 || why+=' it failed;'
	why+=$(balanced)
	holds 'total("credited") > 0.5 * total("growth")' || why+=" credited $(ask 'total("credited")') of $(ask 'total("growth")');"
	holds 'total("paid") < 0.5 * total("growth")' || why+=" paid $(ask 'total("paid")') of $(ask 'total("growth")');"
	verdict "$name" "$why" err
}
credits 'who waits is credited'
credits 'who waits is credited, without the newer kernel features' --pay sleep --disable "$bare"

# C++ with its own classes over the same calls, and an exception through a thread.
cpp() {
	local why=''
	g++ -std=c++20 -O2 -g -pthread -o cpp "$directory/programs/calls.cpp" >err 2>&1 || why+=' it does not compile;'
	./cpp >native 2>native.err
	profiled --sync pthread --fixed-speedup 100 --experiment 100 --cool-off 0 -p progress -- ./cpp || why+=" status $?;"
	cmp -s native out || why+=' it answers otherwise;'
	[ -s native ] || why+=' the program told nothing;'
	diff native out >difference || true
	verdict 'C++' "$why" err difference
}
cpp

report_names_it() {
	local why=''
	profiled --sync pthread "${hot[@]}" -- "$programs/calls" || why+=' it failed;'
	"$COZBPF" report --verbose "$profile" >report 2>&1 || why+=' no report;'
	grep -q 'waits followed by pthread' report || why+=' the report does not say so;'
	verdict 'the file and the report name it' "$why" err report
}
report_names_it

# refused NAME PATTERN OPTION...: one line, which matches, and status 125.
refused() {
	local name=$1 pattern=$2 why=''
	shift 2
	profiled "$@"
	[ "$?" -eq 125 ] || why+=' it is not refused;'
	grep -qE -- "$pattern" err || why+=' the line does not say why;'
	[ "$(wc -l <err)" -eq 1 ] || why+=' more than one line;'
	verdict "$name" "$why" err
}
cp "$programs/calls_static" static
refused 'static executable' '^cozbpf: .*static executable.*--sync sched' --sync pthread -p progress -- ./static
refused 'no BTF tracepoints' '^cozbpf: --sync sched needs .*--sync pthread' --disable sched_waking -p progress -- "$programs/launch"
refused 'unknown way' "^cozbpf: --sync 'fiber'.*sched.*pthread" --sync fiber -p progress -- "$programs/launch"
