#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# --slopes-only: what a little of each line is worth, while nothing is paused, preloaded or injected; run, attach and system; all forms of the report.
# needs: root btf python3 go bpftool
# shellcheck disable=SC2154 # what helpers.sh sets
set -uo pipefail
# shellcheck source=tests/e2e/helpers.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/helpers.sh"
cd "$tmp" || exit 1

handover() { # WINDOW SECONDS
	printf '%s\n' "$BUILD/tests/truth/handover" --round 5000 --kind mutex --window "$1" --seconds "$2"
}

# slope a, slope b, and how many lines and windows there are, of the profile.
cat >slopes.py <<'P'
import json
import subprocess
import sys

report = json.loads(subprocess.run([sys.argv[1], "report", "--json", sys.argv[2]], capture_output=True, text=True, check=True).stdout)
point = report["points"][0]
lines = {}
for line in point["lines"]:
    for mark, number in (("a", sys.argv[3]), ("b", sys.argv[4])):
        if line["selected"].endswith(f"handover.c:{number}"):
            lines[mark] = line
a, b = (lines[m]["slope"] if m in lines else 0 for m in "ab")
held = all(x["slope_low"] <= x["slope"] <= x["slope_high"] for x in lines.values())
print(a, b, held, report["experiments"], point["self_share"] is not None and point["self_share"] < 0.3)
P
mark() {
	grep -n "/\* LINE:$1 \*/" "$SRC/tests/truth/programs/handover.c" | cut -d : -f 1
}

# The two lines of ping-pong are 60 : 40 of a round; whatever else the machine does takes from both.
judge() { # CONDITION [1: there are experiments as well]
	local found beside=${2-0}
	found=$(python3 slopes.py "$COZBPF" "$profile" "$(mark a)" "$(mark b)" 2>complaint)
	read -r a b held experiments cheap <<<"$found"
	python3 -c "a, b = $a, $b
exit(0 if $1 else 1)" || why+=" slopes $a and $b;"
	[ "$held" = True ] || why+=' an interval without its slope;'
	[ "$((experiments > 0))" -eq "$beside" ] || why+=" $experiments experiments;"
	[ "$cheap" = True ] || why+=' what samples cost is not told;'
}

in_turn() {
	mapfile -t command < <(handover 1 3)
	profiled --slopes-only -p progress -- "${command[@]}" || why+=" status $?;"
	judge 'a > 0.1 and 1.3 < a / b < 1.75'
}
tried in_turn
verdict 'lines in turn' "$why" err complaint

# Each point has its own slopes: of two threads that have nothing to do with each other.
cat >two.c <<'C'
#include <pthread.h>
#include <stdint.h>
#include <unistd.h>
#define WORK(x) __asm__ volatile(".rept 16\n\timul %0, %0\n\t.endr" : "+r"(x))
#define SPIN(n) { uint64_t x = 3; for (int i = 0; i < (n); i++) WORK(x); }
__attribute__((noinline)) void one(void) { __asm__ volatile(""); }
__attribute__((noinline)) void other(void) { __asm__ volatile(""); }
static void *first(void *arg) { for (;;) { SPIN(20000); one(); } return arg; }
static void *second(void *arg) { for (;;) { SPIN(30000); other(); } return arg; }
int main(void) { pthread_t t[2]; pthread_create(&t[0], 0, first, 0); pthread_create(&t[1], 0, second, 0); sleep(3); return 0; }
C
gcc -O2 -g -pthread two.c -o two || exit 1
two_points() {
	profiled --slopes-only -p one -p other -- ./two || why+=" status $?;"
	"$COZBPF" report --json "$profile" 2>complaint | python3 -c 'import json, sys
best = {p["name"]: max((x for x in p["lines"] if x["slope"] is not None), key=lambda x: x["slope"]) for p in json.load(sys.stdin)["points"]}
print({n: (x["selected"], x["function"], x["slope"]) for n, x in best.items()})
sys.exit(0 if best["one"]["function"] == "first" and best["other"]["function"] == "second" and min(x["slope"] for x in best.values()) > 0.8 else 1)' >found 2>>complaint || why+=" $(cat found);"
}
tried two_points
verdict 'two points' "$why" err complaint found

# Samples as visits, where to count those would cost too much.
by_samples() {
	mapfile -t command < <(handover 1 3)
	profiled --slopes-only -p progress=sampled:work_b -- "${command[@]}" || why+=" status $?;"
	judge 'a > 0.1 and 1.3 < a / b < 1.75'
}
tried by_samples
verdict 'at samples of a function' "$why" err complaint

