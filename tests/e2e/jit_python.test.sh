#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# CPython: with a perf map its functions are rows, and not the evaluator that runs them; without one the report says what to start it with.
# needs: root btf python3
# beside: others
# shellcheck disable=SC2154 # what helpers.sh sets
# shellcheck disable=SC2016 # what a report says
set -uo pipefail
# shellcheck source=tests/e2e/helpers.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/helpers.sh"
cd "$tmp" || exit 1

# The name may be that of a script which chooses a version.
python=''
for candidate in python3 python3.{12..15} "${HOME:-/root}"/.pyenv/versions/3.1[2-9]*/bin/python3; do
	python=$("$candidate" -X perf -c 'import os, sys; os.unlink(f"/tmp/perf-{os.getpid()}.map"); print(sys.executable)' 2>/dev/null) && break
done
if [ -z "$python" ]; then
	printf 'skip python 3.12 or later: needs package:python3.12\n'
	exit 0
fi
cat >rounds.py <<'PY'
import os
import sys
import time

out = os.open("/dev/null", os.O_WRONLY)


def slow(n):
    s = 0
    for i in range(n):
        s = (s * 31 + i) & 0xffff
    return s


def quick(n):
    s = 1
    for i in range(n):
        s = (s * 37 + i) & 0xffff
    return s


end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    os.write(out, str(slow(20000) + quick(10000)).encode())
PY
share() { # FUNCTION
	printf "sum(n for s, n in samples.items() if s.startswith('py::%s:') and s.endswith('/rounds.py [jit]')) / max(1, sum(samples.values()))" "$1"
}
expect() {
	holds "$1" || why+=" not $1: $(ask 'dict(sorted(samples.items(), key=lambda x: -x[1])[:6])');"
}

functions() {
	profiled --what on-cpu -p round=syscall:write --experiment 200 -- "$python" -X perf "$PWD/rounds.py" "$(lasting 6)" || why+=" status $?;"
	expect "0.5 < $(share slow) < 0.8"
	expect "0.2 < $(share quick) < 0.45"
	holds "any(x['selected'].startswith('py::slow:') for x in experiments)" || why+=" selected: $(ask '{x["selected"] for x in experiments}');"
	"$COZBPF" report "$profile" >text 2>err || why+=' no report;'
	! grep -q 'evaluator of Python' text || why+=' an option is named that was there;'
}
tried functions
verdict 'functions of a script' "$why" text err

# Who asks for the evaluator gets it.
evaluator() {
	profiled --what on-cpu -p round=syscall:write -b MAIN -b 'libpython3*' --granularity function -- "$python" -X perf "$PWD/rounds.py" \
		"$(lasting 4)" || why+=" status $?;"
	expect "samples.get('_PyEval_EvalFrameDefault', 0) > 0.1 * sum(samples.values()) and not any(s.endswith('[jit]') for s in samples)"
}
tried evaluator
verdict 'the evaluator, if asked for' "$why" err

without() {
	profiled --what on-cpu -p round=syscall:write -b MAIN -b 'libpython3*' --granularity function -- "$python" "$PWD/rounds.py" "$(lasting 4)" ||
		why+=" status $?;"
	"$COZBPF" report "$profile" >text 2>err || why+=' no report;'
	tr '\n' ' ' <text | tr -s ' ' | found 'of the samples are in the evaluator of Python, which runs functions without a name here: start it with `python3 -X perf`' ||
		why+=' nothing is said;'
}
tried without
verdict 'without a map: what to start it with' "$why" text err

grep -lF "$PWD/rounds.py" /tmp/perf-*.map 2>/dev/null | xargs -r rm -f
