#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# cozbpf is killed in the middle of an experiment at 100 %: the program goes on at its native rate and ends normally. Rates are compared
# as ratios, medians of intervals of 100 ms, to the lower of what it does natively before and after; a busy machine gets a second and a
# third chance.
# needs: root btf python3
# shellcheck disable=SC2154 # what helpers.sh sets
set -uo pipefail
# shellcheck source=tests/e2e/helpers.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/helpers.sh"
cd "$tmp" || exit 1

# The median of batches per interval over lines FROM..TO of an output of `steady`; the first after a change are left out by the caller.
median() { # FILE FROM TO
	sed -n "$2,$3p" "$1" | sed -n 's/.* batches=\([0-9]*\) .*/\1/p' | sort -n | awk '{ v[NR] = $1 } END { print NR ? v[int((NR + 1) / 2)] : 0 }'
}

intervals=36

# One attempt; the complaint in $why.
attempt() { # PAY
	local job turn killed_at native later slowed after
	why=''
	timeout 30 "$programs/steady" 1.5 >native.out </dev/null
	native=$(median native.out 3 15)
	rm -f -- "$profile"
	: >out
	: >err
	"$COZBPF" run "${switched_off[@]}" --keep-root -q --no-report -o "$profile" --pay "$1" -p progress --fixed-line "$(line_of steady burn)" --fixed-speedup 100 \
		--experiment 600000 -- "$programs/steady" 3.6 >out 2>err </dev/null &
	job=$!
	for ((turn = 0; turn < 600; turn++)); do
		killed_at=$(wc -l <out)
		[ "$killed_at" -lt 14 ] || break
		sleep 0.05
	done
	kill -KILL "$job"
	wait "$job" 2>/dev/null
	# Looking takes a CPU for tens of milliseconds where making processes is dear, and the program's rate is what is measured meanwhile.
	for ((turn = 0; turn < 20; turn++)); do
		sleep 1
		[ -n "$(left_behind)" ] || break
	done
	[ -z "$(left_behind)" ] || why+=' the program does not end;'
	[ "$(wc -l <out)" -ge "$intervals" ] || why+=" the program ended after $(wc -l <out) of $intervals intervals;"
	timeout 30 "$programs/steady" 1.5 >native.out </dev/null
	later=$(median native.out 3 15)
	[ "$native" -lt "$later" ] || native=$later
	slowed=$(median out 4 "$killed_at")
	after=$(median out $((killed_at + 3)) $intervals)
	[ $((slowed * 100)) -lt $((native * 70)) ] || why+=" not slowed before: $slowed in an interval, natively $native;"
	[ $((after * 100)) -ge $((native * 70)) ] || why+=" $after in an interval after the kill, natively $native;"
	[ ! -s err ] || why+=' something on stderr;'
}

killed() { # PAY
	local _
	for _ in 1 2 3; do
		attempt "$1"
		[ -n "$why" ] || break
	done
	verdict "killed in an experiment: the program goes on natively, $1" "$why" out err
}

# Not only the rate: the bytes and the status as well. The status goes to whoever inherits the program, so it tells by itself.
killed_output() { # PAY
	local job turn why=''
	"$programs/output" 3000 >native.out 2>native.err </dev/null
	rm -f -- "$profile"
	: >out
	: >err
	"$COZBPF" run "${switched_off[@]}" --keep-root -q --no-report -o "$profile" --pay "$1" -p progress --fixed-line "$(line_of output mix)" --fixed-speedup 100 \
		--experiment 600000 -- "$programs/output" 3000 >out 2>err </dev/null &
	job=$!
	await_line err '^note 500 ' 30 || why+=' the program does not run;'
	kill -KILL "$job"
	wait "$job" 2>/dev/null
	for ((turn = 0; turn < 600; turn++)); do
		[ -n "$(left_behind)" ] || break
		sleep 0.05
	done
	[ -z "$(left_behind)" ] || why+=' the program does not end;'
	cmp -s native.out out || why+=' stdout differs;'
	cmp -s native.err err || why+=' stderr differs;'
	verdict "killed in an experiment: the output is whole, $1" "$why"
}

usable_payers
for pay in "${payers[@]}"; do
	killed_output "$pay"
	[ "$pay" = "${payers[0]}" ] || [ "${FULL:-0}" -eq 1 ] || continue
	killed "$pay"
done
