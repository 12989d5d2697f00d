#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Continuous profiles: what collect counts, what top, db and diff make of it, and what happens when things go wrong.
# needs: root btf python3 setpriv
# shellcheck disable=SC2154 # what helpers.sh sets
set -uo pipefail
# shellcheck source=tests/e2e/helpers.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/helpers.sh"
cd "$tmp" || exit 1

unset LC_ALL
export LC_CTYPE=C

collect() { # ARGUMENT...
	timeout -k 5 60 "$COZBPF" collect "$@" 2>>log
}

# share BY NAME [ARGUMENT]...: of the samples of database `db`, in per cent.
share() {
	local by=$1 name=$2
	shift 2
	"$COZBPF" top --db db --by "$by" --json --top 0 "$@" 2>>complaint |
		python3 -c 'import json, sys
rows = json.load(sys.stdin)["shares"]["rows"]
print(round(100 * sum(r["share"] for r in rows if r[sys.argv[1]] == sys.argv[2]), 1))' "$by" "$name"
}

at_least() { # NUMBER BOUND
	awk -v a="$1" -v b="$2" 'BEGIN { exit !(a >= b) }'
}

# Two processes of one program: what takes three quarters of each is arithmetic, with a chain in a register. A variable in memory would go at a speed of
# its own in each loop.
cat >split.c <<'C'
#include <stdint.h>
#define WORK(x) __asm__ volatile(".rept 16\n\timul %0, %0\n\t.endr" : "+r"(x))
__attribute__((noinline)) static void more(void) { uint64_t x = 3; for (int i = 0; i < 30000; i++) WORK(x); }
__attribute__((noinline)) static void less(void) { uint64_t x = 5; for (int i = 0; i < 10000; i++) WORK(x); }
int main(void) { for (;;) { more(); less(); } }
C
gcc -O2 -g split.c -o split || exit 1
./split &
first=$!
./split &
second=$!

: >log
collect --db db --rate 1000 -d 5s
status=$?
why=''
[ "$status" -eq 0 ] || why+=" status $status;"
grep -q 'samples, .* of them in entries that were there, 0 lost' log || why+=' no account;'
more=$(share function more --process split)
at_least "$more" 72 && at_least 78 "$more" || why+=" more has $more % of 75;"
whole=$(share process split)
at_least "$whole" 60 || why+=" the processes have $whole %;"
grep -q 'split.c:3' <("$COZBPF" top --db db --by line --image split) || why+=' no line;'
verdict 'shares are those of the program' "$why" log complaint

why=''
"$COZBPF" top --db db >table 2>complaint || why+=" status $?;"
read -r sampled unit < <(tr -s '\n ' ' ' <table | sed -nE 's/.*samples of busy CPUs \([^)]*\)(,|: [0-9.]+ m?s of the) ([0-9.]+) (m?s) of CPU time.*/\2 \3/p')
awk -v t="$sampled" -v u="$unit" -v n="$(nproc)" 'BEGIN { s = u == "ms" ? t / 1000 : t; exit !(s > 4 * n && s < 7 * n) }' ||
	why+=" $sampled $unit were sampled of $(nproc) CPUs in 5 s;"
[ ! -s complaint ] || why+=' a complaint;'
"$COZBPF" top --db db --html page.html >/dev/null 2>>complaint || why+=' no page;'
grep -q '<td class=name>more' page.html || why+=' nothing on the page;'
"$COZBPF" top --db db --csv --by image | found 'split' || why+=' no CSV;'
[ "$(share cgroup '[none]')" != 100 ] || why+=' no control groups;'
[ "$("$COZBPF" top --db db --since 2020-01-01 --until 2020-01-02 | grep -c 'no samples')" = 1 ] || why+=' samples of another time;'
verdict 'tables, pages, filters' "$why" complaint table

# A program that is deleted keeps its build id; another build in its place is not taken for it.
readelf -n split | sed -n 's/.*Build ID: //p' >id
gcc -O1 -g split.c -o gone || exit 1
readelf -n gone | sed -n 's/.*Build ID: //p' >gone.id
./gone &
gone=$!
collect --db db --rate 1000 -d 3s &
job=$!
sleep 1
rm gone
wait "$job"
kill "$gone"
why=''
"$COZBPF" db export --to json --db db 2>complaint | grep '"process":"gone"' | grep '/gone"' | found "\"build_id\":\"$(cat gone.id)\"" || why+=' no build id;'
"$COZBPF" top --db db --process gone --image '*gone' | found 'No names of .*gone' || why+=' names of a file that is gone;'
verdict 'a deleted program' "$why" complaint

# SIGHUP reads the options again: a good file is taken, a bad one named and left.
printf 'rate = 50\ndb = %s/db\n' "$tmp" >conf
: >log
"$COZBPF" collect --config conf 2>>log &
job=$!
await_line log 'collect: 50 samples a second' 10
printf 'rate = often\n' >conf
kill -HUP "$job"
await_line log "conf: --rate 'often'" 10 && why='' || why=' no complaint;'
printf 'rate = 60\ndb = %s/db\n' "$tmp" >conf
kill -HUP "$job"
await_line log 'collect: 60 samples a second' 10 || why+=' not taken;'
"$COZBPF" collect --db db -d 1s 2>complaint && why+=' two on one database;'
grep -q 'another process writes' complaint || why+=' no reason;'
kill -TERM "$job"
wait "$job" || why+=" status $?;"
grep -q 'collect: [0-9]* samples, ' log || why+=' no account at the end;'
verdict 'options from a file' "$why" log complaint

