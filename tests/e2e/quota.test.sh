#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# CPU quotas of control groups, of either version: where one is used up no effects are told, whoever
# put the program there; where one is not, or is larger than the machine, they are.
# needs: root btf python3
# beside: others
# shellcheck disable=SC2154 # what helpers.sh sets
set -uo pipefail
directory=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd) || exit 1
# shellcheck source=tests/e2e/helpers.sh
source "$directory/helpers.sh"

# A group with a quota and one in it without: the quota holds for both.
group=
for root in /sys/fs/cgroup /sys/fs/cgroup/unified /sys/fs/cgroup/cpu /sys/fs/cgroup/cpu,cpuacct; do
	[ ! -f "$root/cgroup.subtree_control" ] || echo +cpu >"$root/cgroup.subtree_control" 2>/dev/null
	group=$root/cozbpf-test-$$
	mkdir -p -- "$group/inner" 2>/dev/null || continue
	if [ -f "$group/cpu.max" ] || [ -f "$group/cpu.cfs_quota_us" ]; then
		break
	fi
	rmdir -- "$group/inner" "$group"
	group=
done
if [ -z "$group" ] || [ ! -d "$group" ]; then
	echo 'skip quota: no control group with a CPU quota can be made here'
	exit
fi
# shellcheck disable=SC2317 # called by the trap
remove_group() {
	local _
	clean_up
	for _ in {1..30}; do
		rmdir -- "$group/inner" "$group" 2>/dev/null && return
		sleep 0.1
	done
}
trap remove_group EXIT

# quota MILLISECONDS: of CPU time in each 20.
quota() {
	if [ -f "$group/cpu.max" ]; then
		echo "$(($1 * 1000)) 20000" >"$group/cpu.max"
	else
		echo 20000 >"$group/cpu.cfs_period_us" && echo $(($1 * 1000)) >"$group/cpu.cfs_quota_us"
	fi
}

cat >"$tmp/inside" <<END
#!/bin/sh
echo \$\$ >"$group/inner/cgroup.procs"
exec "\$@"
END
chmod 755 "$tmp/inside"

line=$(line_of hot_line step)
told='a quota of [0-9.]+ CPUs: no effects are told'

# In $tmp/report what is told of the profile, in columns wide enough.
row() {
	"$COZBPF" report --width 200 "$profile" >"$tmp/report" 2>>"$tmp/err"
	grep -E "^${line}" "$tmp/report" | head -n 1
}

why=''
quota 4
profiled -p progress --fixed-line "$line" --experiment 200 -- "$tmp/inside" "$programs/hot_line" 3 || why+=' it failed;'
row | found -E 'not measurable \(quota\)' || why+=' effects are told;'
row | found -E '± *[0-9]|[0-9] %.*±' && why+=' intervals are shown;'
grep -q 'used up its CPU quota' "$tmp/report" || why+=' the report does not say why;'
holds 'max(x["throttled"] for x in experiments) > 0.5' || why+=' the profile does not say how often it was used up;'
verdict 'a quota that is used up' "$why" "$tmp/err" "$tmp/report"

# The program is there before us, so that the line at the start can name the group.
attached() { # COMMAND...
	"$tmp/inside" "$programs/steady" "$(lasting 6)" >/dev/null &
	pid=$!
	sleep 0.5
	rm -f -- "$profile"
	timeout -k 5 "$limit" "$COZBPF" "$@" -o "$profile" -p "$programs/steady:progress" --experiment 200 -d "$(lasting 2)" >"$tmp/report" 2>"$tmp/err" || why+=" $1 failed;"
	kill "$pid" 2>/dev/null
	wait "$pid" 2>/dev/null
	grep -qE "$group has $told" "$tmp/err" || why+=" $1 does not name the group at the start;"
	grep -q 'not measurable (quota)' "$tmp/report" || why+=" $1 tells effects;"
}
why=''
attached system --cgroup "$group"
verdict 'a quota that is used up, of processes that run' "$why" "$tmp/err" "$tmp/report"

why=''
if [ "$(nproc)" -lt 2 ]; then
	echo 'skip a quota that is not used up: one CPU'
else
	quota $(($(nproc) * 20 - 2))
	profiled -p progress --fixed-line "$line" --experiment 200 -- "$tmp/inside" "$programs/hot_line" 2 || why+=' it failed;'
	row >/dev/null
	! grep -q 'quota' "$tmp/report" || why+=' the report speaks of it;'
	verdict 'a quota that is not used up' "$why" "$tmp/err" "$tmp/report"
fi

why=''
quota $(($(nproc) * 20 + 20))
profiled -p progress --fixed-line "$line" --experiment 200 -- "$tmp/inside" "$programs/hot_line" 2 || why+=' it failed;'
! grep -q quota "$tmp/err" || why+=' it is spoken of at the start;'
verdict 'a quota larger than the machine' "$why" "$tmp/err"
