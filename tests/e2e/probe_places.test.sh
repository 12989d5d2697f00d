#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Probes stand only where instructions begin: data that is called a function, and notes of probes that are forged, are left alone. Returns are counted
# without touching the stack: a function may begin on one thread and return on another.
# needs: root btf gcc python3
# beside: others
# shellcheck disable=SC2154 # what helpers.sh sets
set -uo pipefail
# shellcheck source=tests/e2e/helpers.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/helpers.sh"
cd "$tmp" || exit 1
length=9000

# Every way to leave a function, and a function that others jump to.
returns() {
	local why='' name points=() n half
	for name in plain repeated bound pops direct by_register by_memory by_flag inside again split by_table by_label twice nested jumps_out half thunk; do
		points+=(-p "$name=$name%return")
	done
	whole_run --fixed-speedup 0 "${points[@]}" "$@" -- "$programs/exits" 2000 1.5 || why+=' it failed;'
	n=$(said rounds) half=$(said taken)
	[ "$n" = 2000 ] && [ "$half" = 1000 ] || why+=" $n rounds, $half taken;"
	for name in plain repeated bound pops direct by_register by_memory by_flag inside again split by_table by_label twice; do
		why+=$(counts "$name=$n")
	done
	why+=$(counts nested="$((2 * n))" jumps_out="$half" half="$half" thunk="$((3 * n + 2 * half))")
	verdict "returns, tail calls, conditional ones, recursion, longjmp: all are counted${*:+, $*}" "$why" out err
}

refusals() {
	local why='' name reason status
	while read -r name reason; do
		profiled -p "$name%return" -- "$programs/exits" 10 0
		status=$?
		[ "$status" -eq 125 ] && [ "$(wc -l <err)" -eq 1 ] && grep -q "returns of $name .*: .*$reason" err || why+=" $name: status $status;"
	done <<-'END'
		runs_on it goes on in what stands behind it
		shared another function goes on in the middle of it
		sharing it goes on in the middle of shared
		mixed it does not consist of instructions alone
		never it never returns
		own_middle it calls its own middle
	END
	verdict 'functions whose returns cannot be told are refused' "$why" err
}

fibers() {
	local why='' n
	whole_run --fixed-speedup 0 -p begin=handle -p end=handle%return -- "$programs/fibers" 2000 1 || why+=" status $?;"
	n=$(said rounds)
	[ "$n" = 2000 ] || why+=" $n rounds;"
	why+=$(counts begin="$n" end="$n")
	verdict 'a function that begins on one thread and returns on another' "$why" out err

	why=''
	whole_run --fixed-speedup 0 --latency handle=handle,handle%return -- "$programs/fibers" 2000 1 || why+=" status $?;"
	[ "$(said rounds)" = 2000 ] || why+=" $(said rounds) rounds;"
	verdict 'its latency' "$why" out err
}

cat >reader.c <<'END'
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>
extern const unsigned char table[4096], table2[64];
__asm__(".text\n.globl table\n.type table, @function\ntable:\n.rept 512\n.8byte 0x5090509050905090\n.endr\n.size table, . - table\n"
	".globl table2\n.type table2, @function\ntable2: .rept 64\n.byte 0x50\n.endr\n.size table2, . - table2\n");
/* A probe that is said to be in the middle of an instruction, and one in data. */
uint64_t constant(void);
__asm__(".type constant, @function\nconstant: .cfi_startproc\nmovabs $0x9090909090909090, %rax\nret\n.cfi_endproc\n.size constant, . - constant\n"
	".section .stapsdt.base, \"aG\", \"progbits\", .stapsdt.base, comdat\n.weak _.stapsdt.base\n_.stapsdt.base: .space 1\n.size _.stapsdt.base, 1\n"
	".macro probe at, name\n.section .note.stapsdt, \"\", \"note\"\n.balign 4\n.4byte 8, 994f - 993f, 3\n.asciz \"stapsdt\"\n"
	"993: .8byte \\at, _.stapsdt.base, 0\n.asciz \"forged\"\n.asciz \"\\name\"\n.asciz \"\"\n994: .balign 4\n.text\n.endm\n"
	"probe constant + 3, middle\nprobe table + 17, data\n");
static volatile unsigned int sum;
__attribute__((noipa)) static void work(int n)
{
	for (int i = 0; i < n; i++) sum += (unsigned int)i * 7; /* WORK */
}
__attribute__((noipa)) void seldom(void) { usleep(1000); }
__attribute__((noipa)) static int wrong(void)
{
	int n = 0;
	for (int i = 0; i < 4096; i++) n += table[i] != (i & 1 ? 0x50 : 0x90);
	for (int i = 0; i < 64; i++) n += table2[i] != 0x50;
	return n + (constant() != 0x9090909090909090);
}
int main(void)
{
	long bad = 0, rounds = 0;
	do {
		for (int i = 0; i < 10; i++) work(20000);
		bad += wrong();
		if (++rounds % 16 == 0) seldom();
	} while (rounds < 10000000 && access("stop", F_OK));
	printf("rounds=%ld wrong=%ld\n", rounds, bad);
	return 0;
}
END
gcc -O2 -g -o reader reader.c || exit 1

# A profile that says of data that threads were found in it.
forge() {
	python3 - "$(nm reader | sed -n 's/ [tT] table2$//p')" <<-'END'
		import json, sys
		counts = " ".join(f"{int(sys.argv[1], 16) + i:x}:100" for i in range(64))
		for line in open("samples.jsonl", encoding="utf-8"):
		    record = json.loads(line)
		    if record["type"] != "addresses":
		        print(line, end="")
		    elif record["path"].endswith("/reader"):
		        print(json.dumps(dict(record, counts=counts)))
	END
}

