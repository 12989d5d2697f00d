#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Experiments at a duty cycle beside continuous samples: what they say, of which build, and that they end with the collector.
# needs: root btf python3 setpriv
# shellcheck disable=SC2154 # what helpers.sh sets
set -uo pipefail
# shellcheck source=tests/e2e/helpers.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/helpers.sh"
cd "$tmp" || exit 1

group=$(findmnt -nt cgroup2 -o TARGET | head -n 1)/cozbpf-e2e-$$
if ! mkdir "$group" 2>/dev/null; then
	printf 'skip experiments: needs control groups of version 2\n'
	exit 0
fi
# shellcheck disable=SC2317 # called by the trap
leave() {
	# shellcheck disable=SC2046 # several ids
	kill -KILL $(cat "$group/cgroup.procs") 2>/dev/null
	sleep 0.2
	rmdir "$group"
	clean_up
}
trap leave EXIT

# What takes three quarters of the time; in the second build a quarter. By a chain in a register, as in collect.test.sh.
cat >serve.c <<'C'
#include <stdint.h>
#ifndef MORE
#define MORE 30000
#define LESS 10000
#endif
#define WORK(x) __asm__ volatile(".rept 16\n\timul %0, %0\n\t.endr" : "+r"(x))
__attribute__((noinline)) static void more(void) { uint64_t x = 3; for (int i = 0; i < MORE; i++) WORK(x); }
__attribute__((noinline)) static void less(void) { uint64_t x = 5; for (int i = 0; i < LESS; i++) WORK(x); }
__attribute__((noinline)) void served(void) { __asm__ volatile(""); }
int main(void) { for (;;) { more(); less(); served(); } }
C
gcc -O2 -g serve.c -o first || exit 1
gcc -O2 -g -DMORE=10000 -DLESS=30000 serve.c -o second || exit 1

serve() { # PROGRAM
	"./$1" &
	server=$!
	printf '%s\n' "$server" >"$group/cgroup.procs"
}

# With the capabilities of the unit.
set=$(sed -n 's/^CapabilityBoundingSet=//p' "$BUILD/user/cli/cmd/cozbpf-collect.service" | tr '[:upper:]' '[:lower:]' | sed 's/cap_/+/g; s/ /,/g')
collect() { # PROGRAM SECONDS
	setpriv --bounding-set "-all,$set" "$COZBPF" collect --db db --rate 200 --cgroup "$group" --experiments 60% --max-slowdown 50% -p "served=$tmp/$1:served" -d "$2s" 2>>log
}

# effect LINE [ARGUMENT]...: of 50 %, in per cent.
effect() {
	local line=$1
	shift
	"$COZBPF" report --db db --json "$@" 2>>complaint |
		python3 -c 'import json, sys
lines = json.load(sys.stdin)["points"][0]["lines"]
line = next((x for x in lines if x["selected"].endswith(sys.argv[1])), None)
at = {round(100 * c["speedup"]): c["effect"] for c in line["curve"]["at"]} if line else {}
print(round(100 * at[50]) if at.get(50) is not None else "none")' "$line"
}

near() { # NUMBER WANTED
	[[ $1 =~ ^-?[0-9]+$ ]] && [ "$1" -ge $(($2 - 10)) ] && [ "$1" -le $(($2 + 10)) ]
}

: >log
first_build() {
	rm -rf db
	collect first 15 || why+=" status $?;"
	e=$(effect serve.c:7)
	near "$e" 37 || why+=" $e for 37;"
}
serve first
tried first_build
verdict 'effects of a service' "$why" log complaint

why=''
"$COZBPF" top --db db | found more || why+=' no samples;'
"$COZBPF" report --db db >report 2>>complaint || why+=" status $?;"
grep -q "Progress point 'served'" report || why+=' no table;'
"$COZBPF" report --db db --since 2020-01-01 --until 2020-01-02 >/dev/null 2>none && why+=' experiments of another time;'
grep -q 'no experiments or slopes of that time' none || why+=' no reason;'
verdict 'samples and experiments in one database' "$why" report complaint none
kill "$server"

# Another build has a table of its own, and the one before can still be asked for.
second_build() {
	collect second 15 || why+=" status $?;"
	: >complaint
	e=$(effect serve.c:8)
	near "$e" 37 || why+=" second: $e for 37;"
	grep -q 'another build are left out' complaint || why+=' the other build is not told;'
	e=$(effect serve.c:7 --build-id "$(readelf -n first | sed -n 's/.*Build ID: \(............\).*/\1/p')")
	near "$e" 37 || why+=" first: $e for 37;"
}
serve second
tried second_build
verdict 'each build has its table' "$why" log complaint

# Slopes, all the time, of the processes that run the point's file.
with_slopes() {
	rm -rf slopes
	setpriv --bounding-set "-all,$set" "$COZBPF" collect --db slopes --rate 200 -p "served=$tmp/second:served" -d 8s 2>>log || why+=" status $?;"
	"$COZBPF" top --db slopes --json >top.json 2>complaint || why+=' no top;'
	python3 -c 'import json, sys
shares = json.load(open("top.json"))["shares"]
at = {x["function"]: x.get("slope") for x in shares["rows"]}
print(shares.get("point"), at)
sys.exit(0 if shares["point"] == "served" and abs(at["less"] - 0.75) < 0.1 and abs(at["more"] - 0.25) < 0.1 else 1)' >found 2>>complaint || why+=" $(cat found);"
	"$COZBPF" top --db slopes | grep -qE '^ *share +slope +time +function' || why+=' no column;'
	"$COZBPF" report --db slopes >report 2>>complaint || why+=" report: status $?;"
	grep -qE '^serve\.c:8 +less +[0-9.]+ % +[67][0-9.]+' report || why+=' no row of the report;'
}
tried with_slopes
verdict 'slopes all the time' "$why" log complaint report

