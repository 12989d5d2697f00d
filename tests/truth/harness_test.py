#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests the truth harness against a stand-in for the profiler that computes its profiles from the cases: no privileges needed."""

import contextlib
import io
import os
import stat
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import cases  # noqa: E402
import truth  # noqa: E402

# Reads its own command line as the profiler would, and writes what a perfect one would find, times FAKE_SCALE. With
# FAKE_NOISY=FILE the first run of each file is without any effect. With FAKE_STATUS it fails.
FAKE = '''#!{python}
import json, os, sys
sys.path.insert(0, {here!r})
import cases, truth
if os.environ.get("FAKE_STATUS"):
    print("cozbpf: no such thing", file=sys.stderr)
    sys.exit(int(os.environ["FAKE_STATUS"]))
if sys.argv[1] == "report":
    records = [json.loads(x) for x in open(sys.argv[3]) if x.endswith("\\n")]
    period = {{}}
    for x, y in zip(records[1::2], records[2::2]):
        period[x["speedup"]] = y["effective_ns"] / (y["delta"] - 1)
    at = [dict(speedup=s, effect=1 - period[s] / period[0], low=0.98 - period[s] / period[0], high=1.02 - period[s] / period[0], method=0.012)
          for s in period if s]
    print(json.dumps(dict(points=[dict(lines=[dict(selected=records[1]["selected"], curve=dict(at=at, knee=0.33), verdict="no effect" if at[-1]["effect"] < 0.01 else "helps")])])))
    sys.exit(0)
if sys.argv[1] == "validate":
    off = float(os.environ.get("FAKE_GAP", "0"))
    print("Validation of x, 9 experiments")
    for row, a, b in (("slowed by", 25, 50), ("measured", -12.5 + off, -25), ("predicted", -12.5, -25), ("gap", off, 0)):
        print(f"  {{row:10}}" + "".join(f"  {{v:9.1f}} +- {{1:5.1f}}" for v in (a, b)))
    print("agrees within 1.0 points: x" if off < 3 else "GAP of 5.0 points: x")
    sys.exit(0 if off < 3 else 1)
split = sys.argv.index("--")
options, program = sys.argv[2:split], sys.argv[split + 1:]
def value(name):
    return options[options.index(name) + 1]
case = next(c for c in cases.CASES if os.path.basename(program[0]) == c.program
            and list(c.args) == program[1:1 + len(c.args)] and not c.foreign
            and value("--fixed-line") == f"{{c.source}}:{{truth.line_of(c.source, c.line)}}")
scale = float(os.environ.get("FAKE_SCALE", "1"))
noisy = os.environ.get("FAKE_NOISY")
if noisy and not os.path.exists(noisy):
    open(noisy, "w").close()
    scale = 0
single = "--fixed-speedup" in options
speedups = [int(x) for x in value("--fixed-speedup" if single else "--speedups").split(",")]
with open(value("-o"), "w") as out:
    def record(**r):
        out.write(json.dumps(r) + "\\n")
    record(type="startup", time=1, cozbpf=dict(pay=value("--pay"), period_ns=1000000))
    for s in speedups:
        period = 1e6 * (1 - scale * case.truth(s) / 100)
        n = 30000
        extra = dict(elapsed=int(n * period), hits=n, selected_samples=n, hit_ns=n * s * 10000, selected_ns=n * 1000000,
                     late=14000, imbalance=-3, foreign=0.0, growth=n * s * 10000, paid=n * s * 10000, threads=2)
        record(type="experiment", selected=value("--fixed-line"), speedup=s / 100, duration=int(n * period), **extra)
        record(type="throughput-point", name="progress", delta=n, first_ns=5, last_ns=6, effective_ns=int((n - 1) * period))
    out.write('{{"type":"exper')
stopped = 10 ** 9 + (30000 * 50000 if speedups == [5] else 0)
print("batches=30000 batch_iterations=1000000 ns_per_iteration=1.000000")
print(f"thread=a gaps=1 stopped_ns=1000000000 lived_ns=9000000000 below_20us=1")
print(f"thread=b gaps=1 stopped_ns={{stopped}} lived_ns=9000000000 below_20us=1")
'''

# A Coz that finds half of every effect, in its older form of a profile for one speedup and in its newer form for the others.
FAKE_COZ = '''#!{python}
import json, os, sys
sys.path.insert(0, {here!r})
import cases, truth
split = sys.argv.index("---")
options, program = sys.argv[2:split], sys.argv[split + 1:]
def value(name):
    return options[options.index(name) + 1]
case = next(c for c in cases.CASES if value("--fixed-line") == f"{{c.source}}:{{truth.line_of(c.source, c.line)}}"
            and list(c.args) == program[1:1 + len(c.args)] and not c.foreign)
s = int(value("--fixed-speedup"))
period = 1e6 * (1 - 0.5 * case.truth(s) / 100 if s else 1)
with open(value("-o"), "w") as out:
    if s == 50:
        out.write(f"startup\\ttime=1\\nexperiment\\tselected=x\\tspeedup=0.50\\tduration={{int(1000 * period)}}\\tselected-samples=3\\n")
        out.write("progress-point\\tname=progress\\ttype=source\\tdelta=1000\\n")
    else:
        out.write(json.dumps(dict(type="experiment", selected="x", speedup=s / 100, duration=int(1000 * period))) + "\\n")
        out.write(json.dumps(dict(type="throughput-point", name="progress", delta=1000)) + "\\n")
'''

