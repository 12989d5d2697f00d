#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Waits as targets: which place and kind they have, what is drawn by default, what cannot be asked for.
# needs: root btf python3 gcc
# shellcheck disable=SC2154 # what helpers.sh sets
set -uo pipefail
# shellcheck source=tests/e2e/helpers.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/helpers.sh"
cd "$tmp" || exit 1

# Of a round of 5 ms some 3.5 are a wait: for a timer, another process, a packet of one, or a file that must be on its disk. The other process has
# a CPU of its own: whom it wakes would wait behind it else, as behind any other program, and would have no verdict.
cat >waiter.c <<'END'
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>
static int fds[2];
static char page[4096] __attribute__((aligned(4096)));
static volatile unsigned long sink;
static void use_cpu(int cpu) { cpu_set_t s; CPU_ZERO(&s); CPU_SET(cpu, &s); (void)sched_setaffinity(0, sizeof(s), &s); }
static void rest(long us) { struct timespec t = {0, us * 1000}; nanosleep(&t, NULL); }
__attribute__((noipa)) void round_done(void) { __asm__ volatile(""); }
__attribute__((noipa)) static void work(void) { for (int i = 0; i < 1500000; i++) sink += i; }
__attribute__((noipa)) static void wait_timer(void) { struct timespec t = {0, 3500000}; nanosleep(&t, NULL); __asm__ volatile(""); }
__attribute__((noipa)) static void wait_answer(void) { char c = 'x'; if (write(fds[1], &c, 1) != 1 || read(fds[1], &c, 1) != 1) _exit(3); }
__attribute__((noipa)) static void wait_disk(void) { if (pwrite(fds[0], page, sizeof(page), 0) != sizeof(page)) _exit(4); }
static void tcp(void)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof(at);
	int l = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(l, (void *)&at, n) || listen(l, 1) || getsockname(l, (void *)&at, &n)) _exit(5);
	fds[1] = socket(AF_INET, SOCK_STREAM, 0);
	if (connect(fds[1], (void *)&at, n)) _exit(5);
	fds[0] = accept(l, NULL, NULL);
}
int main(int argc, char **argv)
{
	const char *kind = argc > 1 ? argv[1] : "timer";
	void (*wait)(void) = wait_timer;
	if (!strcmp(kind, "disk")) {
		fds[0] = open(argv[2], O_RDWR | O_CREAT | O_DIRECT | O_DSYNC, 0600);
		if (fds[0] < 0) return 6;
		wait = wait_disk;
	} else if (strcmp(kind, "timer") != 0) {
		if (!strcmp(kind, "network")) tcp(); else if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds)) return 7;
		wait = wait_answer;
		if (fork() == 0) {
			char c;
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			use_cpu(1);
			while (read(fds[0], &c, 1) == 1) { rest(3500); if (write(fds[0], &c, 1) != 1) break; }
			_exit(0);
		}
		use_cpu(0);
	}
	for (time_t end = time(NULL) + 12; time(NULL) < end;) { wait(); work(); round_done(); }
	return 0;
}
END
gcc -O2 -g -o waiter waiter.c || exit 1

# The value of an expression over the rows of the first point's table: those that experiments tried, and
# all of them, with those that have a slope alone.
rows() {
	"$COZBPF" report --json profile.jsonl 2>/dev/null | python3 -c '
import json, sys
every = json.load(sys.stdin)["points"][0]["lines"]
rows = [r for r in every if r["experiments"]]
print(eval(sys.argv[1]))' "$1"
}

# A profile of the program, and the report in `err`.
profile_waiter() { # OPTION... -- ARGUMENT...
	local options=()
	while [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	rm -f profile.jsonl
	timeout 60 "$COZBPF" run --keep-root -q -o profile.jsonl -p round_done "${options[@]}" -- ./waiter "${@:2}" >out 2>err </dev/null
}

# The data is a file in the build directory, which is more likely to be on a disk than that for temporary files.
data=$BUILD/waits-$$.data
waits() { # KIND
	local function=wait_answer
	[ "$1" != timer ] || function=wait_timer
	[ "$1" != disk ] || function=wait_disk
	profile_waiter --follow none -- "$1" "$data" || why+=" status $?;"
	rm -f -- "$data"
	[ "$(rows "any(r['wait'] == '$1' and r['function'] == '$function' and ' [$1]' in r['selected'] for r in rows)")" = True ] ||
		why+=" no row for it: $(rows '[(r["selected"], r["function"], r["wait"]) for r in rows]');"
	[ "$(rows 'len({r["wait"] for r in rows if r["wait"]})')" = 1 ] || why+=" other kinds: $(rows '[r["selected"] for r in rows]');"
	[ "$(rows 'any(r["function"] == "work" and not r["wait"] for r in rows)')" = True ] || why+=' the line that runs has no row;'
	if [ "$1" != disk ]; then
		# The first row, and worth what it takes: 70 %.
		[ "$(rows 'rows[0]["wait"] is not None and rows[0]["verdict"] == "helps" and 0.5 < rows[0]["share"] <= 1')" = True ] ||
			why+=" first: $(rows '(rows[0]["selected"], rows[0]["verdict"], rows[0]["share"])');"
		[ "$(rows '20 < 100 * rows[0]["curve"]["at"][1]["effect"] < 50')" = True ] || why+=" at 50 %: $(rows 'rows[0]["curve"]["at"][1]');"
		grep -qE "\[$1\] and the like: threads wait there" err || why+=' the report does not say what such a row is;'
	fi
	none_left || why+=' something is left;'
}
kinds=(timer process network)
case $(stat -f -c %T "$BUILD") in
tmpfs | ramfs) printf 'skip disk: the build directory is not on a disk\n' ;;
*) kinds+=(disk) ;;
esac
for kind in "${kinds[@]}"; do
	tried waits "$kind"
	verdict "a wait: $kind" "$why" out err
