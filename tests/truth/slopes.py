# SPDX-License-Identifier: BSD-2-Clause
"""Slopes of all lines of a program at once, nobody paused, against the derivative by arithmetic.

usage: slopes.py COZBPF PROGRAMS SECONDS BAR FLAT_BAR TRIES [CASE]...
Prints a TAP line for each program: its lines are within BAR points, those without effect within FLAT_BAR, in one of TRIES runs. CASE is what a case's name
begins with; without any, all programs whose threads do not wait by spinning."""

import contextlib
import json
import os
import subprocess
import sys
import tempfile

from cases import CASES
from truth import line_of, numbers_in


def output(command, limit):
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True, timeout=limit).stdout


def names_of(case):
    """What a report calls the case's line: its end."""
    return f"[{case.waits}]" if case.waits else f"{case.source}:{line_of(case.source, case.line)}"


def derivative(case):
    """Percent per whole speedup. Between 0 and 1 %: some programs have a knee at 4 %."""
    return 100 * (case.truth(1) - case.truth(0))


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


def slope_of(rows, name):
    found = [x for selected, x in rows.items() if selected == name or selected.endswith("/" + name)]
    return 100 * (found[0]["slope"] or 0) if found else 0


def judge(rows, cases, bar, flat_bar):
    """What to print, and the errors of lines in points."""
    words, errors = [], []
    for case in cases:
        truth, found = derivative(case), slope_of(rows, names_of(case))
        errors.append((abs(found - truth), flat_bar if abs(truth) < 0.05 else bar))
        words.append(f"{case.line}{f' [{case.waits}]' if case.waits else ''} {found:.1f} ({truth:.1f})")
    return ", ".join(words), errors


def main(cozbpf, programs, seconds, bar, flat_bar, tries, *wanted):
    by_program, all_errors, failed = {}, [], 0
    for case in CASES:
        if case.kind == "effect" and not case.spins and not case.refused and (not wanted or case.name.startswith(wanted)):
            by_program.setdefault((case.program, case.args, case.foreign, case.options), []).append(case)
    per_us = f"{numbers_in(output([os.path.join(programs, 'busy'), '--calibrate'], 30))['per_us']:.3f}"
    for cases in by_program.values():
        name = cases[0].name.rsplit("/", 1)[0]
        for turn in range(int(tries)):
            rows, own = measure(cozbpf, programs, float(seconds), per_us, cases[0])
            words, errors = judge(rows, cases, float(bar), float(flat_bar))
            good = all(e <= b for e, b in errors)
            print(f"# {name}: {words}; samples and probes {100 * (own or 0):.1f} %", flush=True)
            if good:
                break
        all_errors += [e for e, _ in errors]
        failed += not good
        print(f"{'ok' if good else 'not ok'} slopes of {name}{'' if good else ': ' + words}", flush=True)
    print(f"# mean error {sum(all_errors) / len(all_errors):.2f} points, of {len(all_errors)} lines")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
