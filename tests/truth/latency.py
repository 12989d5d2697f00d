#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Latencies whose distribution is arithmetic (programs/latency.c): what the report says of a line's effect on p50, p90, p99 and the mean
against the truth, in percentage points. latency.py COZBPF PROGRAMS SECONDS BAR SPEEDUPS [PAYER [CASE]]; prints "ok NAME" or "not ok NAME: WHY"."""

import json
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

    def report(self, line, args, options):
        """What is said of the latency point, as an object."""
        with tempfile.TemporaryDirectory(prefix="cozbpf-latency-") as where:
            path = os.path.join(where, "profile.jsonl")
            command = [
                self.cozbpf, "run", "--keep-root", "-q", "--no-report", "-o", path, "--pay", self.payer,
                "--latency", f"request=request_begin,request_end{options}",
                "--fixed-line", f"latency.c:{line_of('latency.c', line)}", "--experiment", "500",
                "--speedups", ",".join(str(s) for s in self.speedups), "--zero-share", "40", "--",
                self.program, *args, "--per-us", f"{self.per_us:.3f}", "--seconds", f"{self.seconds:g}",
            ]  # fmt: skip
            subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, timeout=self.seconds + 60)
            out = subprocess.run([self.cozbpf, "report", "--json", path], check=True, capture_output=True, text=True, timeout=60)
        return json.loads(out.stdout)["points"][0]


def judge(bench, name, line, args, options, model, bar):
    """None: as the arithmetic says; else what is not."""
    point = bench.report(line, args, options)
    said, whole = point["intervals"], model(line, 1)
    print(f"# {name}: {said['intervals']:.0f} intervals, in flight {said['in_flight']:.2f}, crossed {said['crossed']:.0f}")
    why = [f"{key} {said[key]:.0f}" for key in ("unmatched", "unended", "lost") if said[key] > 1]
    cells = {round(100 * cell["speedup"]): cell for cell in point["lines"][0]["latency"]["cells"]}
    for statistic, base in whole.items():
        measured = said["ns"][statistic] / 1e6
        print(f"#   {statistic}: {measured:.2f} ms, by arithmetic {base:.2f}; by Little's law {said['ns']['little'] / 1e6:.2f}")
        if abs(measured - base) > 0.25 * base:
            why.append(f"{statistic} {measured:.2f} ms for {base:.2f}")
        for s in bench.speedups:
            wanted = 100 * (1 - model(line, 1 - s / 100)[statistic] / base)
            change = cells.get(s, {}).get(statistic, {})
            got, low, high = (100 * change[k] if change.get(k) is not None else None for k in ("effect", "low", "high"))
            if got is None or low is None:
                why.append(f"{statistic} at {s} %: nothing said")
                continue
            print(f"#     {s} %: {got:6.1f} ({low:.1f} to {high:.1f}), by arithmetic {wanted:.1f}; Little {100 * cells[s]['little']['effect']:.1f}")
            if abs(got - wanted) > bar:
                why.append(f"{statistic} at {s} %: {got:.1f} for {wanted:.1f}")
    return "; ".join(why)


def main(cozbpf, programs, seconds, bar, speedups, payer="auto", only=""):
    bench = Bench(cozbpf, programs, float(seconds), [int(s) for s in speedups.split(",")], payer)
    for name, line, args, options, model in CASES:
        if only and name != only:
            continue
        for _ in range(1 + REPEATS):
            try:
                why = judge(bench, name, line, args, options, model, float(bar))
            except (subprocess.SubprocessError, KeyError, IndexError) as e:
                why = f"{type(e).__name__}: {e}"
            if not why:
                break
        print(f"not ok latency {name}: {why}" if why else f"ok latency {name}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
