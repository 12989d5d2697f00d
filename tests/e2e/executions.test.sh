#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# How often blocks are executed, counted in a program whose loops have known numbers of passes; and that it does not notice.
# needs: root btf python3 package:llvm
# shellcheck disable=SC2154 # what helpers.sh sets
set -uo pipefail
# shellcheck source=tests/e2e/helpers.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/helpers.sh"
cd "$tmp" || exit 1

cat >loops.c <<'C'
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
static volatile uint64_t sink;
static volatile sig_atomic_t ended;
static void end(int signal)
{
	ended = signal;
}
__attribute__((noinline)) static uint64_t loops(uint64_t x)
{
	for (int i = 0; i < 40; i++) {
		x += x >> 3; /* line 14 */
		for (int j = 0; j < 50; j++) {
			x ^= x << 7; /* line 16 */
			for (int k = 0; k < 60; k++)
				__asm__ volatile("imul %1, %0" : "+r"(x) : "r"(6364136223846793005u)); /* line 18 */
		}
	}
	return x;
}
__attribute__((noinline)) static uint64_t waits(uint64_t x)
{
	for (int i = 0; i < 120000; i++)
		__asm__ volatile("imul %1, %0" : "+r"(x) : "r"(6364136223846793005u));
	return x;
}
int main(int argc, char **argv)
{
	uint64_t calls = 0, most = argc > 1 ? strtoull(argv[1], 0, 10) : ~0ull, x = 1;

	signal(SIGTERM, end);
	for (; !ended && calls < most; calls++)
		x = waits(loops(x));
	sink = x;
	printf("calls=%llu x=%llx\n", (unsigned long long)calls, (unsigned long long)x);
	return 7;
}
C
gcc -O1 -g loops.c -o loops || exit 1
./loops >native_out &
job=$!
sleep 0.3
timeout -k 5 60 "$COZBPF" collect --db db --rate 1000 -d 3s 2>log || exit 1

# 40 * 50 * 60 passes of the inner loop, 40 * 50 of the one around it, 40 of the outer one. imul takes three cycles, or four.
counted() {
	timeout -k 5 60 "$COZBPF" annotate --db db --count 4s --pid "$job" --json loops >out.json 2>complaint || why+=" status $?;"
	why+=$(
		python3 - <<'P'
import json
of = json.load(open("out.json", encoding="utf-8"))
executed, took = {}, 0.0
for b in of["blocks"]:
    for x in b["instructions"]:
        took += x.get("took") or 0 if x["line"] == 18 else 0
        if b.get("executed_error") is not None:
            executed[x["line"]] = max(executed.get(x["line"], 0), b["executed"])
if not {14, 16, 18} <= set(executed):
    print(f" nothing is known of {executed};")
else:
    inner, middle = executed[18] / executed[16], executed[16] / executed[14]
    if not 45 < inner < 75 or not 38 < middle < 62:
        print(f" {inner:.1f} for 60, {middle:.1f} for 50;")
if not 1 < took < 12:
    print(f" a multiplication takes {took:.1f} cycles at {of.get('clock_hz')} Hz;")
P
	)
}
tried counted
verdict 'counts are those of the loops' "$why" complaint

why=''
timeout -k 5 60 "$COZBPF" annotate --db db --count 1s --pid "$job" --width 80 --html page.html loops >out 2>complaint || why+=" status $?;"
grep -qE '^ +executed [0-9.]+ (thousand|million|billion) times a second, ±[0-9]+ %$' out || why+=' no executions;'
grep -qE '^ *samples +share +cycles +took +code' out || why+=' no column;'
grep -q 'executed .* times a second' page.html || why+=' nothing on the page;'
python3 -c 'import sys; sys.exit(any(len(line.rstrip("\n")) > 80 for line in open("out", encoding="utf-8")))' || why+=' wider than 80 columns;'
verdict 'as text and on a page' "$why" complaint out

# cozbpf is killed in the middle of counting: the program goes on as fast as before, and ends as always.
speed() { # calls in a second of its CPU time
	local before after
	before=$(awk '{ print $14 + $15 }' "/proc/$job/stat")
	sleep 1
	after=$(awk '{ print $14 + $15 }' "/proc/$job/stat")
	printf '%s' $((after - before))
}
why=''
"$COZBPF" annotate --db db --count 60s --pid "$job" --json loops >out.json 2>complaint &
counts=$!
sleep 2
kill -KILL "$counts"
wait "$counts" 2>/dev/null
sleep 0.5
[ "$(speed)" -gt 20 ] || why+=' it does not run;'
kill -TERM "$job"
wait "$job"
status=$?
[ "$status" -eq 7 ] || why+=" status $status;"
read -r calls <native_out
calls=${calls%% *}
./loops "${calls#calls=}" >again
cmp -s again native_out || why+=" $(cat native_out) and $(cat again);"
verdict 'the program computes the same, and goes on when cozbpf is killed' "$why"

refuses() { # PATTERN ARGUMENT...
	local pattern=$1
	shift
	timeout 60 "$COZBPF" annotate --db db "$@" >out 2>complaint && why+=" $*: not refused;"
	[ "$(wc -l <complaint)" -eq 1 ] && grep -qE -- "$pattern" complaint || why+=" $*: $(head -n 1 complaint);"
}
./loops >/dev/null 2>&1 &
job=$!
disown "$job"
sleep 60 &
other=$!
why=''
refuses 'go together' --count 1s loops
refuses 'go together' --pid "$job" loops
refuses 'no process|no such process' --count 1s --pid 2147483647 loops
refuses 'used no CPU|executed nothing' --count 1s --pid "$other" --process loops loops
kill -STOP "$job"
refuses 'used no CPU|executed nothing' --count 1s --pid "$job" loops
kill -CONT "$job"
(
	sleep 1
	kill -KILL "$job"
) &
refuses 'ended while it was counted' --count 20s --pid "$job" loops
kill "$other"
wait "$other" 2>/dev/null
verdict 'bad input' "$why"