# The same by hand, from the rows that other programs get.
why=''
"$COZBPF" db export --db db --what experiments --to csv -o rows.csv 2>complaint || why+=" status $?;"
e=$(python3 - rows.csv "$(readelf -n second | sed -n 's/.*Build ID: //p')" <<'P'
import csv, sys
time, visits = {}, {}
for row in csv.DictReader(open(sys.argv[1], encoding="utf-8")):
    if row["line"].endswith("serve.c:8") and row["build_id"] == sys.argv[2]:
        at = round(100 * float(row["speedup"]))
        time[at] = time.get(at, 0) + int(row["effective_ns"])
        visits[at] = visits.get(at, 0) + int(row["visits"])
found = [(1 - time[s] / visits[s] / (time[0] / visits[0])) / s for s in time if s >= 40]
print(round(100 * 50 * sum(found) / len(found)))
P
)
near "$e" 37 || why+=" $e for 37;"
"$COZBPF" db export --db db --what experiments --to json | sed -n 1p | python3 -m json.tool >/dev/null || why+=' no JSON;'
verdict 'rows of experiments' "$why" complaint

# Several databases in one: the same experiments.
why=''
"$COZBPF" db merge -o both db 2>complaint || why+=' not merged;'
[ "$("$COZBPF" report --db both --json 2>/dev/null)" = "$("$COZBPF" report --db db --json 2>/dev/null)" ] || why+=' another report;'
verdict 'merged' "$why" complaint

# What ends experiments: it is said, with what it was, and the program runs on.
stops() { # WANTED-STATUS CONDITION ARGUMENT...
	local wanted=$1 condition=$2
	shift 2
	why=''
	rm -f stopped.jsonl
	timeout 30 "$COZBPF" system -q --no-report -o stopped.jsonl --pid-tree "$server" -d 4 --stop-if "$condition" "$@" >out 2>complaint
	status=$?
	[ "$status" -eq "$wanted" ] || why+=" status $status;"
	[ "$wanted" -eq 0 ] || grep -qF "experiments end, since --stop-if '$condition' holds" complaint || why+=' no reason;'
	[ "$wanted" -ne 0 ] || [ ! -s complaint ] || why+=' a complaint;'
	kill -0 "$server" || why+=' the program is gone;'
	verdict "--stop-if $condition" "$why" complaint
}
stops 3 'load>0' -p "served=$tmp/second:served"
stops 0 'load>100000' -p "served=$tmp/second:served"
stops 3 'p50(work)>1us' --latency "work=$tmp/second:more,$tmp/second:less"
stops 0 'p99(work)>10s' --latency "work=$tmp/second:more,$tmp/second:less"
(while :; do /bin/true; done) &
server=$!
stops 3 'restarts>2' -p syscall:exit_group
kill "$server"
server=$(pgrep -f "$tmp/second|^./second" | head -n 1)
bad_stop=$("$COZBPF" system --pid-tree 1 --stop-if 'p99(x)>1ms' -p x 2>&1)
[ "$bad_stop" = "cozbpf: system: --stop-if 'p99(x)>1ms': no --latency is called 'x'" ] && why='' || why=" '$bad_stop'"
verdict 'a condition on a latency that there is not' "$why"

# A collector that is killed takes its experiments along, and the program runs on.
"$COZBPF" collect --db db --cgroup "$group" --experiments 60% -p "served=$tmp/second:served" 2>>log &
job=$!
sleep 4
inside=$(pgrep -c -P "$job" -f "^[^ ]*cozbpf system ")
kill -KILL "$job"
wait "$job" 2>/dev/null
why=''
[ "$inside" -eq 1 ] || why+=" $inside processes made experiments;"
for _ in {1..60}; do
	pgrep -f "cozbpf system --cgroup $group" >/dev/null || break
	sleep 0.1
done
pgrep -f "cozbpf system --cgroup $group" >/dev/null && why+=' they go on;'
kill -0 "$server" 2>/dev/null || why+=' the program is gone;'
verdict 'a killed collector' "$why" log
kill "$server"

# Nobody is there: it says so, samples go on.
: >log
collect second 5 || true
[ "$(grep -c 'in scope\|is empty\|no process' log)" -ge 1 ] && why='' || why='not told'
verdict 'nobody in the group' "$why" log

bad 'no control group' 'Say --cgroup' collect --db new --experiments 2% -p x
bad 'no point' 'Say -p POINT' collect --db new --experiments 2% --cgroup "$group"
bad 'a point without its file' 'whose slopes' collect --db new -p x
bad 'too much' 'from 0.1 to 100' collect --db new --experiments 200%
bad 'files and a database' 'choose one' report --db db file
bad 'a build that is not there' 'no experiments or slopes of build' report --db db --build-id 00000000
none_left && why='' || why='a process'
verdict 'nothing is left behind' "$why"
