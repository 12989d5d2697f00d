#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# A profile in all its forms carries the same numbers; as HTML it is one file that asks for nothing, whose tables can be sorted and filtered in a
# browser, and in which the text of a hostile profile is text.
# needs: root btf chromium go python:jsonschema
# beside: others
# shellcheck disable=SC2154 # what helpers.sh sets
set -uo pipefail
# shellcheck source=tests/e2e/helpers.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/helpers.sh"
python=/usr/bin/python3 # which has the modules of packages
chmod 711 "$tmp" # sources are read with the rights of nobody
# Of real programs, beside those that the tests have.
for program in barrier pipeline; do
	"$COZBPF" run --keep-root -q --no-report -o "$tmp/$program.jsonl" -p progress -d 5 -- "$BUILD/examples/$program" 6 >/dev/null 2>&1 &
done
wait
"$python" "$here/report_forms.py" "$COZBPF" "$SRC" "$tmp"

refused() { # NAME PATTERN OPTION...
	local name=$1 pattern=$2 why='' status before after
	shift 2
	before=$(find "$tmp/files" -type f -exec sha256sum {} + | sort)
	(cd "$tmp/files" && timeout 20 "$COZBPF" report "$@" "$SRC/tests/data/exact.jsonl") >"$tmp/out" 2>"$tmp/complaint"
	status=$?
	after=$(find "$tmp/files" -type f -exec sha256sum {} + | sort)
	[ "$status" -eq 125 ] || why+=" status $status, not 125;"
	[ "$(wc -l <"$tmp/complaint")" -eq 1 ] && grep -qE -- "$pattern" "$tmp/complaint" || why+=" not one line with '$pattern';"
	[ "$before" = "$after" ] || why+=' files changed;'
	verdict "$name" "$why" "$tmp/complaint"
}
mkdir "$tmp/files"
cp "$SRC/tests/data/exact.jsonl" "$tmp/files/profile.jsonl"
ln -s profile.jsonl "$tmp/files/link"
mkfifo "$tmp/files/pipe"
refused 'a profile is not overwritten by a report' 'not such a report' --html profile.jsonl
refused 'no link is followed' 'symbolic link' --html link
refused 'a pipe is not waited for' 'not a regular file' --html pipe
refused 'a directory that is not there' "cannot write 'none/page.html'" --html none/page.html
refused 'two forms at once' '--json and --csv: choose one' --json --csv
"$COZBPF" report --html "$tmp/files/page.html" "$SRC/tests/data/exact.jsonl" >/dev/null 2>"$tmp/complaint" &&
	"$COZBPF" report --html "$tmp/files/page.html" "$SRC/tests/data/noisy.jsonl" >/dev/null 2>>"$tmp/complaint" && why='' || why=' it fails;'
[ "$(find "$tmp/files" -name 'page.html*' | wc -l)" -eq 1 ] || why+=' other files are left;'
"$COZBPF" report "$SRC/tests/data/noisy.jsonl" --html "$tmp/full.html" >/dev/null 2>&1
cmp -s "$tmp/full.html" "$tmp/files/page.html" || why+=' not the second one;'
verdict 'an older report is replaced' "$why" "$tmp/complaint"

# The file that run writes is the one that is meant.
mkdir "$tmp/here"
why=''
(cd "$tmp/here" && "$COZBPF" report) >"$tmp/out" 2>"$tmp/complaint" && why+=' there is none, and it is printed;'
[ "$(wc -l <"$tmp/complaint")" -eq 1 ] && grep -q 'There is no cozbpf.jsonl here' "$tmp/complaint" || why+=' not one line about it;'
cp "$SRC/tests/data/exact.jsonl" "$tmp/here/cozbpf.jsonl"
(cd "$tmp/here" && cmp -s <("$COZBPF" report --csv) <("$COZBPF" report --csv cozbpf.jsonl)) || why+=' it is not taken;'
verdict 'report without a file' "$why" "$tmp/complaint"