# A program whose work really gets shorter.
FAKE_PROGRAM = '''#!{python}
import os, sys
sys.path.insert(0, {here!r})
import cases
case = next(c for c in cases.CASES if c.program == os.path.basename(sys.argv[0]) and list(c.args) == sys.argv[1:1 + len(c.args)])
faster = {{"--speedup-a": 0, "--speedup-b": 0}}
for name in faster:
    if name in sys.argv:
        faster[name] = float(sys.argv[sys.argv.index(name) + 1])
a, b = case.a_us * (1 - faster["--speedup-a"] / 100), case.b_us * (1 - faster["--speedup-b"] / 100)
print(f"visits=9 period_ns={{1000 * case.period(a, b):.0f}} steps_per_us=900")
'''


class Harness(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        self.fake = os.path.join(self.directory.name, "cozbpf")
        with open(self.fake, "w", encoding="utf-8") as f:
            f.write(FAKE.format(python=sys.executable, here=HERE))
        os.chmod(self.fake, stat.S_IRWXU)
        for case in cases.CASES:
            with open(os.path.join(self.directory.name, case.program), "w", encoding="utf-8"):
                pass

    def run_truth(self, *args, **environment):
        out = io.StringIO()
        before = dict(os.environ)
        os.environ.update(environment)
        try:
            with contextlib.redirect_stdout(out):
                status = truth.main(["--cozbpf", self.fake, "--programs", self.directory.name, "--per-us", "900", *args])
        finally:
            os.environ.clear()
            os.environ.update(before)
        return status, out.getvalue()

    def last(self, text):
        return text.strip().splitlines()[-1]

    def test_a_right_profile_passes(self):
        status, out = self.run_truth("--case", "independent-1/*", "--case", "hits/a", "--case", "stopped/a")
        self.assertEqual(self.last(out), "4 passed, 0 failed, 0 skipped", out)
        self.assertEqual(status, 0)
        self.assertIn("imbalance 3 ns", out)

    def test_a_flat_profile_fails(self):
        status, out = self.run_truth("--case", "independent-1/a", FAKE_SCALE="0")
        self.assertEqual(self.last(out), "0 passed, 1 failed, 0 skipped", out)
        self.assertIn("mean 31.25", out)
        self.assertEqual(status, 1)

    def test_both_estimates_are_compared(self):
        for how in ("timed", "coz"):
            status, out = self.run_truth("--case", "independent-1/a", "--estimate", how, FAKE_SCALE="0.8")
            self.assertEqual(status, 1)
            self.assertIn("of " + {"timed": "timed", "coz": "as Coz"}[how] + ", mean 6.25", out)

    def test_loose_allows_ten_points_and_repeats_in_the_open(self):
        status, out = self.run_truth("--case", "independent-1/a", "--bar", "loose", FAKE_SCALE="0.8")
        self.assertEqual((status, out.count("noisy round")), (0, 0), out)
        noisy = os.path.join(self.directory.name, "noisy")
        status, out = self.run_truth("--case", "independent-1/a", "--bar", "loose", FAKE_NOISY=noisy)
        self.assertEqual((status, out.count("noisy round")), (0, 1), out)
        status, out = self.run_truth("--case", "independent-1/a", "--bar", "loose", FAKE_SCALE="0")
        self.assertEqual((status, out.count("noisy round")), (1, 2), out)

    def test_the_median_of_three_runs_forgives_one(self):
        noisy = os.path.join(self.directory.name, "noisy")
        status, out = self.run_truth("--case", "independent-1/a", "--repeat", "3", FAKE_NOISY=noisy)
        self.assertEqual(status, 0, out)

    def test_a_profiler_that_fails_is_a_failure_at_once(self):
        status, out = self.run_truth("--case", "independent-1/a", "--bar", "loose", FAKE_STATUS="125")
        self.assertEqual((status, out.count("noisy round")), (1, 0))
        self.assertIn("status 125: cozbpf: no such thing", out)

    def write(self, name, text, mode=stat.S_IRWXU):
        path = os.path.join(self.directory.name, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text.format(python=sys.executable, here=HERE))
        os.chmod(path, mode)

    def test_coz_beside_ours(self):
        self.write("tree/coz", FAKE_COZ)
        self.write("tree/include/coz.h", "#define COZ_PROGRESS_NAMED(name) ((void)(name))\n")
        tree = os.path.join(self.directory.name, "tree")
        status, out = self.run_truth("--case", "independent-1/a", "--coz", COZ=tree)
        self.assertEqual(status, 0, out)
        self.assertRegex(out, r"Coz +6\.25 +12\.50 +18\.75 +25\.00")
        self.assertIn("mean 15.62, worst 25.00; ours 0.00", out)
        self.assertIn("mean error over 1 cases: 0.00 points, Coz 15.62; Coz nearer: none", out)
        with contextlib.redirect_stderr(io.StringIO()) as err:
            status, out = self.run_truth("--case", "independent-1/a", "--coz", COZ=self.directory.name)
        self.assertEqual((status, out), (2, ""))
        self.assertIn("no coz script", err.getvalue())

    def test_verdicts_knees_and_sums(self):
        status, out = self.run_truth("--case", "window-pipe-5ms/*")
        self.assertEqual(status, 0, out)
        self.assertRegex(out, r"intervals .*   helps, knee 33 for 33\n")
        self.assertRegex(out, r"handover +8 cells, mean error  0\.00, worst ")
        self.assertIn("lines without effect: 0 of 1 runs call", out)
        self.assertIn("knees: 0.3 points off in the median, beyond 10 or not found: none", out)
        _, out = self.run_truth("--case", "pipeline-5ms/a", "--case", "lock-inside-ticket-5ms/a")
        self.assertIn("beyond 10 or not found: lock-inside-ticket-5ms/a\n", out)

    def test_the_real_run_beside_ours(self):
        self.write("independent", FAKE_PROGRAM)
        status, out = self.run_truth("--case", "independent-1/a", "--real")
        self.assertEqual(status, 0, out)
        self.assertRegex(out, r"real run +12\.50 +25\.00 +37\.50 +50\.00 +really shorter: off by 0\.00")

    def test_validate(self):
        status, out = self.run_truth("--case", "independent-1/a", "--validate", FAKE_GAP="1")
        self.assertEqual(status, 0, out)
        self.assertRegex(out, r"truth +-12\.5 +-25\.0")
        self.assertIn("PASS: 1.00, at most 3", out)
        status, out = self.run_truth("--case", "independent-1/a", "--validate", FAKE_GAP="5")
        self.assertEqual(status, 1, out)
        self.assertIn("FAIL: GAP of 5.0 points", out)

    def test_profiles_that_are_kept_are_judged_again(self):
        kept = os.path.join(self.directory.name, "kept")
        status, out = self.run_truth("--case", "independent-1/*", "--keep", kept, FAKE_SCALE="0.8")
        self.assertIn("95 % intervals: 0 of 8 hold the truth, median half-width 2.00 points", out)
        self.assertIn("mean half-width 2.00 points: 1.60 the noise, 1.20 what is allowed for the method", out)
        before = [line for line in out.splitlines() if "intervals" in line]
        status, out = self.run_truth("--case", "independent-1/*", "--again", kept)
        self.assertEqual((status, [line for line in out.splitlines() if "intervals" in line]), (1, before), out)
        status, out = self.run_truth("--case", "independent-2/a", "--again", kept)
        self.assertIn("FAIL: no profile was written", out)

    def test_payers(self):
        status, out = self.run_truth("--case", "independent-1/a", "--case", "independent-8/a", "--pay", "sleep")
        self.assertIn("1 not defined for their payer", out)
        self.assertEqual(self.last(out), "1 passed, 0 failed, 0 skipped", out)

    def test_every_marker_is_there_once(self):
        for case in cases.CASES:
            self.assertGreater(truth.line_of(case.source, case.line), 1)

    def test_the_arithmetic(self):
        table = {c.name: [round(c.truth(s), 1) for s in cases.SPEEDUPS] for c in cases.CASES}
        self.assertEqual(len(table), len(cases.CASES), "names are unique")
        self.assertEqual(table["barrier-20ms/a"], [4.5] * 4)
        self.assertEqual(table["barrier-20ms/b"], [0] * 4)
        self.assertEqual(table["pipeline-5ms/a"], [25, 40, 40, 40])
        self.assertEqual(table["lock-inside-ticket-5ms/a"], [25, 50, 66.1, 78.6])
        self.assertEqual(table["lock-outside-ticket-5ms/b"], [17.5, 35, 40, 40])
        self.assertEqual(table["pingpong-pipe-5ms/b"], [10, 20, 30, 40])
        self.assertEqual(table["window-pipe-5ms/a"], [25, 33.3, 33.3, 33.3])
        self.assertEqual(table["foreign-4/a"], [12.5, 25, 37.5, 50])


if __name__ == "__main__":
    unittest.main()
