#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# cozbpf in a PID namespace of its own, as in a container: every command works with the numbers that are seen there, a run has the result that it
# has outside, and processes of the host are never shown, although the kernel's part sees all.
# needs: root btf python3
# shellcheck disable=SC2154 # what helpers.sh sets
# shellcheck disable=SC2016 # for the shell in the namespace
set -uo pipefail
# shellcheck source=tests/e2e/helpers.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/helpers.sh"
cd "$tmp" || exit 1

# Not by --mount-proc, which takes a root directory that is a mount.
own=(unshare --pid --fork --kill-child --mount --propagation unchanged sh -c 'mount --make-rprivate /proc && mount -t proc proc /proc && exec "$@"' sh)
if ! "${own[@]}" true 2>/dev/null; then
	printf 'skip containers: no PID namespace can be made here\n'
	exit 0
fi
cp "$programs/steady" ./inside
cp "$programs/steady" ./outside
effect='(lambda t: round(100 * (1 - t(0.5) / t(0)), 1))(lambda s: sum(x["duration"] for x in experiments if x["speedup"] == s) / sum(x["points"]["progress"]["delta"] for x in experiments if x["speedup"] == s))'

# inside SECONDS COMMAND ARGUMENT...: cozbpf in the namespace; the return value is its exit status.
inside() {
	rm -f -- "$profile"
	timeout -k 5 "$1" "${own[@]}" "$COZBPF" "${@:2}" >out 2>complaint </dev/null
}

# beside SECONDS COMMAND ARGUMENT...: the same, beside a process of the namespace that runs `inside`; @PID@ in an argument is its number.
beside() {
	rm -f -- "$profile" victim
	timeout -k 5 "$1" "${own[@]}" bash -c './inside 60 >victim & until [ -s victim ]; do sleep 0.05; done; "${@//@PID@/$!}"; status=$?; kill $!; exit $status' \
		sh "$COZBPF" "${@:2}" >out 2>complaint </dev/null
}

# paid SHARE: of what the others owed they paid that much, or waited for a CPU so long, as on a busy machine; and the books balance.
paid() {
	holds "total('paid') + total('rq_credited') > $1 * total('growth') > 0" ||
		why+=" paid $(ask "total('paid')"), and waited $(ask "total('rq_credited')"), of $(ask "total('growth')") ns;"
	holds 'all(x["imbalance"] == 0 for x in experiments)' || why+=" imbalance $(ask '[x["imbalance"] for x in experiments]');"
}

# --- the same result
barrier() { # WHERE...
	rm -f -- "$profile"
	timeout -k 5 60 "$@" "$COZBPF" run --keep-root -q --no-report -o "$profile" -p progress -d 8 --experiment 400 --speedups 50 --zero-share 45 \
		--fixed-line "$line" -- "$BUILD/examples/barrier" 60 >out 2>complaint </dev/null || why+=" status $?;"
	ask "$effect"
}
compare() {
	local outside inside
	line=barrier.c:$(grep -n '67 units \*/' "$SRC/examples/barrier.c" | head -n 1 | cut -d: -f1)
	outside=$(barrier)
	inside=$(barrier "${own[@]}")
	paid 0.5
	awk -v a="$outside" -v b="$inside" 'BEGIN { exit !(a > -5 && (a - b) ^ 2 < 16) }' || why+=" barrier: $outside % outside, $inside % inside;"
}
tried compare
verdict 'run: the same result as outside' "$why" complaint
half=(-p progress --experiment 100 --fixed-line "$(line_of steady burn)" --fixed-speedup 50)
pays() { # COMMAND ARGUMENT...
	"$@" || why+=" status $?;"
	holds "visits('progress') > 50" || why+=" $(ask "visits('progress')") visits;"
	paid 0.6
	# A payment by the library takes a slot, which it finds by a number.
	! grep -q 'without a slot\|another PID namespace' out complaint || why+=' threads found no slot;'
}
for pay in hold sleep; do
	tried pays inside 40 run --keep-root -q -o "$profile" "${half[@]}" --pay "$pay" -- ./inside 3
	verdict "run --pay $pay" "$why" out complaint
done
tried pays beside 40 attach @PID@ -q -o "$profile" "${half[@]}" -d 3
verdict 'attach' "$why" out complaint
tried pays beside 40 attach @PID@ -q -o "$profile" "${half[@]}" -d 3 --disable task_work,send_signal_task --inject=always
verdict 'attach, injected' "$why" out complaint

