#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Children of the program, however they come to be, are part of its profile; or are not, where that is asked.
# needs: root btf python3
# beside: others
# shellcheck disable=SC2154 # what helpers.sh sets
set -uo pipefail
# shellcheck source=tests/e2e/helpers.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/helpers.sh"
cd "$tmp" || exit 1

parent=$(line_of tree parent)
child=$(line_of tree child)

# What the program says of itself.
visits_of() { # WHO
	sed -n "s/^$1 visits=//p" "$tmp/out" | tail -n 1
}

sampled() { # LINE
	ask "sum(n for at, n in samples.items() if at.endswith('$1'))"
}

for how in fork vfork spawn exec double; do
	why=''
	profiled -p progress --experiment 50 -- "$programs/tree" "$how" "$(lasting 1.3)" || why+=" status $?;"
	both=$(($(visits_of parent) + $(visits_of child)))
	# In the experiments' share of the time; double's child may outlive the program.
	holds "visits('progress') > 0.7 * $both * sum(x['elapsed'] for x in experiments) / runtime" ||
		why+=" $(ask "visits('progress')") of $both visits;"
	[ "$(sampled "$parent")" -gt 100 ] || why+=" $(sampled "$parent") samples in the parent;"
	[ "$(sampled "$child")" -gt 100 ] || why+=" $(sampled "$child") samples in the child;"
	holds "any(x['selected'].endswith('$child') for x in experiments)" || why+=' no experiment with the child;'
	verdict "follows: $how" "$why" out err
done

# Lines of the parent are sped up: the child is paused for it, or stands in the queue of its CPU meanwhile, where it has only one.
why=''
profiled -p progress --fixed-line "$parent" --fixed-speedup 50 --experiment 200 -- "$programs/tree" fork "$(lasting 1.5)" || why+=" status $?;"
holds "total('hit_ns') > 0" || why+=' nothing was earned;'
holds "total('paid') + total('rq_credited') > 0.5 * total('hit_ns')" || why+=" paid $(ask "total('paid')") and waited $(ask "total('rq_credited')") of $(ask "total('hit_ns')") ns;"
verdict "a child pays for its parent's line" "$why" err

why=''
profiled --follow exec -p progress --experiment 100 -- "$programs/tree" fork "$(lasting 1)" || why+=" status $?;"
[ "$(sampled "$child")" -eq 0 ] || why+=" $(sampled "$child") samples in the child;"
[ "$(sampled "$parent")" -gt 100 ] || why+=" $(sampled "$parent") samples in the parent;"
verdict "--follow exec leaves children alone" "$why" err

why=''
profiled --follow none -p progress --experiment 100 -- "$programs/tree" exec "$(lasting 1)" || why+=" status $?;"
[ "$(sampled "$child")" -eq 0 ] || why+=" $(sampled "$child") samples in the child;"
verdict "--follow none" "$why" err

# A wrapper: what it starts is what counts, its point and its lines.
for wrapper in "sh -c" "env bash -c"; do
	why=''
	# shellcheck disable=SC2086 # the wrapper's words
	profiled -p progress --experiment 100 -- $wrapper "$programs/tree fork $(lasting 2.4); exit 3"
	status=$?
	[ "$status" -eq 3 ] || why+=" status $status;"
	holds "visits('progress') > 50" || why+=" $(ask "visits('progress')") visits;"
	holds "any(x['selected'].endswith('$child') for x in experiments)" || why+=' no experiment with the child;'
	verdict "a wrapper: $wrapper" "$why" err
done

# Two programs in a pipeline, one of which is left out.
why=''
profiled --only 'tree' -p progress --experiment 100 -- sh -c "$programs/steady $(lasting 1.5) | cat & $programs/tree fork $(lasting 1.2); wait" || why+=" status $?;"
holds "sum(n for at, n in samples.items() if 'steady.c' in at) == 0" || why+=' samples of what --only leaves out;'
[ "$(sampled "$child")" -gt 100 ] || why+=" $(sampled "$child") samples in the child;"
verdict "--only" "$why" err

