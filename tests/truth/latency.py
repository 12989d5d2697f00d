#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Latencies whose distribution is arithmetic (programs/latency.c): what the report's table says of a line's effect on p50, p90, p99 and
the mean against the truth, in percentage points; beside it what the experiments at just that speedup say. latency.py COZBPF PROGRAMS SECONDS
BAR SPEEDUPS [PAYER [CASE [RUNS]]]; prints "ok NAME" or "not ok NAME: WHY". SPEEDUPS are columns of the table. BAR is in percentage points, or
with a % sign a share of each effect: then p50 and p99 are judged, and no effect is one of less than a point. With RUNS so many runs are told
of as one, their experiments together, and none is repeated; without, it is a short run, where BAR is for what the report is sure of: an effect may be
further off if its interval holds the truth, and a case that fails is tried twice more."""

import json
import math
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

from truth import line_of, numbers_in  # noqa: E402

FAST, SLOW = 2.5, 12.5  # ms: the work of all requests in "classes", and what one in twenty has beside it
SERVE, MAKE = 12.0, 8.0  # ms: a and b of "queue"
REPEATS = 2
JUDGED = ("p50", "p99")  # where the bar is a share
NO_EFFECT = 1.0
LENGTHS = (0.75, 1.25)  # what a length may be of its arithmetic
LONGEST = 1.75  # ... in a short run: a machine that is slow for a while makes the slowest tenth longer by half


def classes(line, rest):
    """(p50, p90, p99, mean) when `rest` of the line's work remains."""
    fast = FAST * (rest if line == "b" else 1)
    slow = fast + SLOW * (rest if line == "a" else 1)
    return {"p50": fast, "p90": fast, "p99": slow, "mean": 0.95 * fast + 0.05 * slow}


def queue(line, rest):
    """All requests are the same."""
    a, b = SERVE * (rest if line == "a" else 1), MAKE * (rest if line == "b" else 1)
    all_of_them = 2 * a - b if a > b else a
    return dict.fromkeys(("p50", "mean"), all_of_them)


# name, line, arguments, options, model. Of "queue", b makes the waiting longer; half of a is beyond the knee at a third.
CASES = [
    ("classes/a", "a", ("--kind", "classes", "--round", "2500"), "", classes),
    ("classes/b", "b", ("--kind", "classes", "--round", "2500"), "", classes),
    ("classes/c", "c", ("--kind", "classes", "--round", "2500"), "", classes),
    ("queue/a", "a", ("--kind", "queue", "--round", "20000"), ",key=arg1:arg2", queue),
    ("queue/b", "b", ("--kind", "queue", "--round", "20000"), ",key=arg1:arg2", queue),
]


class Bench:
    def __init__(self, cozbpf, programs, seconds, speedups, payer):
        self.cozbpf, self.program = cozbpf, os.path.join(programs, "latency")
        self.seconds, self.speedups, self.payer = seconds, speedups, payer
        busy = subprocess.run([os.path.join(programs, "busy"), "--calibrate"], check=True, capture_output=True, text=True, timeout=30)
        self.per_us = numbers_in(busy.stdout)["per_us"]

    def report(self, line, args, options, runs):
        """What is said of the latency point after so many runs, as an object."""
        with tempfile.TemporaryDirectory(prefix="cozbpf-latency-") as where:
            path = os.path.join(where, "profile.jsonl")
            command = [
                self.cozbpf, "run", "--keep-root", "-q", "--no-report", "-o", path, "--pay", self.payer,
                "--latency", f"request=request_begin,request_end{options}",
                "--fixed-line", f"latency.c:{line_of('latency.c', line)}", "--experiment", "500",
                "--speedups", ",".join(str(s) for s in self.speedups), "--zero-share", "40", "--",
                self.program, *args, "--per-us", f"{self.per_us:.3f}", "--seconds", f"{self.seconds:g}",
            ]  # fmt: skip
            for _ in range(runs):
                subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, timeout=self.seconds + 60)
            out = subprocess.run([self.cozbpf, "report", "--json", path], check=True, capture_output=True, text=True, timeout=60)
        return json.loads(out.stdout)["points"][0]


def changes(rows, names):
    """{(statistic, speedup): (effect, low, high)} in percent."""
    found = {}
    for row in rows:
        for statistic in names:
            values = [row.get(statistic, {}).get(k) for k in ("effect", "low", "high")]
            if None not in values:
                found[statistic, round(100 * row["speedup"])] = tuple(100 * v for v in values)
    return found


def allowed(bar, wanted):
    """Points that an effect may be off."""
    if not bar.endswith("%"):
        return float(bar)
    return float(bar[:-1]) / 100 * abs(wanted) or NO_EFFECT


def judge(bench, name, line, args, options, model, bar, runs, noise):
    """"": as the arithmetic says, or, with `noise`, as far off as the report's own interval admits; else what is not."""
    whole, why = model(line, 1), []
    point = bench.report(line, args, options, runs)
    said, latency = point["intervals"], point["lines"][0]["latency"]
    found, alone = changes(latency["at"], (*whole, "little")), changes(latency["cells"], whole)
    print(f"# {name}: {said['intervals']:.0f} intervals, in flight {said['in_flight']:.2f}, crossed {said['crossed']:.0f}")
    why += [f"{key} {said[key]:.0f}" for key in ("unmatched", "unended", "lost") if said[key] > runs]
    for statistic, base in whole.items():
        measured, little = said["ns"][statistic] / 1e6, said["ns"]["little"] / 1e6
        print(f"#   {statistic}: {measured:.2f} ms, by arithmetic {base:.2f}; by Little's law {little:.2f}")
        if not LENGTHS[0] <= measured / base <= (LONGEST if noise else LENGTHS[1]):
            why.append(f"{statistic} {measured:.2f} ms for {base:.2f}")
        for s in bench.speedups:
            wanted = 100 * (1 - model(line, 1 - s / 100)[statistic] / base)
            if (statistic, s) not in found:
                why.append(f"{statistic} at {s} %: nothing said")
                continue
            effect, low, high = found[statistic, s]
            cell, little = (f.get(k, (math.nan,))[0] for f, k in ((alone, (statistic, s)), (found, ("little", s))))
            print(
                f"#     {s} %: {effect:6.2f}, by arithmetic {wanted:.2f}; {low:.1f} to {high:.1f}; "
                f"its experiments alone {cell:.2f}; Little {little:.1f}"
            )
            if bar.endswith("%") and statistic not in JUDGED:
                continue
            if abs(effect - wanted) > allowed(bar, wanted) and not (noise and low <= wanted <= high):
                why.append(f"{statistic} at {s} %: {effect:.2f} for {wanted:.2f}")
    return "; ".join(why)


def main(cozbpf, programs, seconds, bar, speedups, payer="auto", only="", runs=None):
    bench = Bench(cozbpf, programs, float(seconds), [int(s) for s in speedups.split(",")], payer)
    for name, line, args, options, model in CASES:
        if only and name != only:
            continue
        for _ in range(1 + REPEATS if runs is None else 1):
            try:
                why = judge(bench, name, line, args, options, model, bar, int(runs or 1), runs is None)
            except (subprocess.SubprocessError, KeyError, IndexError) as e:
                why = f"{type(e).__name__}: {e}"
            if not why:
                break
        print(f"not ok latency {name}: {why}" if why else f"ok latency {name}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
