#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Node: functions of a script are rows and targets, whatever V8's compilers have made of them; without a perf map the report says what to
# start it with.
# needs: root btf python3 node
# beside: others
# shellcheck disable=SC2154 # what helpers.sh sets
# shellcheck disable=SC2016 # what a report says
set -uo pipefail
# shellcheck source=tests/e2e/helpers.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/helpers.sh"
cd "$tmp" || exit 1

# Rounds of two functions. One takes twice as long as the other; each round ends with a system call.
cat >rounds.js <<'JS'
const fs = require('fs');
const out = fs.openSync('/dev/null', 'w');
function slow(n) { let s = 0; for (let i = 0; i < n; i++) s = (s * 31 + i) | 0; return s; }
function quick(n) { let s = 1; for (let i = 0; i < n; i++) s = (s * 37 + i) | 0; return s; }
const end = Date.now() + 1000 * process.argv[2];
while (Date.now() < end) {
	fs.writeSync(out, String(slow(2000000) + quick(1000000)));
}
JS
share() { # FUNCTION
	printf "sum(n for s, n in samples.items() if s.startswith('%s ') and '/rounds.js:' in s and s.endswith(' [jit]')) / max(1, sum(samples.values()))" "$1"
}
expect() {
	holds "$1" || why+=" not $1: $(ask 'dict(sorted(samples.items(), key=lambda x: -x[1])[:6])');"
}

functions() {
	profiled --what on-cpu -p round=syscall:write --experiment 200 -- node --perf-basic-prof rounds.js "$(lasting 6)" || why+=" status $?;"
	expect "0.5 < $(share slow) < 0.75"
	expect "0.2 < $(share quick) < 0.45"
	holds "any(x['selected'].startswith('slow ') for x in experiments)" || why+=" selected: $(ask '{x["selected"] for x in experiments}');"
	"$COZBPF" report "$profile" >text 2>err || why+=' no report;'
	! grep -q 'makes as it runs' text || why+=' an option is named that was there;'
}
tried functions
verdict 'functions of a script' "$why" text err

slopes() {
	profiled --slopes-only -p round=syscall:write -- node --perf-basic-prof rounds.js "$(lasting 6)" || why+=" status $?;"
	"$COZBPF" report --json "$profile" 2>err | python3 -c 'import json, sys
lines = json.load(sys.stdin)["points"][0]["lines"]
found = [(x["selected"], x["function"], x["slope"]) for x in lines if x["function"] in ("slow", "quick")]
print(found)
slopes = {function: slope for _, function, slope in found}
sys.exit(0 if 0.4 < slopes.get("slow", 0) < 0.85 and 0.15 < slopes.get("quick", 0) < 0.55 else 1)' >found 2>>err || why+=" $(cat found);"
}
tried slopes
verdict 'they have slopes' "$why" found err

without() {
	profiled --what on-cpu -p round=syscall:write -- node rounds.js "$(lasting 4)" || why+=" status $?;"
	expect "samples.get('unnamed node code [jit]', 0) > 0.5 * sum(samples.values())"
	"$COZBPF" report "$profile" >text 2>err || why+=' no report;'
	tr '\n' ' ' <text | tr -s ' ' | found 'node makes as it runs: start it with `node --perf-basic-prof`' || why+=' nothing is said;'
}
tried without
verdict 'without a map: what to start it with' "$why" text err

grep -lF "$PWD/rounds.js" /tmp/perf-*.map 2>/dev/null | xargs -r rm -f
