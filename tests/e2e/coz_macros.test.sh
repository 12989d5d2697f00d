#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# A program built with Debian's coz.h, with nothing of ours: its throughput and latency points are in the profile, with the counts that
# the program itself tells.
# needs: root btf python3
# beside: others
# shellcheck disable=SC2154 # what helpers.sh sets
set -uo pipefail
# shellcheck source=tests/e2e/helpers.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/helpers.sh"
cd "$tmp" || exit 1

if [ ! -x "$programs/coz_macros" ]; then
	printf 'skip points of coz.h: needs package:coz-profiler\n'
	exit 0
fi

# One experiment over the whole run, begun while the program settles, so that no visit falls outside.
counted() { # PAY
	local why='' items settle
	# Longer where the machine is so busy that it takes longer to begin.
	for settle in 0.8 4; do
		why=''
		profiled --pay "$1" --fixed-line "$(line_of coz_macros hot)" --fixed-speedup 25 --experiment 20000 -- "$programs/coz_macros" 2 "$settle" ||
			why+=' it failed;'
		items=$(said items)
		! holds "visits('items') == $items" || break
	done
	[ "${items:-0}" -gt 0 ] || why+=' the program made no visit;'
	holds 'len(experiments) == 1' || why+=' not one experiment;'
	holds "visits('items') == $items" || why+=" $(ask 'visits("items")') visits of items, the program made $items;"
	holds "visits('work', 'arrivals') == $items" || why+=" $(ask 'visits("work", "arrivals")') arrivals, not $items;"
	holds "visits('work', 'departures') == $items" || why+=" $(ask 'visits("work", "departures")') departures, not $items;"
	holds "experiments[0]['points']['work']['type'] == 'latency-point'" || why+=' work is no latency point;'
	holds "experiments[0]['points']['items']['type'] == 'throughput-point'" || why+=' items is no throughput point;'
	holds "set(experiments[0]['points']) == {'items', 'work'}" || why+=" points: $(ask 'sorted(experiments[0]["points"])');"
	verdict "counts of coz.h are the program's, $1" "$why" out err
}

# Many experiments: each has every point, no visit is counted twice, and there are hardly any outside when there is no cool-off.
divided() { # PAY
	local why='' items
	profiled --pay "$1" --fixed-line "$(line_of coz_macros hot)" --experiment 100 --cool-off 0 -- "$programs/coz_macros" 2.2 0.5
	[ $? -eq 0 ] || why+=' it failed;'
	items=$(said items)
	holds "0.5 * $items <= visits('items') <= $items" || why+=" $(ask 'visits("items")') visits of $items;"
	holds "0.5 * $items <= visits('work', 'departures') <= $items" || why+=" $(ask 'visits("work", "departures")') departures of $items;"
	holds 'all(0 <= x["points"]["work"]["difference"] <= 2 for x in experiments[8:])' || why+=' in flight: neither 0, 1 nor 2;'
	holds 'len(experiments) >= 10 and all(set(x["points"]) == {"items", "work"} for x in experiments[8:])' ||
		why+=' an experiment lacks a point;'
	timeout 20 "$COZBPF" report "$profile" >report 2>err || why+=' the report fails;'
	grep -q items report && grep -q work report || why+=' the report lacks a point;'
	verdict "points of coz.h over many experiments, $1" "$why" report err
}

# Together with a probe of ours.
mixed() {
	local why='' items
	profiled -p hot --fixed-line "$(line_of coz_macros cold)" --fixed-speedup 0 --experiment 8000 -- "$programs/coz_macros" 2 0.8
	[ $? -eq 0 ] || why+=' it failed;'
	items=$(said items)
	holds "visits('items') == $items" || why+=" $(ask 'visits("items")') visits of items, the program made $items;"
	holds "visits('hot') >= $items" || why+=" $(ask 'visits("hot")') visits of the function, which is in each of $items;"
	verdict 'points of coz.h beside a probe' "$why" out err
}

usable_payers
for pay in "${payers[@]}"; do
	counted "$pay"
	divided "$pay"
done
mixed
