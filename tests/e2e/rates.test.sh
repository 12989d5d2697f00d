#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# What a process passes how often: cozbpf list points --rates tells what the program itself counts, and lets it get on meanwhile.
# needs: root btf gcc python3 package:systemtap-sdt-dev
# shellcheck disable=SC2154 # what helpers.sh sets
set -uo pipefail
# shellcheck source=tests/e2e/helpers.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/helpers.sh"
cd "$tmp" || exit 1

# Besides what is passed once for each request, 300 functions that are hot and 2000 that are never called.
python3 - >server.c <<'END'
hot = "".join(f"__attribute__((noipa)) int hot{i}(int x) {{ return x + {i}; }}\n" for i in range(300))
cold = "".join(f"__attribute__((noipa)) int cold{i}(int x) {{ for (int k = 0; k < x; k++) x ^= k * {i}; return x; }}\n" for i in range(2000))
names = lambda what, n: ", ".join(f"{what}{i}" for i in range(n))
print(f"""#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sdt.h>
#include <time.h>
#include <unistd.h>
{hot}{cold}
int (*const hots[])(int) = {{{names("hot", 300)}}};
int (*const colds[])(int) = {{{names("cold", 2000)}}};
__attribute__((noipa)) void answer_request(int fd) {{ (void)!write(fd, "x", 1); DTRACE_PROBE(server, answered); }}
__attribute__((noipa)) void rare(void) {{ __asm__ volatile(""); }}
static long now_ms(void) {{ struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1000 + t.tv_nsec / 1000000; }}
int main(int argc, char **argv)
{{
	int fd = open("/dev/null", O_WRONLY), out = dup(1), x = argc > 2 ? colds[atoi(argv[2])](3) : 0;
	long end = now_ms() + atol(argv[1]) * 1000, next = now_ms(), requests = 0;
	for (long n = 0; now_ms() < end; n++) {{
		for (int i = 0; i < 300000; i++) x = hots[i % 300](x);
		answer_request(fd);
		requests++;
		if (n % 2000 == 0) rare();
		if (now_ms() < next) continue;
		dprintf(out, "at_ms=%ld requests=%ld\\n", now_ms(), requests);
		requests = 0;
		next += 100;
	}}
	return x == 1;
}}""")
END
gcc -O2 -g -o server server.c || exit 1
bpf_before=$(bpf_orphans)

# Requests a second in the lines of a file from one time to another, ms of CLOCK_MONOTONIC.
rate() { # FILE FROM TO
	awk -F '[= ]' -v from="$2" -v to="$3" '/^at_ms=/ { if ($2 > from && $2 <= to) { if (begin) n += $4; else begin = $2; end = $2 } }
		END { print (end > begin ? n * 1000 / (end - begin) : 0) }' "$1"
}
# The lowest and the highest rate of some two seconds meanwhile: each place is looked at in a part of the time, and the machine may have other work in another.
range() { # FILE FROM TO
	awk -F '[= ]' -v from="$2" -v to="$3" '/^at_ms=/ && $2 > from && $2 <= to { at[++k] = $2; sum[k] = sum[k - 1] + $4 }
		END { for (i = 2; i <= k; i++) { for (j = i - 1; j > 1 && at[i] - at[j] < 2000; j--) continue; r = (sum[i] - sum[j]) * 1000 / (at[i] - at[j])
			if (at[i] - at[j] < 2000) continue; if (!low || r < low) low = r; if (r > high) high = r } print low + 0, high + 0 }' "$1"
}
now_ms() {
	python3 -c 'import time; print(time.monotonic_ns() // 1000000)'
}
# The rate that was told of a point.
told() { # POINT
	awk -v point="$1" '$3 == point { print $1 }' out
}
# A complaint unless the rate is so many times one of a range, and so many more, give or take a tenth.
ratio() { # WHAT RATE LOW HIGH TIMES MORE
	awk -v a="${2:-0}" -v low="${3:-0}" -v high="${4:-0}" -v times="$5" -v more="$6" -v what="$1" \
		'BEGIN { if (low <= 0 || a < 0.9 * (times * low + more) || a > 1.1 * (times * high + more)) printf " %s: %s instead of %s times %s to %s;", what, a, times, low, high }'
}

listed() {
	local from to seen
	./server 600 >lines &
	server=$!
	sleep 3
	from=$(now_ms)
	timeout 60 "$COZBPF" list points --rates "$server" >out 2>err </dev/null || why+=" status $?;"
	to=$(now_ms)
	native=$(rate lines 0 "$from")
	during=$(rate lines "$from" "$to")
	for wanted in 'usdt:server:answered' 'answer_request' 'syscall:write'; do
		grep -qE "^ +[0-9.]+  (even|uneven) +$wanted\$" out || why+=" no $wanted;"
	done
	! grep -qE '  (hot[0-9]+|cold[0-9]+|rare|main)$' out || why+=' what does not suit is there;'
	[ "$(grep -cv '^#' out)" -le 20 ] || why+=' more than 20 rows;'
	read -r -a seen <<<"$(range lines "$from" "$to")"
	why+=$(ratio 'the function' "$(told answer_request)" "${seen[@]}" 1 0)$(ratio 'the probe' "$(told usdt:server:answered)" "${seen[@]}" 1 0)
	# The lines are written as well.
	why+=$(ratio 'the call' "$(told syscall:write)" "${seen[@]}" 1 10)
	awk -v a="$during" -v b="$native" 'BEGIN { exit !(a >= 0.9 * b) }' || why+=" $during requests a second meanwhile, $native before;"
	why+=$(left_over "$server")
	kill "$server"
	wait "$server"
}
tried listed
verdict 'list points --rates' "$why" out err

# Of a process whose children do the work.
children() {
	local from to seen
	"$programs/answers" 600 2 >lines &
	server=$!
	sleep 1
	from=$(now_ms)
	timeout 60 "$COZBPF" list points --rates "$server" >out 2>err </dev/null || why+=" status $?;"
	to=$(now_ms)
	# A request is two calls.
	read -r -a seen <<<"$(range lines "$from" "$to")"
	why+=$(ratio 'the call' "$(told syscall:sendto)" "${seen[@]}" 2 0)
	read -r -a workers <"/proc/$server/task/$server/children"
	kill "${workers[@]}"
	wait "$server"
}
tried children
verdict 'the children of a process' "$why" out err

why=
"$COZBPF" list points --rates ./server >out 2>complaint && why+=' a file is accepted;'
"$COZBPF" list functions --rates $$ >>out 2>>complaint && why+=' functions are accepted;'
[ "$(wc -l <complaint)" -eq 2 ] && [ ! -s out ] || why+=' not two complaints;'
verdict 'what has no rates' "$why" complaint
