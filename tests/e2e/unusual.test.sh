#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Programs that something of pauses or of the preloaded library could harm: with a limit of CPU time, set-uid, those that dump core while other
# threads are paused, with LeakSanitizer and ThreadSanitizer, and 32-bit children. (vfork: follow.test.sh.)
# needs: root btf python3
# beside: others
# shellcheck disable=SC2154 # what helpers.sh sets
set -uo pipefail
directory=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd) || exit 1
# shellcheck source=tests/e2e/helpers.sh
source "$directory/helpers.sh"
cd "$tmp" || exit 1

options_for() { # PROGRAM
	options=(-p progress --fixed-line "$(line_of "$1" burn)" --fixed-speedup 100 --experiment 100 --cool-off 0)
}

# Pauses that were held, and slept: lines of --trace-payments.
stops() { # [limit]
	rm -f trace
	profiled "${options[@]}" --trace-payments trace -- "$programs/limited" 2000 "$@" || why+=" status $?;"
	# Calibration holds threads of cozbpf itself, which are not sampled.
	held=$(awk '$1 == "tick" { program[$2] } $1 == "hold" { n[$2]++ } END { for (t in n) if (t in program) sum += n[t]; print sum + 0 }' trace)
	slept=$(grep -c '^shim ' trace)
}
limited() {
	local held slept
	stops
	((held > 0)) || why+=' without a limit nothing was held;'
	stops limit
	((held == 0 && slept > 0)) || why+=" with a limit $held pauses were held, $slept slept;"
}
# Without a handler there is no pause at all, and the run says so.
unhandled() {
	local victim
	"$programs/limited" 1000000 limit >/dev/null &
	victim=$!
	rm -f -- "$profile"
	timeout -k 5 "$limit" "$COZBPF" attach --inject=never -q -o "$profile" "$victim" -d 2 "${options[@]}" >report 2>&1 || why+=" status $?;"
	kill -KILL "$victim"
	wait "$victim" 2>/dev/null
	grep -q 'limit of CPU time' report || why+=' the report does not name the limit;'
}
options_for limited
profiled -p progress -- "$programs/launch"
if holds 'runs[0]["pay"] == "hold"'; then
	tried limited
	verdict 'a limit of CPU time: pauses are slept' "$why" err
	tried unhandled
	verdict 'a limit of CPU time: without a handler no pause' "$why" report
else
	printf 'skip a limit of CPU time: this kernel does not hold threads\n'
fi

# Its descriptors and its environment are what they are without us.
cp "$programs/facts" suid && chown nobody suid && chmod 4755 suid
timeout 60 ./suid >native.out </dev/null
profiled -p progress -- ./suid </dev/null && why='' || why=" status $?;"
diff <(grep -v '^Sig' native.out) <(grep -v '^Sig' out) >difference || why+=' what it sees differs;'
[ -s native.out ] || why+=' it told nothing;'
verdict 'a set-uid program' "$why" difference err
profiled --sync pthread -p progress -- ./suid </dev/null
status=$?
cp err complaint
refusal 'a set-uid program, --sync pthread' 'suid has rights of its own .*use --sync sched' "$status"

# One thread dies of a signal while others are paused.
options_for crash
ulimit -c unlimited
for pay in hold sleep; do
	rm -f core*
	profiled --pay "$pay" "${options[@]}" -- "$programs/crash" 1 segv
	status=$?
	[ "$status" -ne 125 ] || continue
	[ "$status" -eq 139 ] && why='' || why=" status $status;"
	if [ "$(cat /proc/sys/kernel/core_pattern)" = core ]; then
		readelf -n core* 2>/dev/null | grep -c NT_PRSTATUS >threads
		[ "$(cat threads)" -eq 4 ] || why+=" a core file of $(cat threads) threads;"
	fi
	verdict "a crash while others are paused, $pay" "$why" err
done
ulimit -c 0

# Their runtimes stop threads, intercept signals, and look through memory.
sanitized() { # KIND STATUS
	profiled --pay sleep "${options[@]}" -- "./$1" 1.5
	status=$?
	[ "$status" -eq "$2" ] || why+=" status $status, not $2;"
	holds 'total("hits") > 0' || why+=' no hit in the line;'
}
for kind in leak thread; do
	wanted=0
	[ "$kind" = thread ] || wanted=23
	cc -O1 -g -pthread -fsanitize="$kind" -o "$kind" "$here/programs/crash.c" 2>complaint && ./$kind 0.1 2>native.err
	if [ "$?" -ne "$wanted" ]; then
		printf 'skip %s sanitizer: it cannot be built, or does not run here\n' "$kind"
		continue
	fi
	tried sanitized "$kind" "$wanted"
	[ "$kind" = thread ] || grep -q '1234 byte(s) leaked' err || why+=' the leak is not found;'
	verdict "a program with the $kind sanitizer" "$why" err
done

# A child of 32 bits, which takes neither library nor handler: 7 is its status. Where the kernel has no 32-bit programs, it fails as it does natively.
cat >small.S <<'ASSEMBLY'
.globl _start
_start:
	movl $300000000, %ecx
1:	decl %ecx
	jnz 1b
	movl $1, %eax
	movl $7, %ebx
	int $0x80
ASSEMBLY
gcc -m32 -nostdlib -static -Wl,--build-id=none -o small small.S || exit 1
script='./small & ./small; echo "$?"; wait'
natively=$("$programs/launch" sh -c "$script" 2>/dev/null)
printf '%s\n' "a 32-bit program's status natively: $natively" >&2
profiled --fixed-speedup 100 --experiment 50 -p progress -- "$programs/launch" sh -c "$script" && why='' || why=" status $?;"
[ -n "$natively" ] && [ "$(cat out)" = "$natively" ] || why+=' it does not end as it does natively;'
verdict '32-bit children' "$why" out err
profiled -p progress -- ./small
status=$?
cp err complaint
refusal 'a 32-bit program' '32-bit' "$status"
none_left && why='' || why="$(left_behind)"
verdict 'nothing is left behind' "$why"