# With a queue between, the faster one is worth nothing.
side_by_side() {
	mapfile -t command < <(handover 8 3)
	profiled --slopes-only -p progress -- "${command[@]}" || why+=" status $?;"
	judge 'a > 0.1 and b < 0.5 * a'
}
tried side_by_side
verdict 'the line that nothing waits for' "$why" err complaint

# Between experiments as well, which lines with a slope get most of.
beside_experiments() {
	mapfile -t command < <(handover 1 8)
	profiled -p progress -- "${command[@]}" || why+=" status $?;"
	judge 'a > 0.1 and 1.2 < a / b < 1.9' 1
	"$COZBPF" report --width 200 "$profile" >text 2>complaint || why+=' no text;'
	grep -qE '^line +function +share +slope +25 %.*verdict +exp\.$' text || why+=' other columns;'
}
tried beside_experiments
verdict 'beside experiments' "$why" err complaint text

# Waits have places, and a call what it computes and what it waits for.
cat >rests.c <<'C'
#include <stdint.h>
#include <time.h>
#define WORK(x) __asm__ volatile(".rept 16\n\timul %0, %0\n\t.endr" : "+r"(x))
static void rest(long us) { nanosleep(&(struct timespec){0, us * 1000}, 0); }
__attribute__((noinline)) void visit(void) { __asm__ volatile(""); }
__attribute__((noinline)) void store(void) { uint64_t x = 3; for (int i = 0; i < 100000; i++) WORK(x); rest(6000); }
__attribute__((noinline)) void look(void) { uint64_t x = 3; for (int i = 0; i < 10000; i++) WORK(x); rest(2000); }
int main(void) { time_t end = time(0) + 5; while (time(0) < end) { store(); look(); visit(); } return 0; }
C
gcc -O2 -g rests.c -o rests || exit 1
where_threads_wait() { # OPTIONS CONDITION
	local condition=$1
	shift
	profiled --slopes-only -p visit --granularity function "$@" -- ./rests || why+=" status $?;"
	"$COZBPF" report --json "$profile" 2>complaint | python3 -c "import json, sys
s = {x['selected']: x['slope'] or 0 for x in json.load(sys.stdin)['points'][0]['lines']}
print(s)
sys.exit(0 if $condition else 1)" >found 2>>complaint || why+=" $(cat found);"
}
tried where_threads_wait "2.5 < s['store [timer]'] / s['look [timer]'] < 3.5 and abs(s['store [timer]'] + s['look [timer]'] - s['[timer]']) < 0.1"
verdict 'places of waits' "$why" err complaint found
tried where_threads_wait "s['store'] > s['[timer]'] * 0.7 and s['store'] > 2.5 * s['look'] and s['main'] > 0.9" --attribution inclusive
verdict 'calls with their waits' "$why" err complaint found

# What intervals are made of: one in twenty executes line a for 20 ms as well as b for 4 ms, or waits for
# the thread that executes it.
cat >classes.py <<'P'
import json
import subprocess
import sys

report = json.loads(subprocess.run([sys.argv[1], "report", "--json", sys.argv[2]], capture_output=True, text=True, check=True).stdout)
point = next(p for p in report["points"] if p["kind"] == "latency")
shares = {}
for line in point["lines"]:
    for mark, number in (("a", sys.argv[3]), ("b", sys.argv[4])):
        if line["selected"].endswith(f"latency.c:{number}"):
            shares[mark] = [c["share"] or 0 for c in line["by_class"]]
