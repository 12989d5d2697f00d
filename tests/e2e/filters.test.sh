#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Programs that filter their own system calls (seccomp), and ones in a PID namespace of their own: none of them is ended by our calls, or has
# others pay for it.
# needs: root btf python3
# beside: others
# shellcheck disable=SC2154 # what helpers.sh sets
set -uo pipefail
# shellcheck source=tests/e2e/helpers.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/helpers.sh"
cd "$tmp" || exit 1
full=(-p progress --fixed-line "$(line_of filtered burn)" --fixed-speedup 100 --experiment 100)
older=task_work,send_signal_task
"$COZBPF" check 2>/dev/null | found -E '^task_work +ok' && held=1 || held=''

# survives NAME OPTION... -- KIND: it says what it says natively, and its debts were paid where the kernel can (on a busy machine some go away with
# experiments that end).
survives() {
	local name=$1 status seconds
	shift
	# Longer where the machine is so busy that a second is not enough.
	for seconds in 1 5; do
		profiled "${full[@]}" "${@:1:$#-2}" -- "$programs/filtered" "${@: -1}" "$seconds"
		status=$?
		! holds "total('hit_ns') > 1e7" || break
	done
	why=''
	[ "$status" -eq 0 ] || why+=" status $status;"
	"$programs/filtered" "${@: -1}" 0.2 | cmp -s - out || why+=' its output differs;'
	holds "total('hit_ns') > 1e7" || why+=" nothing to pay: $(ask "total('hit_ns')") ns earned;"
	[ -z "$paid" ] || holds "total('paid') + total('rq_credited') + total('credited') > 0.2 * total('hit_ns')" ||
		why+=" paid $(ask "total('paid')") of $(ask "total('hit_ns')") ns;"
	verdict "$name" "$why" out err
}
paid=$held
ways=(sleep)
[ "${FULL:-0}" -eq 0 ] || ways+=(spin)
for kind in first late other exec; do
	for pay in "${ways[@]}"; do
		survives "$kind, --pay $pay" --pay "$pay" -- "$kind"
	done
done
paid=''
kinds=(late other)
[ "${FULL:-0}" -eq 0 ] || kinds+=(first exec)
for kind in "${kinds[@]}"; do
	survives "$kind, on an older kernel" --disable "$older" -- "$kind"
done
survives 'late, --follow exec' --follow exec --pay sleep -- late
survives 'locks, --sync pthread' --sync pthread -- locks
survives 'late, --sync pthread' --sync pthread -- late
survives 'locks, --sync pthread on an older kernel' --sync pthread --disable "$older" -- locks

# It is said where nobody could pay.
rm -f -- "$profile"
"$COZBPF" run --keep-root -q -o "$profile" "${full[@]}" --pay sleep --disable "$older" --report report -- "$programs/filtered" other 1 >out 2>complaint && why='' || why=" status $?;"
grep -q 'seccomp' report || why+=' the report does not tell;'
verdict 'the report says that filtered threads were not paused' "$why" report complaint
# In a PID namespace: threads of children that are in one have other numbers there, and do not find their slots.
if unshare --pid --fork true 2>/dev/null; then
	rm -f -- "$profile"
	"$COZBPF" run "${full[@]}" --keep-root -q -o "$profile" --pay sleep -- unshare --pid --fork --kill-child "$programs/filtered" none 1 >out 2>err &&
		why='' || why=" status $?;"
	! grep -q 'without a slot' err || why+=' it was sent payment signals;'
	grep -q 'another PID namespace' err || why+=' the report does not tell;'
	holds "total('hit_ns') > 1e7" || why+=" nothing to pay: $(ask "total('hit_ns')") ns earned;"
	[ -z "$held" ] || holds "total('paid') + total('rq_credited') + total('credited') > 0.2 * total('hit_ns')" ||
		why+=" paid $(ask "total('paid')") of $(ask "total('hit_ns')") ns;"
	verdict 'children in a PID namespace' "$why" out err
else
	printf 'skip PID namespaces: none can be made here\n'
fi
none_left && why='' || why="$(left_behind)"
verdict 'nothing is left behind' "$why"
