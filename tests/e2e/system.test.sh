#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# System runs: who is in scope by each rule, who joins and leaves, and that the rest of the machine is not.
# needs: root btf python3
# beside: others
# shellcheck disable=SC2154 # what helpers.sh sets
set -uo pipefail
# shellcheck source=tests/e2e/helpers.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/helpers.sh"
cd "$tmp" || exit 1

cp "$programs/hostile" ./in-scope
cp "$programs/hostile" ./out-of-scope
./in-scope steady 150 >in.out &
inside=$!
./out-of-scope steady 150 >out.out &
outside=$!
await_line in.out '^pid' 5

system() { # ARGUMENT...
	rm -f -- "$profile"
	timeout -k 5 "$limit" "$COZBPF" system "${switched_off[@]}" -q --no-report --what on-cpu -o "$profile" --experiment 100 "$@" >said 2>complaint
}

if ! system --pid-tree "$inside" -d 0.3 && grep -q 'task work' complaint; then
	printf 'skip system: %s\n' "$(head -n 1 complaint)"
	exit 0
fi

# scoped NAME ARGUMENT...: samples of the one, visits of its point, and none of the other. Both are copies of one program, and so have
# the same lines; of visits, those of the one that is in scope count.
scoped() {
	local name=$1 why=''
	shift
	system "$@" -d "$(lasting 3)" -p "ours=$tmp/in-scope:progress" -p "other=$tmp/out-of-scope:progress" || why+=" status $?;"
	holds "visits('ours') > 50" || why+=" $(ask "visits('ours')") visits;"
	holds "visits('other') == 0" || why+=" $(ask "visits('other')") visits out of scope;"
	holds "len(experiments) > 5" || why+=" $(ask 'len(experiments)') experiments;"
	verdict "$name" "$why" complaint
}

# The probe of the other program needs one of it to be known: its executable is a file that can be opened.
scoped "by file" --exe "$tmp/in-scope"
scoped "by name" --comm 'in-sc*'
scoped "by process tree" --pid-tree "$inside"
scoped "all of it together" --pid-tree "$$" --comm in-scope --uid "$(id -u)"

why=''
system --exe "$tmp/in-scope" --comm nobody -d 1 && why+=' not refused;'
[ "$(wc -l <complaint)" -eq 1 ] || why+=' not one line;'
grep -q 'no process is in scope' complaint || why+=' no reason;'
verdict "rules that exclude each other" "$why" complaint

# The report says what the rest of the machine took.
timeout 20 "$COZBPF" system "${switched_off[@]}" -q --verbose -o "$profile" --exe "$tmp/in-scope" -p "ours=$tmp/in-scope:progress" -d 1.5 --experiment 100 >said 2>complaint
grep -q "the processes in scope took" said && why='' || why='it does not'
verdict "the report says what the rest took" "$why" said
# It says so of the profiler, too, and so does the file: a share that is there and that a machine of this size can have.
grep -q "cozbpf itself took [0-9.]* % of the machine's CPU time, and its programs in the kernel about [0-9.]* %" said && why='' || why='it does not;'
timeout 20 "$COZBPF" report --json "$profile" >json 2>complaint
python3 -c 'import json, sys; m = json.load(sys.stdin)["machine"]; sys.exit(not all(0 < m[k] < 0.5 for k in ("own", "own_in_kernel")))' <json ||
	why+=" the file says $(grep -A 5 '"machine"' json | tr -d '\n');"
verdict "the report says what the profiler took" "$why" said complaint

# A process that comes later joins; the first one ends meanwhile.
rm -f -- "$profile"
"$COZBPF" system "${switched_off[@]}" -q --no-report -o "$profile" --experiment 100 --comm 'in-scope' -d 3.5 >said 2>complaint &
job=$!
sleep 1
kill "$inside"
wait "$inside" 2>/dev/null
./in-scope steady "$(lasting 20)" >late.out &
late=$!
wait "$job" || true
holds "sum(x['selected_samples'] for x in experiments[len(experiments) * 2 // 3:]) > 20" && why='' || why='no samples of the one that came later'
verdict "a process that comes later joins" "$why" complaint

# --- control groups, where we may make one
group=
for mount in $(awk '$3 == "cgroup2" { print $2 }' /proc/mounts) $(awk '$3 == "cgroup" { print $2 }' /proc/mounts); do
	if mkdir "$mount/cozbpf-test.$$" 2>/dev/null; then
		group=$mount/cozbpf-test.$$
		if echo "$late" >"$group/cgroup.procs" 2>/dev/null; then
			break
		fi
		rmdir "$group"
		group=
	fi
done
if [ -z "$group" ]; then
	printf 'skip by control group: none can be made here\n'
	exit 0
fi
scoped "by control group" --cgroup "$group"
rm -f -- "$profile"
(
	for _ in {1..400}; do
		n=$(grep -sc '"experiment"' "$profile")
		[ "${n:-0}" -le 3 ] || break
		sleep 0.1
	done
	kill "$late"
	sleep 0.3
	rmdir "$group"
) &
killer=$!
system --cgroup "$group" -d "$(lasting 20)"
status=$?
wait "$killer"
why=''
[ "$status" -eq 125 ] || why+=" status $status;"
grep -q 'was removed' complaint || why+=' no reason;'
[ "$(wc -l <complaint)" -eq 1 ] || why+=' not one line;'
holds "len(experiments) > 2" || why+=' what was found is lost;'
verdict "the group is removed in mid-run" "$why" complaint
[ ! -d "$group" ] || rmdir "$group"
# On a slow machine it has ended by itself.
kill "$outside" 2>/dev/null || true