a, b = (shares.get(m, [0] * 4) for m in "ab")
mean = [c["mean_ns"] / 1e6 for c in point["classes"]]
print(a, b, mean)
sys.exit(0 if a[3] > 0.7 and 0.05 < b[3] < 0.3 and a[0] < 0.1 and b[0] > 0.7 and mean[3] > 3 * mean[0] else 1)
P
slow_ones() { # KIND
	profiled --slopes-only --latency request=request_begin,request_end -- "$BUILD/tests/truth/latency" --kind "$1" --round 4000 --seconds 8 || why+=" status $?;"
	python3 classes.py "$COZBPF" "$profile" "$(grep -n '/\* LINE:a \*/' "$SRC/tests/truth/programs/latency.c" | cut -d : -f 1)" \
		"$(grep -n '/\* LINE:b \*/' "$SRC/tests/truth/programs/latency.c" | cut -d : -f 1)" >found 2>complaint || why+=" $(cat found);"
	"$COZBPF" report "$profile" >text 2>>complaint || why+=' no text;'
	tr '\n' ' ' <text | grep -qE 'The slowest 1 % \([0-9.]+ ms on average\) spend [0-9.]+ % \[[0-9., ]+\] of their time at [^ ]*latency\.c' || why+=' no sentence;'
	grep -qE '^line +up to p50 +to p90 +to p99 +above$' text || why+=' no table;'
	"$COZBPF" report --markdown "$profile" 2>>complaint >text || why+=' no Markdown;'
	grep -qxF '| line | up to p50 | to p90 | to p99 | above |' text || why+=' no table in Markdown;'
	"$COZBPF" report --csv "$profile" 2>>complaint >text || why+=' no CSV;'
	python3 -c '
import csv, sys
rows = [row for row in csv.DictReader(sys.stdin) if row["kind"] == "latency"]
sys.exit(not max(float(row["slope_to_max"] or 0) for row in rows) > 70)' <text || why+=' not the slowest in CSV;'
}
for kind in classes lock; do
	tried slow_ones "$kind"
	verdict "what slow intervals are made of: $kind" "$why" err complaint text
done

# attach and system: the program runs already.
attach_to() {
	local how=$1
	mapfile -t command < <(handover 1 8)
	"${command[@]}" >out 2>&1 &
	server=$!
	sleep 0.5
	rm -f "$profile"
	case $how in
	attach) words=(attach "$server") ;;
	system) words=(system --pid-tree "$server") ;;
	esac
	timeout -k 5 30 "$COZBPF" "${words[@]}" -q --no-report -o "$profile" --slopes-only -p "progress=${command[0]}:progress" -d 3 2>err || why+=" status $?;"
	! maps_of_ours "$server" || why+=' a library of cozbpf is in the process;'
	kill "$server"
	wait "$server" 2>/dev/null
	judge 'a > 0.1 and 1.3 < a / b < 1.75'
}
for how in attach system; do
	tried attach_to "$how"
	verdict "$how" "$why" err complaint
done

# While it runs, on a terminal.
on_a_terminal() {
	mapfile -t command < <(handover 1 8)
	"${command[@]}" >out 2>&1 &
	server=$!
	timeout -k 5 30 python3 -c 'import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)' "$COZBPF" attach "$server" --no-report -o "$profile" --slopes-only \
		-p "progress=${command[0]}:progress" -d 4 --status view >view 2>err </dev/null || why+=" status $?;"
	kill "$server"
	wait "$server" 2>/dev/null
	grep -q 'no pauses' view || why+=' no head;'
	grep -qE 'handover\.c:[0-9]+ +[0-9.]+ % +\[[0-9.]+, [0-9.]+\]' view || why+=' no slope with an interval;'
}
tried on_a_terminal
verdict 'the live view' "$why" view err

# The program sees nothing of us.
why=''
profiled --slopes-only -p progress -- "$programs/launch" sh -c 'echo "${LD_PRELOAD-none}"; grep -c cozbpf /proc/self/maps' || true
[ "$(sed -n 1p out)" = none ] || why+=" LD_PRELOAD is $(sed -n 1p out);"
[ "$(sed -n 2p out)" = 0 ] || why+=' a library of cozbpf is mapped;'
verdict 'nothing is preloaded' "$why" out err

# All forms say it.
forms() {
	mapfile -t command < <(handover 1 4)
	profiled --slopes-only -p progress -- "${command[@]}" || why+=" status $?;"
	"$COZBPF" report "$profile" >text 2>complaint || why+=' no text;'
	grep -q '^Slopes of ' text || why+=' no head;'
	tr '\n' ' ' <text | grep -qE 'A 10 % faster [^ ]*handover\.c:[0-9]+ takes' || why+=' no answer;'
	grep -qE '^line +function +share +slope$' text || why+=' other columns;'
	"$COZBPF" report --csv "$profile" 2>>complaint | head -n 1 | grep -q ',slope,slope_low,slope_high,' || why+=' no CSV;'
	"$COZBPF" report --markdown "$profile" 2>>complaint | grep -q '| slope |' || why+=' no Markdown;'
	"$COZBPF" report --html page --with-source --source-prefix "tests=$SRC/tests" "$profile" >/dev/null 2>>complaint && grep -q '<th scope=col class=n>slope' page || why+=' no HTML;'
	grep -q "<span class=here> *$(mark a) " page || why+=' no source;'
}
tried forms
verdict 'forms of the report' "$why" text complaint

