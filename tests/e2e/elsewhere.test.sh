#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Time in libraries that are not in scope: it is that of the line which calls them, and the report says so; what nothing in scope called has
# no line, and the report says where that is.
# needs: root btf python3 gcc
# beside: others
# shellcheck disable=SC2154 # what helpers.sh sets
set -uo pipefail
# shellcheck source=tests/e2e/helpers.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/helpers.sh"
cd "$tmp" || exit 1

cat >work.c <<C
#include "$here/programs/helper.h"
#include <pthread.h>
KEEP void work(uint64_t n)
{
	BURN(n);
	__asm__ volatile("" : : : "memory");
}
static void *run(void *n)
{
	for (;;)
		work((uintptr_t)n);
	return NULL;
}
void start(uint64_t n)
{
	pthread_t t;

	pthread_create(&t, NULL, run, (void *)(uintptr_t)n);
}
C
cat >main.c <<C
#include "$here/programs/helper.h"
void work(uint64_t n);
void start(uint64_t n);
int main(int argc, char **argv)
{
	uint64_t end = now_ns() + (uint64_t)(atof(argv[1]) * 1e9);

	if (argc > 2)
		start(1000000);
	while (now_ns() < end) {
		work(3000000); /* LINE:call */
		BURN(1000000);
		progress();
	}
	return 0;
}
C
if ! gcc -g -O2 -fPIC -shared -o libwork.so.1 work.c -pthread 2>err || ! gcc -g -O2 -o main main.c ./libwork.so.1 2>>err; then
	verdict 'the programs' 'cannot be compiled;' err
	exit 1
fi
line=main.c:$(grep -n LINE:call main.c | cut -d : -f 1)
there="sum(n for s, n in samples.items() if s.endswith('/$line'))"
reported() {
	"$COZBPF" report "$profile" 2>>err | tr '\n' ' ' | tr -s ' ' >text
}

called() {
	profiled --what on-cpu -p progress -- ./main "$(lasting 3)" || why+=" status $?;"
	holds "0.6 < $there / sum(samples.values()) < 0.9" || why+=" samples: $(ask samples);"
	reported
	grep -qE "9[0-9] % of the time of $line is in libwork\.so\.1: -b MAIN -b 'libwork\.so\*' tries what is there\." text ||
		grep -qE "100 % of the time of $line is in libwork" text || why+=' nothing is said;'
}
tried called
verdict 'a row whose time is in a library' "$why" text err

# What is proposed does what it says.
inside() {
	profiled --what on-cpu -p progress -b MAIN -b 'libwork.so*' -- ./main "$(lasting 3)" || why+=" status $?;"
	holds "sum(n for s, n in samples.items() if '/work.c:' in s) > 0.6 * sum(samples.values())" || why+=" samples: $(ask samples);"
	reported
	! grep -q 'is in libwork' text || why+=' it is still elsewhere;'
}
tried inside
verdict 'its lines, as is proposed' "$why" text err

uncalled() {
	profiled --what on-cpu -p progress -- ./main "$(lasting 3)" thread || why+=" status $?;"
	holds 'unattributed > 0.3 * (unattributed + sampled)' || why+=" $(ask 'unattributed, sampled') without a line, and with one;"
	reported
	grep -qE '[3-9][0-9] % of the samples belong to no line.*\(of all samples, [3-9][0-9] % in libwork\.so\.1' text || why+=' nothing is said;'
}
tried uncalled
verdict 'what nothing in scope called' "$why" text err