# Whatever puts probes at functions that nobody named.
reads_itself() {
	local why='' reader
	./reader >read_out &
	reader=$!
	"$COZBPF" attach "$reader" -q -o samples.jsonl -d 3 >out 2>err </dev/null || why+=" attach: status $?;"
	timeout 30 "$COZBPF" list points --rates "$reader" >>out 2>>err </dev/null || why+=" list: status $?;"
	timeout 30 "$COZBPF" annotate --count 2s --pid "$reader" "reader.c:$(grep -n WORK reader.c | cut -d: -f1)" samples.jsonl >>out 2>>err </dev/null ||
		why+=" annotate: status $?;"
	forge >forged.jsonl
	! timeout 30 "$COZBPF" annotate --count 2s --pid "$reader" table2 forged.jsonl >>out 2>>err </dev/null || why+=' data is counted;'
	grep -q 'no instruction of .*reader surely begins at .*: leave out --count$' err || why+=' that is not said;'
	touch stop
	wait "$reader" || why+=" the program ended with status $?;"
	grep -q 'wrong=0$' read_out || why+=" it says $(cat read_out);"
	verdict 'a program whose data is called functions reads its data' "$why" read_out err out
}

# Those that someone did name.
places_refused() {
	local why='' point reason status
	while read -r point reason; do
		profiled -p "$point" -- ./reader
		status=$?
		[ "$status" -eq 125 ] && [ "$(wc -l <err)" -eq 1 ] && grep -q "no instruction of .*reader surely begins at .*$reason" err || why+=" $point: status $status;"
	done <<-'END'
		table nothing calls it
		table+8 nothing calls it
		usdt:forged:middle in the middle of one
		usdt:forged:data nothing calls it
	END
	verdict 'points where no instruction begins are refused' "$why" err
}

# A library that an ordinary user's process and another one have, which is not in scope: it notices nothing where one process alone is profiled.
cat >shared.c <<'END'
unsigned long shared_work(unsigned long x) { return x * 3 + 1; }
END
cat >caller.c <<'END'
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
unsigned long shared_work(unsigned long x);
static double cpu_s(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}
/* CALLS FILE [any]: turns of so many calls until the file is there; the nanoseconds of a call in the worst turn. With a third word another thread
 * makes them, and main ends. */
static void *turns(void *arg)
{
	const struct timespec pause = {0, 1000000};
	char **argv = arg;
	long calls = atol(argv[1]);
	double worst = 0;
	unsigned long x = 0;
	do {
		double begin = cpu_s(), took;
		for (long i = 0; i < calls; i++) x = shared_work(x);
		took = (cpu_s() - begin) / (double)calls;
		worst = took > worst ? took : worst;
		nanosleep(&pause, NULL);
	} while (access(argv[2], F_OK));
	printf("%.1f\n", worst * 1e9);
	exit(x == 1);
}
int main(int argc, char **argv)
{
	pthread_t t;
	if (argc < 4) turns(argv);
	if (pthread_create(&t, NULL, turns, argv)) return 1;
	pthread_exit(NULL);
}
END
gcc -O2 -g -shared -fPIC -o libshared.so shared.c && gcc -O2 -g -pthread -o caller caller.c -L. -lshared -Wl,-rpath,"$tmp" || exit 1

others_unharmed() {
	local why='' follow ours theirs alone all
	./caller 100 never >/dev/null &
	ours=$!
	for follow in exec all; do
		./caller 20000 "$follow.done" >"$follow.theirs" &
		theirs=$!
		"$COZBPF" attach "$ours" --follow "$follow" -q -o "$follow.jsonl" -p work=libshared.so:shared_work -d 3 >"$follow.out" 2>&1 </dev/null ||
			why+=" --follow $follow: status $?;"
		touch "$follow.done"
		wait "$theirs" || why+=" --follow $follow: the other ended with status $?;"
		grep -q "Progress point 'work': [1-9]" "$follow.out" || why+=" --follow $follow: no visits;"
	done
	alone=$(cat exec.theirs) all=$(cat all.theirs)
	kill "$ours"
	awk -v alone="$alone" -v all="$all" 'BEGIN { exit !(all > 5 * alone) }' ||
		why+=" a call of the other process takes $alone ns while one is profiled alone, $all with its children;"
	[ "$(grep -c 'warning: .* slows down all processes that map .*libshared.so' all.out)" = 1 ] || why+=' not said;'
	! grep -q 'slows down all' exec.out || why+=' said of one process alone;'
	verdict 'a process out of scope is not slowed by a point in its library' "$why" exec.out all.out
}

# The kernel knows a process by its first thread. Without that its probes are in all others as well.
others_warned_of() {
	local why='' ours
	./caller 100 never any >/dev/null &
	ours=$!
	sleep 0.3
	"$COZBPF" attach "$ours" --follow exec -q -o leaderless.jsonl -p work=libshared.so:shared_work -d 2 >leaderless.out 2>&1 </dev/null ||
		why+=" status $?;"
	kill "$ours"
	grep -q "Progress point 'work': [1-9]" leaderless.out || why+=' no visits;'
	grep -q 'warning: .* slows down all processes that map .*libshared.so.* first thread has ended' leaderless.out || why+=' not said;'
	verdict 'a point in a library of a process whose main has ended: others are slowed, which is said' "$why" leaderless.out
}

returns
returns --disable uprobe_multi
refusals
fibers
reads_itself
places_refused
others_unharmed
others_warned_of