# --- numbers
why=''
inside 40 run --keep-root -q --no-report -o "$profile" --fixed-line "$(line_of requests burn)" --fixed-speedup 0 --experiment 6000 \
	--latency "req=request_begin,$(line_of requests end)" --latency 'job=job_begin,requests:job_end,key=arg2:arg1' -- "$programs/requests" 2000 0.7 ||
	why+=" status $?;"
for point in req job; do
	holds "visits('$point', 'departures') > 0 and visits('$point', 'crossed') == 0 and visits('$point', 'lost') == 0" || why+=" $point was not counted;"
done
holds "visits('job', 'unmatched') == 0" || why+=" $(ask "visits('job', 'unmatched')") ends of jobs without a begin;"
verdict 'latencies by thread and by key' "$why" complaint

for how in fork exec double; do
	why=''
	inside 40 run --keep-root -q --no-report -o "$profile" -p progress --experiment 50 -- "$programs/tree" "$how" 1.3 || why+=" status $?;"
	for who in parent child; do
		holds "sum(n for at, n in samples.items() if at.endswith('$(line_of tree $who)')) > 50" || why+=" no samples of the $who;"
	done
	visits=$(awk -F= '/ visits=/ { n += $2 } END { print n }' out)
	holds "0.2 * $visits < visits('progress') <= $visits" || why+=" $(ask "visits('progress')") of $visits visits;"
	verdict "--follow all: $how" "$why" complaint
done
why=''
inside 40 run --keep-root -q --no-report -o "$profile" -p progress --experiment 50 --sync pthread -- ./inside 3 || why+=" status $?;"
holds "visits('progress') > 100 and sampled > 100" || why+=" $(ask "visits('progress')") visits, $(ask sampled) samples;"
verdict '--sync pthread' "$why" complaint

# Two levels: who is below has a number here, too.
why=''
rm -f -- "$profile"
timeout -k 5 40 "${own[@]}" "${own[@]}" "$COZBPF" run --keep-root -q --no-report -o "$profile" "${half[@]}" -- ./inside 2 >out 2>complaint </dev/null || why+=" status $?;"
paid 0.5
verdict 'a namespace in another one' "$why" complaint
why=''
inside 40 run --keep-root -q --no-report -o "$profile" "${half[@]}" -- unshare --pid --fork --kill-child ./inside 2 || why+=" status $?;"
paid 0.3
verdict 'a program that makes a namespace' "$why" complaint

# --- what runs outside is not there
./outside 120 >/dev/null &
stranger=$!
why=''
beside 40 system --uid 0 -q --no-report -o "$profile" -d 2 --experiment 100 --what on-cpu -p "ours=$tmp/inside:progress" -p "other=$tmp/outside:progress" ||
	why+=" status $?;"
holds "visits('ours') > 50" || why+=" $(ask "visits('ours')") visits;"
holds "visits('other') == 0" || why+=" $(ask "visits('other')") visits of a process outside;"
verdict 'system' "$why" complaint
# A process outside that has the number of one inside, for the kernel.
why=''
beside 20 attach "$stranger" -q --no-report -o "$profile" -d 1 && why+=' a process outside is accepted;'
grep -q "no process $stranger" complaint || why+=' not the reason;'
verdict 'attach: a process outside' "$why" complaint

why=''
beside 40 collect --db db --rate 500 -d 3s || why+=" status $?;"
"$COZBPF" top --db db --by process --json --top 0 >rows 2>>complaint || why+=' no rows;'
grep -q '"inside"' rows || why+=' the process inside is not there;'
! grep -q '"outside"\|"\[idle\]"\|kworker\|ksoftirqd' rows || why+=' others are there;'
"$COZBPF" top --db db --by line --process inside --top 0 2>>complaint | found "$(line_of steady burn)" || why+=' no line;'
"$COZBPF" db export --db db --to json 2>>complaint | grep "$tmp/inside\"" | found '"build_id":"[0-9a-f]' || why+=' no build id;'
verdict 'collect' "$why" complaint rows