# Its coz.h counters are there as well: the library goes along.
if [ -x "$programs/coz_macros" ]; then
	why=''
	profiled --experiment 200 -- bash -c "$programs/coz_macros $(lasting 1.5); true" || why+=" status $?;"
	items=$(sed -n 's/^items=//p' out)
	holds "visits('items') > 0.5 * ${items:-0} > 0" || why+=" $(ask "visits('items')") of ${items:-no} visits;"
	verdict "coz.h counters behind a wrapper" "$why" out err
else
	printf 'skip coz.h counters of children: needs package:coz-profiler\n'
fi

# A worker that dropped its privileges, and others that the controller has other numbers for: their children are followed as well. A user
# namespace that does not know the controller's user has to do without.
if [ -x "$programs/coz_macros" ]; then
	cp -- "$programs/coz_macros" macros
	for into in 'setpriv --reuid 65534 --regid 65534 --clear-groups' 'unshare --pid --fork' 'unshare --map-root-user'; do
		why=''
		# shellcheck disable=SC2086 # the words
		profiled --experiment 200 -- $into sh -c "exec ./macros $(lasting 1.6)" || why+=" status $?;"
		items=$(sed -n 's/^items=//p' out)
		holds "visits('items') > 0.5 * ${items:-0} > 0" || why+=" $(ask "visits('items')") of ${items:-no} visits;"
		verdict "coz.h counters behind $into" "$why" out err
	done
	why=''
	profiled --experiment 200 -- setpriv --reuid 65534 --regid 65534 --clear-groups unshare --map-root-user sh -c "exec ./macros $(lasting 0.8)" || why+=" status $?;"
	grep -q '^items=[1-9]' out || why+=' it did not end as it should;'
	verdict "a user namespace without the controller's user" "$why" out err
fi

# The wrapper sees nothing of it: neither descriptors nor variables.
why=''
profiled -- sh -c "env; ls /proc/self/fd | wc -l; $programs/launch" || why+=" status $?;"
! grep -q '^LD_PRELOAD=' out || why+=' LD_PRELOAD is set;'
sh -c "ls /proc/self/fd | wc -l" >native.out
grep -qxF "$(cat native.out)" out || why+=' other descriptors;'
verdict "children find nothing of the library" "$why" out err

# Programs that are started inside libc: the library goes along where it can, and nothing shows of it.
# shellcheck disable=SC2016 # for the shell that is started
look='env | grep -v ^_= | sort; ls /proc/self/fd | wc -l; echo "of $0"; nowhere 2>&1; exit 3'
for how in spawn spawnp actions closing system popen both; do
	why=''
	"$programs/starts" "$how" "$look" >native.out 2>native.err
	native=$?
	profiled -- "$programs/starts" "$how" "$look"
	status=$?
	[ "$status" -eq 3 ] && [ "$native" -eq 3 ] || why+=" status $status, natively $native;"
	diff native.out out >differ || why+=' its output differs;'
	cmp -s native.err err || why+=' its complaints differ;'
	verdict "nothing shows in what is started by $how" "$why" differ err
	[ -x "$programs/coz_macros" ] && [ "$how" != closing ] || continue
	[[ "${FULL:-0}" -eq 1 || "$how" = actions || "$how" = popen ]] || continue
	why=''
	profiled --experiment 200 -- "$programs/starts" "$how" "exec $programs/coz_macros $(lasting 0.8)" || why+=" status $?;"
	items=$(sed -n 's/^items=//p' out)
	holds "visits('items') > 0.3 * ${items:-0} > 0" || why+=" $(ask "visits('items')") of ${items:-no} visits;"
	verdict "coz.h counters of what is started by $how" "$why" out err
done

none_left || verdict "nothing is left behind" "$(left_behind)"
