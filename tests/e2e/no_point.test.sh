#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Runs that are given no point find one: a system call that is passed evenly, at the rate that the program itself counts.
# needs: root btf python3
# shellcheck disable=SC2154 # what helpers.sh sets
set -uo pipefail
# shellcheck source=tests/e2e/helpers.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/helpers.sh"
cd "$tmp" || exit 1
bpf_before=$(bpf_orphans)
announced='^cozbpf: no -p: counting syscall:sendto \([0-9.]+/s, even\); others: syscall:recvfrom \([0-9.]+/s\)'

# with COMMAND ARGUMENT...: cozbpf of that command; the report is in `out`, messages are in `complaint`.
with() {
	rm -f -- "$profile"
	timeout -k 5 "$limit" "$COZBPF" "$1" "${switched_off[@]}" --status none -o "$profile" "${@:2}" >out 2>complaint </dev/null || why+=" status $?;"
}

# The rate that was told, and twice that of the requests in `lines` from second $1 to second $2 of them: within 10 %.
agree() { # FROM TO LINES
	local told
	told=$(sed -nE 's/^cozbpf: no -p: counting [^ ]+ \(([0-9.]+)\/s.*/\1/p' complaint)
	awk -v from="$1" -v to="$2" -v told="${told:-0}" -F '[= ]' '
		/^at_ms=/ { if (!first) first = $2; at = ($2 - first) / 1000; if (at > from && at <= to) { n += $4; if (!begin) begin = before; end = at } before = at }
		END { rate = end > begin ? 2 * n / (end - begin) : 0; ratio = rate ? told / rate : 0
			if (ratio < 0.9 || ratio > 1.1) printf " %s a second are reported, the program counts %.0f;", told, rate }' "$3"
}

# chosen NAME: complaints unless the report says that this point was chosen and has something to tell.
chosen() {
	"$COZBPF" report --json "$profile" >report.json 2>>complaint || printf ' report: status %s;' "$?"
	python3 -c '
import json, sys
points = json.load(open("report.json", encoding="utf-8"))["points"]
if [(p["name"], p["chosen"]) for p in points] != [(sys.argv[1], True)]: print(" the points are", [(p["name"], p["chosen"]) for p in points], end=";")
elif not points[0]["visits"] or not any(line["slope"] is not None for line in points[0]["lines"]): print(" nothing is reported of it;", end="")
' "$1"
	tr -s '\n ' ' ' <out | found -F "No point was given: counting $1 (" || printf ' the report does not say that it was chosen;'
}

launched() {
	with run --keep-root --report - -d "$(lasting 8)" -- "$programs/answers" 1000
	[ "$(grep -cE "$announced" complaint)" -eq 1 ] && [ "$(wc -l <complaint)" -eq 1 ] || why+=' not one line that says so;'
	why+=$(agree 0.5 2.5 out)$(chosen syscall:sendto)
	holds 'len(experiments) > 2 and visits("syscall:sendto") > 0' || why+=" $(ask 'len(experiments)') experiments;"
	none_left || why+=' something is left;'
}
tried launched
verdict 'run' "$why" complaint out

# Its children do the work.
attached() {
	"$programs/answers" 1000 2 >lines &
	server=$!
	sleep 1
	with attach "$server" -d "$(lasting 6)"
	grep -qE "$announced" complaint || why+=' it is not said;'
	why+=$(chosen syscall:sendto)
	with system --pid-tree "$server" --slopes-only -d "$(lasting 5)"
	grep -qE "$announced" complaint || why+=' system: it is not said;'
	why+=$(chosen syscall:sendto)
	holds 'not experiments' || why+=' there are experiments with --slopes-only;'
	why+=$(left_over "$server")
	read -r -a workers <"/proc/$server/task/$server/children"
	kill "${workers[@]}"
	wait "$server"
}
tried attached
verdict 'attach and system' "$why" complaint out

given() {
	with run --keep-root --report - -p progress -d "$(lasting 3)" -- "$programs/answers" 1000
	[ ! -s complaint ] || why+=' something is said;'
	"$COZBPF" report --json "$profile" | found '"chosen": *false' || why+=' it is not said that it was given;'
	! grep -q 'No point was given' out || why+=' the report says that none was given;'
}
tried given
verdict '-p takes its place' "$why" complaint out

# Points that are given and do not suit are reported while the run goes on.
judged() {
	with run --keep-root --no-report -p main -p nowhere=syscall:msgrcv -d "$(lasting 3)" -- "$programs/answers" 1000
	found -E "^cozbpf: warning: progress point 'main' was visited 1 time in [0-9.]+ s; .*rates PID" <complaint || why+=' a visit in 2 s is not reported;'
	found -E "^cozbpf: warning: progress point 'nowhere' was not visited in [0-9.]+ s: " <complaint || why+=' no visit is not reported;'
	! grep -q 'to count' complaint || why+=' one visit is said to cost too much;'
	with run --keep-root --no-report -p request -d "$(lasting 3)" -- "$programs/visits" 1000000000 0
	found -E "^cozbpf: warning: to count 'request' takes about [0-9]+ % of the program's CPU time, [0-9.]+ us a visit: count its samples instead \\(-p sampled:request\\)" <complaint || why+=' what visits cost is not reported;'
	! grep -q 'was visited' complaint || why+=' a point that is passed often is said to be rare;'
}
tried judged
verdict 'points that do not suit' "$why" complaint

nothing() {
	with run --keep-root --report - -d "$(lasting 5)" -- "$programs/cpu" 1000000
	grep -q '^cozbpf: no -p, and nothing is passed evenly' complaint || why+=' that is not said;'
	tr -s '\n ' ' ' <out | found 'There is no progress point' || why+=' the report does not say it;'
	grep -qE '^[^ ]*cpu\.c:[0-9]+ +burn +[0-9.]+ %$' out || why+=' no shares;'
}
tried nothing
verdict 'where nothing suits' "$why" complaint out
