#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Programs that run on a copy of their own code, as for huge pages. Breakpoints of points are copied as well and end the program, which is said, and
# what was measured is kept. Points that need no breakpoint count, and lines are found in the copy.
# needs: root btf python3
# beside: others
# shellcheck disable=SC2154 # what helpers.sh sets
set -uo pipefail
# shellcheck source=tests/e2e/helpers.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/helpers.sh"
cd "$tmp" || exit 1

for how in fixed unmap mremap file never; do
	for point in progress remaps:burn "$(line_of remaps burn)"; do
		[ "$how" = fixed ] || [ "$point" = progress ] || continue
		why=''
		profiled -p "it=$point" -- "$programs/remaps" "$how" 400 </dev/null
		status=$?
		[ "$status" -eq $((128 + 5)) ] || why+=" status $status;"
		grep -q '^remapped$' out || why+=' it did not come to the copy;'
		grep -q 'ended by SIGTRAP: it runs on a copy of its own code.*sampled:' err || why+=' it is not said why;'
		[ "$(grep -c SIGTRAP err)" -eq 1 ] || why+=' not in one line;'
		holds 'len(runs) == 1 and len(runtimes) == 1' || why+=' no profile;'
		verdict "a copy of the code with a probe is recognised: $how, $point" "$why" err
	done
done

# A breakpoint of the program's own is its own matter.
cat >trap.c <<'C'
__attribute__((noipa)) void point(void)
{
	__asm__ volatile("" : : : "memory");
}
void stop(void);
__asm__(".text\n.globl stop\n.type stop, %function\nstop: int3\nret\n.size stop, .-stop\n");
int main(void)
{
	point();
	stop();
	return 0;
}
C
gcc -O2 -g trap.c -o trap || exit 1
why=''
profiled -p point -- ./trap
status=$?
[ "$status" -eq $((128 + 5)) ] || why+=" status $status;"
! grep -q 'copy of its own code' err || why+=' it is taken for ours;'
verdict 'a SIGTRAP of the program itself' "$why" err
# A probe there would have it run into the breakpoint for ever.
profiled -p stop -- ./trap
status=$?
mv err complaint
refusal 'a point on a breakpoint of the program' 'is a breakpoint itself' "$status"

sampled() { # HOW
	profiled --experiment 500 -p "it=sampled:burn" -- "$programs/remaps" "$1" 2500 </dev/null || why+=' it failed;'
	[ "$(said visits)" = 2501 ] || why+=" $(said visits) visits;"
	[ ! -s err ] || why+=' it complains;'
	holds "visits('it') > 50 and sampled > 5 * unattributed" ||
		why+=" $(ask "visits('it'), sampled, unattributed") visits, samples, and samples of no line;"
}
for how in fixed file; do
	tried sampled "$how"
	verdict "samples in the copy count: $how" "$why" err
done

# When we come, it runs on the copy already.
attached() {
	rm -f -- "$profile"
	timeout -k 5 "$limit" "$COZBPF" attach "$target" -q --no-report -o "$profile" --experiment 500 -p it=sampled:burn -d 2 >said 2>complaint ||
		why+=' it failed;'
	holds "visits('it') > 50 and sampled > 5 * unattributed" ||
		why+=" $(ask "visits('it'), sampled, unattributed") visits, samples, and samples of no line;"
}
"$programs/remaps" late 400000 </dev/null >out &
target=$!
await_line out '^remapped$' 10
tried attached
verdict 'samples in the copy count: attach' "$why" complaint
kill "$target"

# A real one: its code lies on pages that the kernel makes large.
if node --use-largepages=on -e 0 2>/dev/null; then
	why=''
	profiled --granularity function -p syscall:getppid -- node --use-largepages=on -e 'for (let i = 0; i < 1000; i++) process.ppid' || why+=' it failed;'
	verdict 'node on large pages' "$why" err
else
	printf 'skip node on large pages: there is no node\n'
fi