done

no_waits() {
	profile_waiter --what on-cpu -- || why+=" status $?;"
	[ "$(rows 'rows != [] and not any(r["wait"] for r in every)')" = True ] || why+=" rows $(rows '[r["selected"] for r in every]');"
}
tried no_waits
verdict 'without waits' "$why" out err

whole_kind() {
	profile_waiter --fixed-class timer -- || why+=" status $?;"
	[ "$(rows '[r["selected"] for r in rows] == ["[timer]"] and rows[0]["verdict"] == "helps"')" = True ] ||
		why+=" rows $(rows '[(r["selected"], r["verdict"]) for r in rows]');"
}
tried whole_kind
verdict 'all waits of a kind' "$why" out err

no_such_kind() {
	profile_waiter --fixed-class disk -- || why+=" status $?;"
	[ "$(rows 'rows[0]["undecided_why"]' | grep -c 'no such wait')" = 1 ] || why+=" it says $(rows 'rows[0]["undecided_why"]');"
	tr -s '\n ' ' ' <err | found -E "Where the program's threads ran most, by CPU time in its lines: [^ ]*waiter\.c:[0-9]+ \([0-9]+ %\)" ||
		why+=' the report does not say what runs;'
}
tried no_such_kind
verdict 'a kind that does not occur' "$why" out err

# Two threads on one CPU: with one for each, both would be twice as fast.
for_a_cpu() {
	rm -f profile.jsonl
	timeout 60 "$COZBPF" run --keep-root -q -o profile.jsonl -p progress -- taskset -c 0 "$programs/steady" 10 >out 2>err </dev/null || why+=" status $?;"
	[ "$(rows 'any(r["selected"] == "[cpu]" and r["wait"] == "cpu" and r["verdict"] == "helps" for r in rows)')" = True ] ||
		why+=" rows $(rows '[(r["selected"], r["verdict"]) for r in rows]');"
	[ "$(rows '[15 < 100 * r["curve"]["at"][1]["effect"] < 35 for r in rows if r["wait"]]')" = '[True]' ] ||
		why+=" at 50 %: $(rows '[r["curve"]["at"][1] for r in rows if r["wait"]]');"
	grep -q '^\[cpu\]: threads are ready to run' err || why+=' the report does not say what such a row is;'
	none_left || why+=' something is left;'
}
tried for_a_cpu
verdict 'a wait for a CPU' "$why" out err

refuse() { # NAME PATTERN OPTION...
	local name=$1 pattern=$2
	shift 2
	rm -f "$profile"
	timeout 30 "$COZBPF" run --keep-root -q -o "$profile" -p round_done "$@" -- ./waiter >out 2>complaint </dev/null
	refusal "$name" "$pattern" $?
}
refuse 'a kernel without task work' 'waits cannot be tried here: .*Linux 6.18' --disable task_work --what disk
refuse 'waits by pthread calls' 'waits cannot be tried here: --sync pthread' --sync pthread --fixed-class timer
refuse 'inclusive waits' 'waits cannot be tried here: --attribution inclusive' --attribution inclusive --what all
refuse 'a wait at a line that is not there' 'waiter.c:9999' --fixed-line 'waiter.c:9999 [disk]'
refuse 'a CPU with slept pauses' 'waiting for a CPU cannot be tried here: .*--pay hold' --pay sleep --fixed-class cpu
refuse 'a CPU at a place' 'a thread waits for a CPU wherever it is; use --fixed-class cpu' --fixed-line 'waiter.c:9 [cpu]'
