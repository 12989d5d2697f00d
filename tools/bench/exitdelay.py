# SPDX-License-Identifier: BSD-2-Clause
"""From the program's own end to cozbpf's: under 50 ms (bar 7).

The program stamps the clock right before _exit, in the middle of an experiment at 100 % with a second thread that owes; cozbpf's end is
when its parent has reaped it. The report is off in one cell and on in the other."""

import os
import subprocess
import tempfile
import time

import common

BAR_MS = 50


def delay(bench, pay, report):
    with tempfile.TemporaryDirectory(prefix="cozbpf-bench-") as where:
        command = [
            bench.cozbpf, "run", "--keep-root", "-q", *(["--report", "-"] if report else ["--no-report"]), "-o", os.path.join(where, "profile.jsonl"),
            "--pay", pay, "-p", "progress", "--fixed-line", common.line_of("tests/e2e/programs/stamp.c", "burn"), "--fixed-speedup", "100",
            "--experiment", "600000", "--", bench.program("e2e", "stamp"), "0.4", "2",
        ]  # fmt: skip
        with open(os.path.join(where, "stamps"), "w+", encoding="utf-8") as stamps:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=stamps)
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.terminate()
                process.wait()
                raise common.Failure("no end after 60 s") from None
            ended = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
            stamps.seek(0)
            said = stamps.read()
        if process.returncode != 0:
            raise common.Failure(f"status {process.returncode}: {(said.strip().splitlines() or [''])[-1]}")
        return (ended - common.numbers_in(said)["end_ns"]) / 1e6


def run(bench):
    cells = {}
    for pay in bench.payers:
        cells[f"{pay}, no report"] = lambda pay=pay: delay(bench, pay, False)
        cells[f"{pay}, report"] = lambda pay=pay: delay(bench, pay, True)
    values = common.interleaved(21 if bench.full else 7, cells)
    common.spread_table("ms from end to end", values, "{:.2f}")
    for name, found in values.items():
        bench.verdict(common.median(found) < BAR_MS, f"{name}: {common.median(found):.2f} ms, under {BAR_MS}")
