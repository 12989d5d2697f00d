#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Samples of a line, and of a function, as a progress point beside the exact point, in the same runs: sampled.py COZBPF PROGRAMS SECONDS BAR RUNS
[CASE]. Either line of the program is counted so, its function as well, and the calls of that; what they say of a case's line may differ from the
calls by BAR points at each speedup, in the median of RUNS; where that is a single one, a case that fails is tried twice more. (Not the program's own point: a queue between the two that fills is more visits of the one.) Prints "ok NAME" or
"not ok NAME: WHY"."""

import os
import statistics
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

from cases import CASES, SPEEDUPS  # noqa: E402
from profiles import Profile  # noqa: E402
from truth import Failure, Runner, line_of, parse  # noqa: E402

REPEATS = 2
COMPARED = ("pipeline-5ms/a", "pingpong-mutex-5ms/a", "lock-outside-mutex-5ms/b")


def effects(path, point):
    """In percent, by speedup: sums of durations over sums of visits, for samples have no time of their own."""
    profile = Profile(path, point)
    return {s: profile.effect(s, False) for s in SPEEDUPS}


def compare(runner, case, runs, bar):
    """What differs too much; "" if nothing does."""
    points = {f"sampled-{mark}": f"sampled:{case.source}:{line_of(case.source, mark)}" for mark in "ab"}
    points |= {f"function-{mark}": f"sampled:work_{mark}" for mark in "ab"}
    points |= {f"exact-{mark}": f"work_{mark}" for mark in "ab"}
    runner.options.sync = [word for name, where in points.items() for word in ("-p", f"{name}={where}")]
    found = {name: [] for name in ("progress", *points)}
    for _ in range(runs):
        with tempfile.TemporaryDirectory(prefix="cozbpf-sampled-") as where:
            runner.options.keep = where
            runner.profile(case, "auto", runner.options.seconds, (0, *SPEEDUPS))
            path = os.path.join(where, os.listdir(where)[0])
            for name, values in found.items():
                values.append(effects(path, name))
    middle = {}
    for name, values in found.items():
        if any(None in v.values() for v in values):
            return f"{name}: nothing measured at some speedup"
        middle[name] = {s: statistics.median(v[s] for v in values) for s in SPEEDUPS}
    print(f"# {case.name}: by arithmetic " + " ".join(f"{case.truth(s):.1f}" for s in SPEEDUPS))
    for name, values in middle.items():
        print(f"#   {name}: " + " ".join(f"{values[s]:.1f}" for s in SPEEDUPS))
    return "; ".join(
        f"{kind}-{mark} at {s} %: {middle[f'{kind}-{mark}'][s]:.1f}, the exact point {middle[f'exact-{mark}'][s]:.1f}"
        for kind in ("sampled", "function") for mark in "ab" for s in SPEEDUPS
        if abs(middle[f"{kind}-{mark}"][s] - middle[f"exact-{mark}"][s]) > bar
    )  # fmt: skip


def main(cozbpf, programs, seconds, bar, runs, only=""):
    # One run, one file: none is made again.
    runner = Runner(parse(["--cozbpf", cozbpf, "--programs", programs, "--seconds", seconds, "--bar", "loose"]))
    for case in CASES:
        if case.name not in COMPARED or only not in ("", case.name):
            continue
        for _ in range(1 + REPEATS if int(runs) == 1 else 1):
            try:
                why = compare(runner, case, int(runs), float(bar))
            except Failure as e:
                why = str(e)
            if not why:
                break
        print(f"not ok sampled {case.name}: {why}" if why else f"ok sampled {case.name}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
