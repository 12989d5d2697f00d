#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Names that mean something else than they seem to: functions that share their code, names that two
# files or functions have, patterns that match nothing, options behind the program.
# needs: root btf python3 gcc g++
# beside: others
# shellcheck disable=SC2154 # what helpers.sh sets
set -uo pipefail
# shellcheck source=tests/e2e/helpers.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/helpers.sh"
cd "$tmp" || exit 1

# Three functions with the same instructions, of 2000, 1000 and 500 calls; one with plain aliases;
# one that another one only chooses.
mkdir one two
# Both work for so long before they begin that an experiment has begun by then.
cat >burn.h <<'END'
#include <time.h>
static volatile unsigned long burnt;
static void burn(long ms)
{
	clock_t end = clock() + ms * (CLOCKS_PER_SEC / 1000);

	while (clock() < end)
		for (int i = 0; i < 100000; i++)
			burnt = burnt + 1; /* LINE:burn */
}
END
cat >folded.c <<'END'
#include "burn.h"
#define CODE { for (unsigned i = 0; i < n; i++) sink += i; }
static volatile unsigned sink;
__attribute__((noinline)) void first(unsigned n) CODE
__attribute__((noinline)) void second(unsigned n)
{
	for (unsigned i = 0; i < n; i++) sink += i; /* LINE:second */
}
__attribute__((noinline)) static void third(unsigned n) CODE
__attribute__((noinline)) void strong(void) { sink++; }
void weak(void) __attribute__((alias("strong"), weak));
void __strong(void) __attribute__((alias("strong")));
static void chosen_code(void) { sink += 2; }
static void *choose(void) { return chosen_code; }
void chosen(void) __attribute__((ifunc("choose")));
int main(void)
{
	burn(1200);
	for (int i = 0; i < 2000; i++) {
		first(10);
		if (i % 2 == 0) second(10);
		if (i % 4 == 0) third(10);
		strong();
		chosen();
	}
	return 0;
}
END
# A static function of one name in two files of one name, and an overloaded one.
for d in one two; do
	cat >"$d/part.cpp" <<END
static volatile unsigned sink;
__attribute__((noinline)) static void helper(unsigned n)
{
	sink += n$([ "$d" = one ] && echo ' * 3'); /* LINE:helper */
}
void $d(unsigned n) { helper(n); helper(n + 1); }
END
done
cat >main.cpp <<'END'
#include "burn.h"
static volatile double sum;
void one(unsigned n);
void two(unsigned n);
__attribute__((noinline)) void work(int n) { sum = sum + n; }
__attribute__((noinline)) void work(double n) { sum = sum * n; }
int main(int argc, char **)
{
	burn(argc > 1 ? 3000 : 1200);
	for (unsigned i = 0; i < 300; i++) {
		one(i);
		work(1);
		if (i < 100) two(i);
		if (i < 100) work(2.0);
	}
}
END
g++ -g -O1 -fno-ipa-icf -o names main.cpp one/part.cpp two/part.cpp || exit 1
# By the linker, and, where there is none that can, by the compiler.
linker=gold
ld.gold --version >/dev/null 2>&1 || linker=lld
gcc -g -O1 -fno-ipa-icf -ffunction-sections "-fuse-ld=$linker" -Wl,--icf=all -o folded folded.c 2>err ||
	{ linker=compiler && gcc -g -O2 -o folded folded.c; } || exit 1
others='(first|third)'

visits() { # WANTED PROGRAM POINT OPTION...: complains if it is passed another number of times
	local wanted=$1 program=$2 point=$3 n=none turn
	shift 3
	for turn in 1 2 3; do
		profiled --fixed-line "burn.h:$(grep -n LINE:burn burn.h | cut -d : -f 1)" --fixed-speedup 0 --experiment 6000 \
			-p "p=$point" "$@" -- "./$program"
		n=$(ask 'sum(x["points"]["p"]["delta"] for x in experiments)')
		[ "$n" != "$wanted" ] || return 0
	done
	printf ' %s visits of %s instead of %s;' "$n" "$point" "$wanted"
}

