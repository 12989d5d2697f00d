#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# A line is really slowed, and nothing else; what that did is said in a table and by the exit status. What cannot be validated is refused.
# needs: root btf python3
# shellcheck disable=SC2154 # what helpers.sh sets
set -uo pipefail
# shellcheck source=tests/e2e/helpers.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/helpers.sh"
cd "$tmp" || exit 1

handover=$BUILD/tests/truth/handover
line=handover.c:$(grep -n '/\* LINE:a \*/' "$SRC/tests/truth/programs/handover.c" | cut -d : -f 1)

# validated SECONDS OPTION...: its exit status in $status.
validated() {
	local seconds=$1
	shift
	timeout -k 5 "$limit" "$COZBPF" validate "${switched_off[@]}" --keep-root -q --report - -p progress "$@" -- "$handover" --round 5000 --share-a 60 \
		--window 1 --kind futex --seconds "$seconds" >out 2>err
	status=$?
}

# Numbers of a row of the table: value, half-width, and so on.
numbers() { # ROW
	sed -n "s/^  $1  *//p" out | tr -d '+'
}

# Two threads in turn, 60 % of the round in the line: half as fast again is a round that takes 30 % longer, and so it is measured within ten
# points. A turn in which the machine did other things is repeated; what has nothing to do with noise has to be right in each.
slowed_once() {
	local measured
	validated 8 -l "$line"
	case $status in
	0) grep -q '^agrees within [0-9.]* points: ' out || why+=' status 0, but nothing agrees;' ;;
	1) grep -q '^GAP of [0-9.]* points: ' out || why+=' status 1, but no gap;' ;;
	2) grep -qE '^(undecided|cannot be compared): ' out || why+=' status 2 without a reason;' ;;
	*) why+=" status $status;" ;;
	esac
	grep -q "^Validation of $line, [0-9]* experiments" out || why+=' no heading;'
	[ ! -s err ] || why+=' something on stderr;'
	[ ! -e cozbpf.jsonl ] || why+=' a profile was written;'
	measured=$(numbers measured)
	noisy=''
	python3 - "$measured" <<'PYTHON' || noisy=" measured $measured, not -15 and -30;"
import re, sys
a, _, b, _ = map(float, re.findall(r"-?\d+\.\d", sys.argv[1]))
sys.exit(abs(a + 15) > 10 or abs(b + 30) > 10)
PYTHON
}

slowed() {
	local why='' noisy turn
	for turn in 1 2 3; do
		slowed_once
		[ -z "$why" ] && [ -n "$noisy" ] || break
		printf '# turn %s:%s\n' "$turn" "$noisy"
	done
	verdict 'a line is really slowed' "$why$noisy" out err
}

# A line that is never reached: no experiment, nothing to tell.
never_reached() {
	local why='' unused
	unused=handover.c:$(grep -n 'how->open(&items);' "$SRC/tests/truth/programs/handover.c" | cut -d : -f 1)
	# Without --report as `run` has it: standard output is the program's.
	timeout -k 5 "$limit" "$COZBPF" validate "${switched_off[@]}" --keep-root -q -p progress -l "$unused" --experiment 100 -- "$handover" --round 5000 \
		--window 1 --kind futex --seconds 2 >out 2>err
	status=$?
	[ "$status" -eq 2 ] || why+=" status $status, not 2;"
	grep -q '^cannot be compared: no sample fell into the line' err || why+=' no reason;'
	! grep -q 'Validation' out || why+=' the report is on standard output;'
	[ "$(awk 'length > 100' err | wc -l)" -eq 0 ] || why+=' lines of more than 100 columns;'
	verdict 'nothing is made up for a line that does not run' "$why" out err
}

refused() { # NAME PATTERN OPTION...
	local name=$1 pattern=$2 why=''
	shift 2
	timeout -k 5 20 "$COZBPF" validate "$@" -- true >out 2>err
	status=$?
	[ "$status" -eq 125 ] || why+=" status $status, not 125;"
	[ "$(wc -l <err)" -eq 1 ] && grep -q -- "$pattern" err || why+=' the line on stderr says something else;'
	[ ! -s out ] || why+=' something on stdout;'
	verdict "$name" "$why" out err
}

slowed
never_reached
refused 'which line must be said' 'which line'
refused 'no profile to be named' "unknown option '-o'" -l a.c:1 -o x.jsonl
refused 'no precision to wait for' '--until-ci' -l a.c:1 --until-ci 2
refused 'no way of slowing to be chosen' "unknown option '--slow-by'" -l a.c:1 --slow-by probe
refused 'no speedup to be chosen' '--fixed-speedup' -l a.c:1 --fixed-speedup 50