# Viewers of pprof's format get each slope as a part of the run's time.
for_pprof() {
	rm -f slopes.pb.gz
	"$COZBPF" export --to pprof -o slopes.pb.gz "$profile" 2>complaint || why+=" status $?;"
	PPROF_TMPDIR=$tmp HOME=$tmp go tool pprof -top -lines -sample_index=critical slopes.pb.gz >text 2>>complaint || why+=' pprof does not read it;'
	grep -q '^Type: critical' text || why+=' another type;'
	# On a busy machine waits for a CPU can come before them.
	grep -v ' \[cpu\]$' text | grep -m 1 -E '^ +[0-9.]+m?s' | grep -qE "handover\.c:($(mark a)|$(mark b))" || why+=' another line is first;'
}
tried for_pprof
verdict 'export to pprof' "$why" text complaint

# Two runs of one program. What is promised of a line is its slope; how fast the machine was can differ.
two_runs() {
	cp "$profile" first.jsonl
	profiled --slopes-only -p progress -- "${command[@]}" || why+=" status $?;"
	"$COZBPF" diff first.jsonl "$profile" --changed "handover.c:$(mark a)=10" >text 2>complaint || why+=" diff: status $?;"
	tr '\n' ' ' <text | grep -qE '^The (program became (faster|slower): the )?time per visit of .progress. was [0-9]' || why+=' no time per visit;'
	grep -q '^Slopes in %' text || why+=' no slopes;'
	tr '\n' ' ' <text | grep -qE "was made 10 % faster: [2-9]\.[0-9] % " || why+=' another promise;'
	grep -E "handover\.c:$(mark a) .* (no sure difference|differs)" text >/dev/null || why+=' no row;'
}
tried two_runs
verdict 'diff of two profiles' "$why" text complaint

# A point whose visits nothing leads to, before one whose lines share a directory.
printf '%s\n' '{"type":"startup","time":1}' \
	'{"type":"slopes","point":"a","began":1,"length":9,"seen":1,"visits":1,"time_ns":1,"own_ns":0,"places":"0\t/x/a.c:1\n"}' \
	'{"type":"slopes","point":"b","began":1,"length":9,"seen":1,"visits":1,"time_ns":1,"own_ns":0,"places":"1\t/x/a.c:1\n"}' >two.jsonl
why=''
for form in '' --json --csv --markdown '--html page'; do
	# shellcheck disable=SC2086 # two words
	"$COZBPF" report $form two.jsonl >text 2>complaint || why+=" $form: status $?;"
done
verdict 'a point without lines' "$why" text complaint

# A server whose clients are out of scope: looking at each packet that the machine sends to itself tells nothing then, and ends.
cat >echo.py <<'P'
import socket, sys
here = socket.create_server(("127.0.0.1", 0))
if sys.argv[1] == "client":
    there = socket.create_connection(("127.0.0.1", int(sys.argv[2])))
    while True:
        there.send(b"x")
        there.recv(1)
print(here.getsockname()[1], flush=True)
with here.accept()[0] as c:
    while c.recv(1):
        c.send(b"x")
P
cat >linked.py <<'P'
import json, subprocess
show = lambda what: json.loads(subprocess.run(["bpftool", what, "show", "-j"], capture_output=True, text=True, check=True).stdout)
ids = {p["id"] for p in show("prog") if p.get("name") == "edge_raise"}
print(sum(x.get("prog_id") in ids for x in show("link")))
P
look_rests() {
	local server client job
	python3 echo.py server >port &
	server=$!
	await_line port . 5
	python3 echo.py client "$(cat port)" &
	client=$!
	rm -f -- "$profile"
	"$COZBPF" attach "$server" --slopes-only -p syscall:sendto -o "$profile" --no-report -q -d 20 >text 2>complaint &
	job=$!
	await_line "$profile" '"slopes"' 15
	[ "$(python3 linked.py)" -gt 0 ] || printf '# it rests already\n'
	for _ in {1..40}; do
		[ "$(python3 linked.py)" -gt 0 ] || break
		sleep 0.2
	done
	[ "$(python3 linked.py)" -eq 0 ] || why+=' all packets are looked at all the time;'
	kill -INT "$job"
	wait "$job" || why+=' it failed;'
	kill "$client" "$server"
	wait "$client" "$server"
}
tried look_rests
verdict 'packets are not looked at for nothing' "$why" complaint

bad '--runs' '--runs.*--slopes-only' run --slopes-only -n 3 -- true
bad '--sync pthread' '--slopes-only.*--sync pthread' run --slopes-only --sync pthread -p x -- true
none_left && why='' || why=" left behind: $(left_behind)"
verdict 'nothing is left behind' "$why"