cat >server.c <<'END'
#include <unistd.h>
__attribute__((noipa)) void answer_request(int fd)
{
	(void)!write(fd, "x", 1);
	__asm__ volatile("" : : : "memory"); /* no tail call */
}
int main(void)
{
	for (;;) {
		answer_request(1);
		usleep(2000);
	}
}
END
gcc -O2 -g -o server server.c || exit 1
why=''
timeout -k 5 40 "${own[@]}" bash -c './server >/dev/null & until grep -qx server "/proc/$!/comm"; do sleep 0.05; done; "$1" list points --rates $!; status=$?; kill $!; exit $status' sh "$COZBPF" >rates 2>complaint </dev/null ||
	why+=" status $?;"
for wanted in answer_request syscall:write; do
	grep -qE "^ +[0-9.]+  [a-z ]+ $wanted\$" rates || why+=" no rate of $wanted;"
done
beside 40 list functions @PID@ || why+=" list: status $?;"
grep -q '^burn' out || why+=' no function;'
verdict 'list' "$why" rates out complaint
if command -v llvm-mca >/dev/null; then
	why=''
	beside 60 annotate --db db --count 2s --pid @PID@ --json burn || why+=" status $?;"
	python3 -c 'import json, sys
sys.exit(not any((b.get("executed") or 0) > 10 for b in json.load(sys.stdin)["blocks"]))' <out || why+=' no executions;'
	verdict 'annotate --count' "$why" complaint
else
	printf 'skip annotate --count: no llvm-mca\n'
fi
kill "$stranger"

# --- a control group, as its namespace shows it
cat >grouped <<'END'
mount --make-rprivate /proc && mkdir groups && mount -t cgroup2 cgroup2 groups || exit 77
group=$PWD/groups/cozbpf-e2e-$$
mkdir "$group" "$group/part" && echo $$ >"$group/cgroup.procs" || exit 77
# As number 1, which ends all others when it ends.
timeout 50 unshare --cgroup --pid --mount --fork --kill-child bash -c 'mount -t proc proc /proc && mount -t tmpfs tmpfs /sys/fs && mkdir /sys/fs/cgroup && mount -t cgroup2 cgroup2 /sys/fs/cgroup || exit 77
	./inside 60 >/dev/null & echo $! >/sys/fs/cgroup/part/cgroup.procs || exit 77
	"$1" system --cgroup part -q --no-report -o "$2" -d 2 --experiment 100 --what on-cpu -p "ours=$PWD/inside:progress" &&
	"$1" collect --db groups.db --rate 500 -d 2s' sh "$@"
status=$?
echo $$ >groups/cgroup.procs
rmdir "$group/part" "$group"
exit $status
END
rm -f -- "$profile"
timeout -k 5 60 unshare --mount --propagation unchanged bash grouped "$COZBPF" "$profile" >out 2>complaint </dev/null
status=$?
if [ "$status" -eq 77 ]; then
	printf 'skip a control group: %s\n' "$(tail -n 1 complaint)"
else
	[ "$status" -eq 0 ] && why='' || why=" status $status;"
	holds "visits('ours') > 50" || why+=" $(ask "visits('ours')") visits;"
	"$COZBPF" db export --db groups.db --to json 2>>complaint | found '"/part"' || why+=' another name of the group;'
	verdict 'system --cgroup, and its name in collect' "$why" complaint
fi

# --- refused: /proc of another namespace, whose numbers mean others
other=(unshare --pid --fork --kill-child)
wrong() { # NAME ARGUMENT...
	rm -f -- "$profile"
	timeout 20 "${other[@]}" "$COZBPF" "${@:2}" >out 2>complaint </dev/null
	refusal "another /proc: $1" '/proc is that of another PID namespace' $?
}
wrong run run --keep-root -q -o "$profile" -- ./inside 0.2
wrong attach attach $$ -d 0.2 -o "$profile"
wrong system system --uid 0 -d 0.2 -o "$profile"
wrong collect collect --db db2 -d 1s
wrong list list points --rates $$
wrong annotate annotate --count 1s --pid $$ burn
timeout 20 "${other[@]}" "$COZBPF" check >out 2>&1 && why=' a run is possible;' || why=''
grep -q 'not possible without: pid_namespace' out || why+=' not named;'
verdict 'another /proc: check' "$why" out
timeout 60 "${own[@]}" "$COZBPF" check >out 2>&1 && why='' || why=" status $?;"
grep -qx 'A run is possible.' out || why+=' no run is possible;'
verdict 'check' "$why" out
none_left && why='' || why="$(left_behind)"
verdict 'nothing is left behind' "$why"