# Killed at any moment: what was written is whole, and the next one goes on.
why=''
before=$("$COZBPF" db export --to json --db db | wc -l)
"$COZBPF" collect --db db --rate 200 2>>log &
job=$!
sleep 1
kill -KILL "$job"
wait "$job" 2>/dev/null
after=$("$COZBPF" db export --to json --db db 2>complaint | wc -l)
[ "$after" -ge "$before" ] || why+=" $before rows before, $after after;"
[ ! -s complaint ] || why+=' something is damaged;'
collect --db db -d 1s || why+=" status $? the next time;"
verdict 'killed' "$why" complaint log

# A disk that is full: one line says so, and another when there is room again.
mkdir small && mount -t tmpfs -o size=64k,mode=0700 tmpfs small
dd if=/dev/zero of=small/filler bs=1k count=44 2>/dev/null
: >log
mkdir small/db
"$COZBPF" collect --db small/db --rate 1000 2>>log &
job=$!
sleep 2
dd if=/dev/zero of=small/filler2 bs=1k count=64 2>/dev/null
kill -HUP "$job"
await_line log 'cannot write .*counts are kept in memory' 20 && why='' || why=' not told;'
rm small/filler small/filler2
kill -TERM "$job"
wait "$job" || why+=" status $?;"
grep -q 'can be written to again' log || why+=' not told that there is room;'
"$COZBPF" db info --db small/db >table 2>complaint || why+=' no database;'
[ ! -s complaint ] || why+=' damaged;'
umount small
verdict 'a full disk' "$why" log complaint table

# db: what it has, several in one, other formats, and two times beside each other.
why=''
kill "$first"
collect --db other --rate 1000 -d 2s || why+=" status $?;"
"$COZBPF" db info --db db >table || why+=' no info;'
grep -qE '^(1 epoch|2 epochs)\b' table || why+=' no epochs;'
"$COZBPF" db merge -o both db other 2>complaint || why+=' not merged;'
total() {
	"$COZBPF" db export --to csv --db "$1" | awk -F, 'NR > 1 && $6 !~ /sampler/ { n += $11 } END { print n }'
}
[ "$(total both)" -eq $(($(total db) + $(total other))) ] || why+=" $(total both) of $(total db) and $(total other);"
"$COZBPF" db merge -o both db 2>complaint && why+=' merged twice;'
"$COZBPF" db export --to pprof --db other -o out.pb.gz 2>>complaint || why+=' no pprof;'
[ "$(gzip -dc out.pb.gz 2>/dev/null | grep -c more)" -gt 0 ] || why+=' nothing in it;'
today=$(date -u +%Y-%m-%d)
"$COZBPF" diff --db both --by process "$today" "$today" >table 2>>complaint || why+=' no diff;'
grep -q 'no sure difference' table && ! grep -q '  differs' table || why+=' differs from itself;'
"$COZBPF" diff --db both "build:$(cut -c1-12 id)" "$today" >table 2>>complaint || why+=' no diff of a build;'
grep -q '  differs' table || why+=' one program is as all of them;'
verdict 'databases of several runs' "$why" complaint table
kill "$second"

# One line each.
mkdir full && : >full/file
bad 'a directory of other things' 'not empty' collect --db full
bad 'no database' 'no database' top --db full
bad 'an unknown event' 'did you mean page-faults' collect --db new --event page-fault
bad 'a bad rate' 'from 1 to 10000' collect --db new --rate 0
bad 'a bad size' 'sizes such as' collect --db new --max-size much
bad 'a control group that is none' 'no control group' collect --db new2 --cgroup "$tmp"
bad 'a bad time' 'times of UTC' diff --db db yesterday today
bad 'a bad word' 'unknown word' db remove
if ! "$COZBPF" collect --db new3 --event cycles -d 1s 2>/dev/null; then
	bad 'no PMU' 'there is no PMU' collect --db new4 --event cycles -d 1s
fi

# What the unit allows is enough to sample and to find build ids, and it ends.
unit=$BUILD/user/cli/cmd/cozbpf-collect.service
set=$(sed -n 's/^CapabilityBoundingSet=//p' "$unit" | tr '[:upper:]' '[:lower:]' | sed 's/cap_/+/g; s/ /,/g')
: >log
timeout -k 5 60 setpriv --bounding-set "-all,$set" "$COZBPF" collect --db unit.db --rate 500 -d 2s 2>>log && why='' || why=" status $?;"
"$COZBPF" db export --to csv --db unit.db 2>complaint | found -E '"[0-9a-f]{40}"' || why+=' no build ids;'
verdict "the unit's capabilities" "$why" log complaint
if command -v systemd-analyze >/dev/null; then
	sed "s|^ExecStart=.*/cozbpf|ExecStart=$COZBPF|" "$unit" >cozbpf-collect.service
	systemd-analyze verify --man=no "$tmp/cozbpf-collect.service" >complaint 2>&1 && [ ! -s complaint ] && why='' || why='refused'
	verdict 'the unit' "$why" complaint
else
	printf 'skip the unit: needs package:systemd\n'
fi
none_left && why='' || why='a process'
verdict 'nothing is left behind' "$why"
