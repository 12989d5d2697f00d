# SPDX-License-Identifier: BSD-2-Clause
"""Slopes of all lines of a program at once, nobody paused, against the derivative by arithmetic.

usage: slopes.py [--native] COZBPF PROGRAMS SECONDS BAR FLAT_BAR TRIES [CASE]...
Prints a TAP line for each program: its lines are within BAR points, those without effect within
FLAT_BAR, in one of TRIES runs. CASE is what a case's name begins with; without any, all programs
whose threads do not wait by spinning. --native: where threads outnumber the CPUs, whose queues arithmetic takes for ideal, the truth is what work
does that is really 20 % shorter, a minute for each line; at barriers, where CPUs that are not equally fast decide who is late, 3 %. At the end a table of all lines (Markdown), the mean error,
and how many of the intervals hold."""

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass

from cases import CASES
from truth import Runner, line_of, numbers_in


@dataclass
class Row:
    """A line's slope and what it should be, in percent."""

    case: object
    truth: float
    found: float = 0.0
    low: float = 0.0
    high: float = 0.0
    summed: bool = False  # of several rows, whose intervals say nothing of their sum

    @property
    def error(self):
        return self.found - self.truth

    @property
    def flat(self):
        return self.case.flat or abs(self.truth) < 0.05

    @property
    def holds(self):
        return self.low <= self.truth <= self.high

    def __str__(self):
        waits = f" [{self.case.waits}]{' by place' if self.summed else ''}" if self.case.waits else ""
        return f"{self.case.line}{waits} {self.found:.1f} +-{(self.high - self.low) / 2:.1f} ({self.truth:.1f})"


def output(command, limit):
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True, timeout=limit).stdout


def names_of(case):
    """What a report calls the case's line: its end."""
    return f"[{case.waits}]" if case.waits else f"{case.source}:{line_of(case.source, case.line)}"


def really(runner, case, percent, turns, seconds):
    """The same by work that is really shorter."""
    effects = [1 - runner.native_period(case, percent, seconds) / runner.native_period(case, 0, seconds) for _ in range(turns)]
    return 100 * statistics.median(effects) / (percent / 100)


def derivative(runner, case, native):
    """Percent per whole speedup, with what a visit takes natively beside its work. Between 0 and 1 %: some programs have a knee at 4 %. Where arithmetic
    leaves too much out, by work that is really 10 % shorter; that of `barrier`, which bends before, says too little."""
    if case.real and case.program != "barrier":
        return really(runner, case, 10, 5, 1)
    if native and case.program == "barrier":
        return really(runner, case, 3, 25, 2)
    if native and (case.threads or 0) > case.cpus and not case.foreign:
        return really(runner, case, 20, 15, 2)
    slowness, wait_us, rest = runner.natively(case)
    return 100 * case.truth(1, rest, slowness, wait_us)


@contextlib.contextmanager
def load(case, programs, per_us):
    if not case.foreign:
        yield
        return
    with subprocess.Popen([os.path.join(programs, "busy"), "--per-us", per_us]) as busy:
        yield
        busy.kill()


def measure(cozbpf, programs, seconds, per_us, case):
    """The rows of the report, by name, and the share of what the profiler took."""
    with tempfile.TemporaryDirectory() as directory, load(case, programs, per_us):
        profile = os.path.join(directory, "profile.jsonl")
        program = [os.path.join(programs, case.program), *case.args, "--per-us", per_us, "--seconds", f"{seconds:g}"]
        output([cozbpf, "run", "--keep-root", "-q", "--no-report", "--slopes-only", "-o", profile, "-p", "progress", *case.options, "--", *program], seconds + 60)
        point = json.loads(output([cozbpf, "report", "--json", profile], 60))["points"][0]
    return {x["selected"]: x for x in point["lines"]}, point["self_share"]


def rows_of(rows, runner, case, native):
    """The case's row; and of a kind of wait the sum over the places where threads waited."""
    ret, name = Row(case, derivative(runner, case, native)), names_of(case)
    for selected, x in rows.items():
        if x["slope"] is not None and (selected == name or selected.endswith("/" + name)):
            ret.found, ret.low, ret.high = (100 * (x[key] or 0) for key in ("slope", "slope_low", "slope_high"))
    yield ret
    if case.waits and case.waits != "cpu":
        yield Row(case, ret.truth, sum(100 * (x["slope"] or 0) for selected, x in rows.items() if selected.endswith(" " + name)), summed=True)


def show_table(programs):
    print("# | program | line | by arithmetic | slope | interval | error |")
    print("# |---|---|---|---|---|---|")
    for name, rows in programs:
        for r in rows:
            print(f"# | {name} | {r.case.waits and f'[{r.case.waits}]' or r.case.line} | {r.truth:.1f} | {r.found:.1f} | {r.low:.1f} to {r.high:.1f} | {r.error:+.1f} |")


def main(*words):
    native = "--native" in words
    cozbpf, programs, seconds, bar, flat_bar, tries, *wanted = (x for x in words if x != "--native")
    by_program, told, failed = {}, [], 0
    per_us = numbers_in(output([os.path.join(programs, "busy"), "--calibrate"], 30))["per_us"]
    runner = Runner(argparse.Namespace(programs=programs, per_us=per_us, seed=1, again=None))
    for case in CASES:
        short = case.program != "phases" or "--window" not in case.args  # else phases of seconds, of which a window sees one
        if case.kind == "effect" and short and not case.spins and not case.refused and (not wanted or case.name.startswith(tuple(wanted))):
            by_program.setdefault((case.program, case.args, case.foreign, case.options), []).append(case)
    for cases in by_program.values():
        name = cases[0].name.rsplit("/", 1)[0]
        for turn in range(int(tries)):
            found, own = measure(cozbpf, programs, float(seconds), f"{per_us:.3f}", cases[0])
            rows = [row for case in cases for row in rows_of(found, runner, case, native)]
            words = ", ".join(map(str, rows))
            good = all(abs(r.error) <= float(flat_bar if r.flat else bar) for r in rows)
            print(f"# {name}: {words}; samples and probes {100 * (own or 0):.1f} %", flush=True)
            if good:
                break
        told.append((name, rows))
        failed += not good
        print(f"{'ok' if good else 'not ok'} slopes of {name}{'' if good else ': ' + words}", flush=True)
    show_table(told)
    every = [r for _, rows in told for r in rows]
    with_effect = [r for r in every if not r.flat]
    mean = sum(abs(r.error) for r in with_effect) / max(1, len(with_effect))
    flattest = max((abs(r.error) for r in every if r.flat), default=0)
    alone = [r for r in with_effect if not r.summed]
    hold = sum(r.holds for r in alone)
    print(f"# mean error {mean:.2f} points of {len(with_effect)} lines with effect; those without: {flattest:.2f} at most")
    print(f"# {hold} of their {len(alone)} intervals hold")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
