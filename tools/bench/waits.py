# SPDX-License-Identifier: BSD-2-Clause
"""What it costs to take waits as targets too: throughput at 50 000 switches a second, and of a program that never waits, over that with lines alone.

All experiments are at 0 %. What is judged are ratios of neighbours in time: their median where threads wait, the upper end of the 95 % interval of
their median where none does. That interval goes by ranks: a shared machine now and then takes a fifth of a run."""

import math
import os
import tempfile

import common

MOST = {"switches": 0.02, "no waits": 0.005}  # of the throughput


def throughputs(bench, rounds, command, key, options):
    """By what is tried."""
    always = ["-p", "progress", "--fixed-speedup", "0", "--cool-off", "0", "--experiment", "200", *options]
    cells = {"native": lambda: common.numbers_in(bench.native(command)[0])[key]}
    for what in ("on-cpu", "all"):
        cells[what] = lambda what=what: common.numbers_in(bench.timed([*always, "--what", what], command)[0])[key]
    return common.interleaved(rounds, cells)


def interval(values):
    """95 %, of the median: by the binomial distribution of how many values are below it, as a normal one."""
    ordered, n = sorted(values), len(values)
    below = max(0, math.floor(n / 2 - 0.98 * math.sqrt(n)))
    return ordered[below], ordered[n - 1 - below]


def run(bench):
    with tempfile.TemporaryDirectory(prefix="cozbpf-bench-") as where:
        switches = os.path.join(where, "switches")
        common.compiled("switches", switches)
        for name, words, options in (("another process", [], ["--follow", "none"]), ("another thread", ["thread"], [])):
            # Neighbours in time differ by a tenth on a shared machine: many short runs tell more than few long ones.
            values = throughputs(bench, 31 if bench.full else 5, [switches, "3", *words], "rounds_per_s", options)
            common.spread_table(f"rounds a second (of two switches), with {name}", values, "{:.0f}")
            cost = 1 - common.median([a / b for a, b in zip(values["all"], values["on-cpu"])])
            bench.verdict(cost <= MOST["switches"], f"switches, with {name}: {100 * cost:.2f} % less, at most {100 * MOST['switches']:g} %")
    values = throughputs(bench, 120 if bench.full else 10, [bench.program("e2e", "cpu"), "3000"], "elapsed_ns", [])
    common.spread_table("a program that never waits, ns", values, "{:.0f}")
    costs = [a / b - 1 for a, b in zip(values["all"], values["on-cpu"])]
    low, high = (100 * end for end in interval(costs))
    bench.verdict(high < 100 * MOST["no waits"], f"no waits: {100 * common.median(costs):.2f} % [{low:.2f}, {high:.2f}] more, less than {100 * MOST['no waits']:g} %")
