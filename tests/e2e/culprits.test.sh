#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Functions of which each waits for one thing that was planted: it is among what the instruction with the most samples may wait for, and little else is.
# Of a database and of a profile.
# needs: root btf python3 package:llvm
# shellcheck disable=SC2154 # what helpers.sh sets
set -uo pipefail
# shellcheck source=tests/e2e/helpers.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/helpers.sh"
cd "$tmp" || exit 1
program=$BUILD/tests/e2e/programs/causes

# What is planted in each of 11 functions must be possible in all but one, with no more than three others on average; the fault is the kernel's, whose time
# is no function's in a database.
judge() { # FUNCTION-AND-ANNOTATION...
	python3 - "$@" <<'P'
import json, sys
planted = {
    "data_cache": "data cache", "dtlb": "DTLB", "divider": "divider", "lock": "lock", "forwarding": "forwarding", "store_buffer": "store buffer",
    "misprediction": "misprediction", "latency": "latency", "code_cache": "code cache", "system_call": "kernel", "page_fault": "kernel",
}
listed = missed = n = 0
for name in sys.argv[1:]:
    try:
        of = json.load(open(name, encoding="utf-8"))
    except ValueError:
        print(f" {name}: nothing;")
        continue
    rows = [x for b in of["blocks"] for x in b["instructions"]]
    top = max(rows, key=lambda x: x["samples"])
    cause = planted[of["function"]]
    n += 1
    listed += len(top["possible"])
    missed += cause not in top["possible"]
    print(f"{of['function']}: {top['samples']} of {of['samples']} at {top['code']}: {', '.join(top['possible'])}", file=sys.stderr)
    if of["samples"] < 40:
        print(f" {of['function']}: {of['samples']} samples;")
print(f"{n} functions, {missed} without their cause, {listed / max(n, 1):.1f} causes on average", file=sys.stderr)
if n < 10 or missed > 1 or listed > 3 * n:
    print(f" {missed} of {n} without their cause, {listed / max(n, 1):.1f} causes on average;")
P
}
functions='data_cache dtlb divider lock forwarding store_buffer misprediction latency code_cache system_call'

"$program" 12 &
timeout -k 5 60 "$COZBPF" collect --db db --rate 2000 -d 8s 2>log || exit 1
wait
why=''
for f in $functions; do
	"$COZBPF" annotate --db db --image causes --json "$f" >"db-$f" 2>complaint || why+=" $f: $(head -n 1 complaint);"
done
why+=$(judge db-* 2>table)
verdict 'of a database' "$why" table complaint

timeout -k 5 60 "$COZBPF" run -q --no-report -o profile -p progress -d 16 -- "$program" 40 2>log >/dev/null
why=''
for f in $functions page_fault; do
	"$COZBPF" annotate --json "$f" profile >"run-$f" 2>complaint || why+=" $f: $(head -n 1 complaint);"
done
why+=$(judge run-* 2>table)
verdict 'of a profile' "$why" table complaint
