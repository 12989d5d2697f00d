#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# What a process passes how often: cozbpf list points --rates, and what a run without a point proposes.
# needs: root btf gcc package:systemtap-sdt-dev
# beside: others
# shellcheck disable=SC2154 # what helpers.sh sets
set -uo pipefail
# shellcheck source=tests/e2e/helpers.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/helpers.sh"
cd "$tmp" || exit 1

cat >server.c <<'END'
#include <fcntl.h>
#include <sys/sdt.h>
#include <time.h>
#include <unistd.h>
__attribute__((noipa)) int hot(int x) { return x + 1; }
__attribute__((noipa)) void answer_request(int fd) { (void)!write(fd, "x", 1); DTRACE_PROBE(server, answered); }
__attribute__((noipa)) void rare(void) { __asm__ volatile(""); }
int main(void)
{
	int fd = open("/dev/null", O_WRONLY), x = 0;
	for (int n = 0; n < 40000; n++) {
		struct timespec pause = {0, 2000000};
		for (int i = 0; i < 20000; i++) x = hot(x);
		answer_request(fd);
		if (n % 2000 == 0) rare();
		nanosleep(&pause, NULL);
	}
	return x == 1;
}
END
gcc -O2 -g -o server server.c || exit 1
bpf_before=$(bpf_orphans)
./server &
server=$!

why=
timeout 60 "$COZBPF" list points --rates "$server" >out 2>err </dev/null || why+=" status $?;"
for wanted in 'usdt:server:answered' 'answer_request' 'syscall:write'; do
	grep -qE "^ +[0-9.]+  $wanted\$" out || why+=" no $wanted;"
done
for unwanted in hot rare main; do
	! grep -qE "  $unwanted\$" out || why+=" $unwanted is there;"
done
# All three are the same visits.
rates=$(awk '/usdt:server:answered|  answer_request|syscall:write/ { print $1 }' out | sort -n)
[ "$(awk 'NR == 1 { low = $1 } { high = $1 } END { print (NR == 3 && high < 1.2 * low + 2) }' <<<"$rates")" = 1 ] || why+=" rates $rates;"
why+=$(left_over "$server")
verdict 'list points --rates' "$why" out err

why=
timeout 60 "$COZBPF" attach "$server" -q -o attach.jsonl -d "$(lasting 5)" >out 2>err </dev/null || why+=" status $?;"
grep -qE -- '-p answer_request   \([0-9]+ a second\)' out || why+=' the function is not proposed;'
grep -qE -- '-p usdt:server:answered   \(' out || why+=' the probe is not proposed;'
kill -0 "$server" || why+=' the server has ended;'
verdict 'attach without a point' "$why" out err
kill "$server"

why=
timeout 60 "$COZBPF" run --keep-root -q -o run.jsonl -d "$(lasting 8)" -- ./server >out 2>err </dev/null || why+=" status $?;"
grep -q 'There is no progress point' err || why+=' it does not say that there is no point;'
grep -qE -- '-p answer_request   \([0-9]+ a second\)' err || why+=' the function is not proposed;'
none_left || why+=' something is left;'
verdict 'run without a point' "$why" out err

why=
"$COZBPF" list points --rates ./server >out 2>complaint && why+=' a file is accepted;'
"$COZBPF" list functions --rates $$ >>out 2>>complaint && why+=' functions are accepted;'
[ "$(wc -l <complaint)" -eq 2 ] && [ ! -s out ] || why+=' not two complaints;'
verdict 'what has no rates' "$why" complaint
