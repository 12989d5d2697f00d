#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# CPython's functions have lines, by its frames in memory: shares, slopes, targets, threads, children, processes that run already.
# needs: root btf python3
# beside: others
# shellcheck disable=SC2154 # what helpers.sh sets
set -uo pipefail
# shellcheck source=tests/e2e/helpers.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/helpers.sh"
cd "$tmp" || exit 1

python=$(python3 -c 'import os, sys
print(os.path.realpath(sys.executable) if (3, 11) <= sys.version_info < (3, 15) else "")')
if [ -z "$python" ]; then
	echo 'skip CPython: python3 is not one of 3.11 to 3.14'
	exit
fi
cp "$here/programs/shares.py" .
at() { # MARK
	printf '%s/shares.py:%s' "$(pwd -P)" "$(grep -n "  # $1\$" shares.py | cut -d : -f 1)"
}
share() { # MARK: of all samples
	printf "samples.get('%s', 0) / max(1, sampled + unattributed)" "$(at "$1")"
}
expect() { # CONDITION
	holds "$1" || why+=" not $1: $(ask '(unattributed, dict(sorted(samples.items(), key=lambda x: -x[1])[:6]))');"
}
python_run() { # OPTION... -- ARGUMENT...
	local options=()
	while [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	shift
	profiled --what on-cpu -p syscall:write "${options[@]}" -- "$python" shares.py "$@" || why+=" status $?;"
}

# By arithmetic three quarters of what both loops take are long's. A loop takes two lines.
lines() { # OPTION...
	python_run "$@" --slopes-only -- "$(lasting 4)"
	expect "2.4 < ($(share long)) / max(1e-9, $(share short)) < 3.7"
	expect "$(share long) + $(share short) > 0.5"
	expect 'unattributed < 0.3 * (sampled + unattributed)'
	expect "sum(n for s, n in samples.items() if 'PyEval' in s or '[jit]' in s) < 0.02 * sampled"
	"$COZBPF" report --json "$profile" 2>err | python3 -c 'import json, sys
lines = {x["selected"]: x for x in json.load(sys.stdin)["points"][0]["lines"]}
long, short = lines[sys.argv[1]], lines[sys.argv[2]]
print(long["slope"], short["slope"], long["function"], short["function"])
sys.exit(0 if 2 < long["slope"] / short["slope"] < 4.5 and long["slope"] > 0.4
    and (long["function"], short["function"]) == ("long", "short") else 1)' "$(at long)" "$(at short)" >found 2>>err || why+=" slopes: $(cat found);"
}
tried lines
verdict 'lines and functions, and their slopes' "$why" found err
threads() {
	python_run --slopes-only -- "$(lasting 4)" threads
	expect "2.4 < ($(share long)) / max(1e-9, $(share short)) < 3.7"
	expect 'unattributed < 0.3 * (sampled + unattributed)'
}
tried threads
verdict 'in two threads' "$why" err
child() {
	python_run --slopes-only -- "$(lasting 4)" fork
	expect "2.4 < ($(share long)) / max(1e-9, $(share short)) < 3.7"
}
tried child
verdict 'in a child' "$why" err

target() {
	python_run -l "$(at long)" --experiment 200 -- "$(lasting 4)"
	holds "len(experiments) > 4 and all(x['selected'] == '$(at long)' for x in experiments)" ||
		why+=" selected: $(ask '{x["selected"] for x in experiments}');"
	holds "sum(x['selected_samples'] for x in experiments) > 100" || why+=' it was not sampled;'
}
tried target
verdict 'a target' "$why" err
functions() {
	python_run --slopes-only --granularity function -- "$(lasting 3)"
	expect "2 < samples.get('long', 0) / max(1, samples.get('short', 0)) < 4.5"
}
tried functions
verdict 'by function' "$why" err
callers() {
	python_run --slopes-only --attribution inclusive -- "$(lasting 3)"
	expect "$(share calls) > 0.5"
}
tried callers
verdict 'callers, where attribution is inclusive' "$why" err

# Python's own modules are in no scope that is not asked for; what they call is.
library() {
	python_run --slopes-only -- "$(lasting 3)" library
	expect "not any('/lib/python3' in s or 'frozen' in s for s in samples)"
	expect "$(share long) > 0.3"
}
tried library
verdict 'what a module calls' "$why" err

running() {
	local pid
	"$python" shares.py 30 >/dev/null &
	pid=$!
	sleep 0.5
	rm -f "$profile"
	timeout 40 "$COZBPF" attach "$pid" -q --no-report --slopes-only -p syscall:write -d "$(lasting 3)" -o "$profile" >out 2>err ||
		why+=" status $?;"
	kill "$pid"
	wait "$pid" 2>/dev/null
	expect "2.4 < ($(share long)) / max(1e-9, $(share short)) < 3.7"
	expect 'unattributed < 0.2 * (sampled + unattributed)'
}
tried running
verdict 'a process that runs already' "$why" err

# Who wants the interpreter's own functions has them.
interpreter() {
	python_run --slopes-only -b "$(basename "$python")" -- "$(lasting 3)"
	expect "not any('shares.py' in s for s in samples)"
}
tried interpreter
verdict 'the interpreter, if asked for' "$why" err