# No line is longer than was asked for, nor than 100 columns where nothing is known of the terminal.
wide() { # COLUMNS COMMAND...
	local most=$1 longest
	shift
	longest=$(LC_ALL=C.UTF-8 "$@" 2>&1 | LC_ALL=C.UTF-8 wc -L)
	[ "$longest" -gt 0 ] && [ "$longest" -le "$most" ] || printf ' %s columns for %s: %s;' "$longest" "$most" "${*##*/}"
}
why=''
for sample in "$SRC"/tests/data/*.jsonl "$SRC"/tests/data/*.coz "$tmp/barrier.jsonl" "$tmp/pipeline.jsonl"; do
	for options in '' '--verbose --all --inline'; do
		# shellcheck disable=SC2086 # several options
		why+=$(wide 80 "$COZBPF" report $options --width 80 "$sample")$(wide 100 "$COZBPF" report $options "$sample")
	done
done
why+=$(wide 80 "$COZBPF" diff --width 80 "$tmp/barrier.jsonl" "$tmp/barrier.jsonl")$(wide 100 "$COZBPF" diff "$SRC/tests/data/exact.jsonl" "$SRC/tests/data/noisy.jsonl")
verdict 'no line is too long' "$why"

# Other tools' formats.
export_to() { # FORM
	"$COZBPF" export --to "$1" -o "$tmp/exported.$1" "$SRC/tests/data/exact.jsonl" >"$tmp/out" 2>"$tmp/complaint"
}
export_to trace && why='' || why=" status $?;"
"$python" - "$tmp/exported.trace" "$SRC/tests/data/exact.jsonl" <<'PYTHON' >"$tmp/out" 2>&1 || why+=" $(cat "$tmp/out");"
import json, sys
trace = json.load(open(sys.argv[1]))["traceEvents"]
records = [json.loads(line) for line in open(sys.argv[2])]
experiments = [r for r in records if r["type"] == "experiment"]
slices = [e for e in trace if e["ph"] == "X"]
wrong = [e for e in trace if e["ph"] not in "XCM" or not {"name", "pid", "ts"} <= e.keys() or e["ts"] < 0]
if wrong or len(slices) != len(experiments) or any(s["dur"] != x["elapsed"] / 1000 or s["args"]["line"] != x["selected"] for s, x in zip(slices, experiments)):
    sys.exit(f"{len(slices)} slices of {len(experiments)} experiments, wrong: {wrong[:2]}")
rates = [e["args"]["value"] for e in trace if e["name"] == "frame per second"]
visits = [r["delta"] for r in records if r["type"] == "throughput-point" and r["name"] == "frame"]
if any(abs(rate - 1e9 * n / x["elapsed"]) > 1e-6 for rate, n, x in zip(rates, visits, experiments)) or len(rates) != len(experiments):
    sys.exit(f"rates {rates[:3]}")
PYTHON
verdict 'export to trace' "$why" "$tmp/complaint"
export_to pprof && why='' || why=" status $?;"
PPROF_TMPDIR=$tmp HOME=$tmp go tool pprof -top -lines -sample_index=samples "$tmp/exported.pprof" >"$tmp/top" 2>>"$tmp/complaint" || why+=' pprof does not read it;'
grep -qE '^ +500 +50(\.00)?% .*encode /src/app/hot\.c:10' "$tmp/top" || why+=' not half of the samples in hot.c;'
verdict 'export to pprof' "$why" "$tmp/complaint" "$tmp/top"
"$COZBPF" export --to trace "$SRC/tests/data/old.coz" >"$tmp/out" 2>"$tmp/complaint"
status=$?
[ "$status" -eq 125 ] && [ ! -s "$tmp/out" ] && [ "$(wc -l <"$tmp/complaint")" -eq 1 ] && grep -q 'when they began' "$tmp/complaint" && why='' || why=" status $status;"
verdict 'a profile without times has no trace' "$why" "$tmp/complaint"

# Runs of several hosts. On one that is half as fast all takes twice as long, and the effects are the same.
"$python" - "$SRC/tests/data/noisy.jsonl" "$tmp/slow.jsonl" "$tmp/build.jsonl" "$tmp/points.jsonl" <<'PYTHON'
import json, sys
times = {"duration", "elapsed", "settled_duration", "settled_elapsed", "effective_ns", "first_ns", "last_ns", "growth", "time"}
records = [json.loads(line) for line in open(sys.argv[1])]
def write(path, change):
    with open(path, "w") as f:
        f.writelines(json.dumps(change(json.loads(json.dumps(r)))) + "\n" for r in records)
def slow(r):
    return {k: 2 * v if k in times and r["type"] != "startup" else v for k, v in r.items()}
def other_build(r):
    if r["type"] == "startup":
        r["cozbpf"]["build"] = "feed"
    return r
def other_point(r):
    return {**r, "name": "picture"} if r.get("name") == "frame" else r
for path, change in zip(sys.argv[2:], (slow, other_build, other_point)):
    write(path, change)
PYTHON
"$COZBPF" merge -o "$tmp/both.jsonl" "$SRC/tests/data/noisy.jsonl" "$tmp/slow.jsonl" 2>"$tmp/complaint" && why='' || why=" status $?;"
"$python" - "$COZBPF" "$SRC/tests/data/noisy.jsonl" "$tmp/both.jsonl" <<'PYTHON' >"$tmp/out" 2>&1 || why+=" $(cat "$tmp/out");"
import json, subprocess, sys
one, both = (json.loads(subprocess.run([sys.argv[1], "report", "--json", path], stdout=subprocess.PIPE, check=True).stdout) for path in sys.argv[2:])
def effects(said):
    return {(p["name"], line["selected"], at["speedup"], len(all)): at["effect"] for p in said["points"] for line in p["lines"]
            for all in (line["curve"]["at"], line["cells"]) for at in all if at["effect"] is not None}
a, b = effects(one), effects(both)
apart = max(abs(a[k] - b[k]) for k in a)
if both["runs"] != 2 or both["experiments"] != 2 * one["experiments"] or a.keys() != b.keys() or apart > 0.015:
    sys.exit(f"{both['runs']} runs, {both['experiments']} experiments, effects up to {100 * apart:.1f} points apart")
PYTHON
verdict 'runs of a fast and a slow host together' "$why" "$tmp/complaint"
not_merged() { # NAME PATTERN OUTPUT FILE...
	local name=$1 pattern=$2 output=$3 why='' status before
	shift 3
	before=$(stat -c '%i %s %y' "$output" 2>/dev/null)
	"$COZBPF" merge -o "$output" "$@" >"$tmp/out" 2>"$tmp/complaint"
	status=$?
	[ "$status" -eq 125 ] || why+=" status $status, not 125;"
	[ "$(wc -l <"$tmp/complaint")" -eq 1 ] && grep -qE -- "$pattern" "$tmp/complaint" || why+=" not one line with '$pattern';"
	[ "$before" = "$(stat -c '%i %s %y' "$output" 2>/dev/null)" ] || why+=' a file changed;'
	verdict "$name" "$why" "$tmp/complaint"
}
not_merged 'another build' 'another build of the program' "$tmp/none.jsonl" "$SRC/tests/data/noisy.jsonl" "$tmp/build.jsonl"
not_merged 'other points' "no point 'frame'" "$tmp/none.jsonl" "$SRC/tests/data/noisy.jsonl" "$tmp/points.jsonl"
not_merged 'two formats' 'different formats' "$tmp/none.jsonl" "$SRC/tests/data/noisy.jsonl" "$SRC/tests/data/old.coz"
not_merged 'a file that is there' 'is there already' "$tmp/both.jsonl" "$SRC/tests/data/noisy.jsonl" "$tmp/slow.jsonl"

# A program before and after a change: its hot line was made half as long, which is worth a quarter, as was predicted.
"$python" - "$SRC/tests/data/noisy.jsonl" "$tmp/faster.jsonl" <<'PYTHON'
import json, random, sys
rng = random.Random(3)
with open(sys.argv[2], "w") as f:
    for line in open(sys.argv[1]):
        r = json.loads(line)
        if r["type"] == "experiment":
            scale = 0.75 * (1 + rng.uniform(-0.005, 0.005))
            for key in ("duration", "elapsed", "settled_duration", "settled_elapsed"):
                r[key] = int(scale * r[key])
        elif "effective_ns" in r:
            r["effective_ns"] = int(scale * r["effective_ns"])
        f.write(json.dumps(r) + "\n")
PYTHON
"$COZBPF" diff --changed hot.c:10=50 --json "$SRC/tests/data/noisy.jsonl" "$tmp/faster.jsonl" >"$tmp/out" 2>"$tmp/complaint" && why='' || why=" status $?;"
"$python" - "$tmp/out" <<'PYTHON' >"$tmp/said" 2>&1 || why+=" $(cat "$tmp/said");"
import json, sys
point = next(p for p in json.load(open(sys.argv[1]))["points"] if p["name"] == "frame")
if abs(point["gain"]["effect"] - 0.25) > 0.01 or point["promise"]["outcome"] != "came true" or abs(point["promise"]["predicted"]["effect"] - 0.25) > 0.01 or len(point["lines"]) != 3:
    sys.exit(json.dumps(point)[:600])
PYTHON
verdict 'a prediction that came true' "$why" "$tmp/complaint"
diff_fails() { # NAME STATUS ARGUMENT...
	local name=$1 wanted=$2 why='' status
	shift 2
	"$COZBPF" diff "$@" >"$tmp/out" 2>"$tmp/complaint"
	status=$?
	[ "$status" -eq "$wanted" ] || why+=" status $status, not $wanted;"
	verdict "$name" "$why" "$tmp/out" "$tmp/complaint"
}
diff_fails 'slower by more than allowed' 1 --fail-if 20 "$tmp/faster.jsonl" "$SRC/tests/data/noisy.jsonl"
diff_fails 'slower by less than allowed' 0 --fail-if 50 "$tmp/faster.jsonl" "$SRC/tests/data/noisy.jsonl"
diff_fails 'slower, and nothing said' 0 "$tmp/faster.jsonl" "$SRC/tests/data/noisy.jsonl"
diff_fails 'no point in common' 125 "$SRC/tests/data/empty.jsonl" "$SRC/tests/data/noisy.jsonl"
diff_fails 'a line that was not tried' 125 --changed hot.c:11=50 "$SRC/tests/data/noisy.jsonl" "$tmp/faster.jsonl"
diff_fails 'one profile alone' 125 "$tmp/faster.jsonl"
diff_fails 'a change that is no number' 125 --changed hot.c:10 "$tmp/faster.jsonl" "$SRC/tests/data/noisy.jsonl"