folded_functions() {
	local why='' line
	line=folded.c:$(grep -n 'LINE:second' folded.c | cut -d : -f 1)
	bad "functions folded by $linker: a function" "-p second: its code is also that of .*$others" \
		run -q -o no -p second -- ./folded
	bad 'a sampled function' "its code is also that of .*$others" run -q -o no -p sampled:second -- ./folded
	if [ "$linker" != compiler ]; then
		bad 'a line' "its code is also that of .*$others" run -q -o no -p "$line" -- ./folded
		bad 'a target' "(share|made one)" run -q -o no -l "$line" -p main -- ./folded
	fi
	bad 'a target by function' 'share' run -q -o no --granularity function -l second -p main -- ./folded
	timeout 20 "$COZBPF" list points ./folded >out 2>err || why+=' list points failed;'
	! grep -qxE 'first|second|chosen' out || why+=' it proposes what run refuses;'
	grep -qE '^# .*second.* share their code' out || why+=' it does not say what is shared;'
	! grep -qE '^# .*weak' out || why+=' an alias is another function;'
	timeout 20 "$COZBPF" list functions ./folded >out 2>>err || why+=' list functions failed;'
	grep -qE '^# .*second.* share their code' out || why+=' list functions does not say it;'
	# Whatever list points proposes, run takes.
	verdict 'lists say what is shared, and propose no function that only chooses' "$why" out err
}

folded_figures() {
	local why='' all=3500 at
	[ "$linker" != compiler ] || all=2500
	why+=$(visits "$all" folded first --shared-code)
	grep -qE "warning: -p p: its code is also that of .*$others" err || why+=' nothing is said at the start;'
	timeout 20 "$COZBPF" report "$profile" >report 2>&1
	tr '\n' ' ' <report | found 'p counts visits of ' || why+=' nothing is said in the report;'
	verdict 'visits of functions that share their code are those of all of them' "$why" err report
	why=''
	at=$(nm folded | sed -n 's/^0*\([0-9a-f]*\) T first$/\1/p')
	why+=$(visits "$all" folded "folded+0x$at")
	grep -q 'its code is also that of' err || why+=' nothing is said;'
	why+=$(visits 2000 folded weak)
	! grep -q 'its code' err || why+=' an alias is another function;'
	verdict 'an address is enough, and an alias is no other function' "$why" err
}

several_of_a_name() {
	local why='' line at
	line=$(grep -n 'LINE:helper' one/part.cpp | cut -d : -f 1)
	bad 'a line of two files' "one/part.cpp and .*two/part.cpp have code for line $line" run -q -o no -p "part.cpp:$line" -- ./names
	bad 'a target in two files' "one/part.cpp and .*two/part.cpp" run -q -o no -l "part.cpp:$line" -p main -- ./names
	bad 'a sampled line of two files' "one/part.cpp and .*two/part.cpp" run -q -o no -p "sampled:part.cpp:$line" -- ./names
	bad 'a static function in two files' "helper.* at .*one/part.cpp:[0-9]+, helper.* at .*two/part.cpp" \
		run -q -o no -p helper -- ./names
	bad 'its samples' "helper.* at .*one/part.cpp:[0-9]+, helper" run -q -o no -p sampled:helper -- ./names
	bad 'an overloaded function' 'work\((int|double)\) at .*, work\((int|double)\) at' run -q -o no -p work -- ./names
	why+=$(visits 200 names "two/part.cpp:$line")
	why+=$(visits 100 names 'work(double)')
	at=$(nm names | sed -n 's/^0*\([0-9a-f]*\) t _ZL6helperj$/\1/p' | sort | head -n 1)
	why+=$(visits 600 names "names+0x$at")
	verdict 'each can be named' "$why" err
}

unmatched() { # OPTION PATTERN
	local why=''
	timeout 30 "$COZBPF" run --no-report -o no.jsonl "$1" "$2" -p main -- ./names long >out 2>err || why+=' it failed;'
	[ "$(grep -cF -- "$1 '$2' matches" err)" -eq 1 ] || why+=' no warning;'
	verdict "$1 that matches nothing" "$why" err
}

# They are the program's, and are left to it.
behind_the_program() {
	local why=''
	printf '#!/bin/sh\necho "$@"\n' >script
	chmod 755 script
	timeout 30 "$COZBPF" run --no-report -o no.jsonl -- ./script -p point --other >out 2>err || why+=' it failed;'
	[ "$(cat out)" = '-p point --other' ] || why+=' the program got something else;'
	grep -q "'-p' is behind ./script" err || why+=' nothing is said;'
	timeout 30 "$COZBPF" run --no-report -o no.jsonl -p syscall:write -- ./script --duration=3 >out 2>err || why+=' it failed;'
	! grep -q behind err || why+=' it is said of a run with a point;'
	verdict 'options behind the program' "$why" out err
}

unmatched --binary 'libnosuch*'
unmatched --only 'nosuch'
behind_the_program
folded_functions
folded_figures
several_of_a_name
