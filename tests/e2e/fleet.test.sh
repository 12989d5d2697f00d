#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Many hosts in one database: as much is said of them as of one that runs as long, and another engine says the same of the rows (examples/fleet.md).
# needs: node npm python3
# beside: others
# shellcheck disable=SC2154 # what helpers.sh sets
set -uo pipefail
# shellcheck source=tests/e2e/helpers.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/helpers.sh"
cd "$tmp" || exit 1
duckdb=1.5.6-r.1

# Effects of lines, a row each: LINE SPEEDUP EFFECT HALF-WIDTH, in points. curve: what the tables show; cells: of just that speedup.
effects() { # JSON curve|cells
	python3 - "$@" <<'P'
import json, sys
for line in json.load(open(sys.argv[1], encoding="utf-8"))["points"][0]["lines"]:
    for at in line["curve"]["at"] if sys.argv[2] == "curve" else line["cells"]:
        if at["speedup"] > 0:
            print(line["selected"], round(100 * at["speedup"]), 100 * at["effect"], 50 * (at["high"] - at["low"]))
P
}

simulate() { # DIRECTORY HOSTS HOURS SEED
	python3 "$SRC/examples/fleet.py" "$@" || why+=' no hosts;'
}

report() { # DATABASE FILE
	"$COZBPF" report --db "$1" --json >"$2" 2>complaint || why+=" report of $1: status $?;"
	[ ! -s complaint ] || why+=' a complaint;'
}

# Ten hosts that are not equally fast, and one that does as much alone.
why=''
simulate ten 10 2 1
simulate one 1 20 2
"$COZBPF" db merge -o merged ten/host-* 2>complaint || why+=' not merged;'
report merged merged.json
report one/host-001 one.json
effects merged.json curve >merged.txt
effects one.json curve >one.txt
why+=$(
	python3 - merged.txt one.txt <<'P'
import math, sys
of = [{tuple(w[:2]): tuple(map(float, w[2:])) for w in map(str.split, open(path, encoding="utf-8"))} for path in sys.argv[1:]]
true = {"/src/query.c:120": lambda s: s / 2, "/src/cache.c:88": lambda s: 0.6 * min(s, 40), "/src/log.c:31": lambda s: 0}
if len(of[0]) != 12 or of[0].keys() != of[1].keys():
    print(f" {len(of[0])} and {len(of[1])} effects;")
for at, (effect, half) in of[0].items():
    other, other_half = of[1][at]
    if abs(effect - other) > math.hypot(half, other_half):
        print(f" {at}: {effect:.1f} +-{half:.1f} and {other:.1f} +-{other_half:.1f};")
    if half > 3:
        print(f" {at}: +-{half:.1f};")
# Of 24 intervals of 95 % more than three are missed once in a hundred times.
missed = [at for x in of for at, (effect, half) in x.items() if abs(effect - true[at[0]](float(at[1]))) > half]
if len(missed) > 3:
    print(f" intervals miss {missed};")
P
)
verdict 'ten hosts and one' "$why" complaint merged.txt one.txt

# The example's own query, of a hundred hosts.
why=''
modules=$BUILD/npm
if [ ! -d "$modules/node_modules/@duckdb/node-api" ] &&
	! npm install --fetch-retry-mintimeout=1000 --fetch-retry-maxtimeout=4000 --no-audit --no-fund --ignore-scripts --prefix "$modules" "@duckdb/node-api@$duckdb" >npm.log 2>&1; then
	printf 'skip a hundred hosts in DuckDB: npm cannot fetch it: %s\n' "$(tail -n 1 npm.log)"
	exit 0
fi
simulate hosts 100 1 3
"$COZBPF" db merge -o fleet hosts/host-* 2>complaint || why+=' not merged;'
report fleet fleet.json
"$COZBPF" db export --db fleet --what experiments --to csv -o experiments.csv 2>complaint || why+=' no rows;'
NODE_PATH=$modules/node_modules node "$SRC/examples/fleet.js" "$SRC/examples/fleet.sql" >answer.txt 2>>complaint || why+=" DuckDB: status $?;"
effects fleet.json cells >cells.txt
why+=$(
	python3 - cells.txt answer.txt <<'P'
import sys
cells = {tuple(w[:2]): tuple(map(float, w[2:])) for w in map(str.split, open(sys.argv[1], encoding="utf-8"))}
rows = [line.rstrip("\n").split("\t") for line in open(sys.argv[2], encoding="utf-8")]
answer = {(row[1], row[2]): (float(row[3]), float(row[4]), int(row[6])) for row in rows[1:]}
if len(cells) != 60 or cells.keys() != answer.keys():
    print(f" {len(cells)} effects in the report, {len(answer)} in the answer;")
for at, (effect, half) in cells.items():
    said, plus_minus, hosts = answer.get(at, (0, 0, 0))
    # The report also allows for what the method itself may be off by.
    if abs(said - effect) > 0.5 or not 0 < plus_minus <= 1.2 * half or not 50 <= hosts <= 100:
        print(f" {at}: {effect:.2f} +-{half:.2f} and {said:.2f} +-{plus_minus:.2f} of {hosts} hosts;")
P
)
verdict 'a hundred hosts in DuckDB' "$why" complaint answer.txt cells.txt
