# SPDX-License-Identifier: BSD-2-Clause
"""From the start of cozbpf to the program's main, beside the same natively. No bar: a figure to watch."""

import os
import subprocess
import tempfile
import time

import common


def until_main(command):
    begin = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    process = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
    if process.returncode != 0:
        raise common.Failure(f"status {process.returncode}: {(process.stderr.strip().splitlines() or [''])[-1]}")
    return (common.numbers_in(process.stderr)["main_ns"] - begin) / 1e6


def run(bench):
    program = [bench.program("e2e", "stamp"), "0.05"]

    def profiled(pay):
        with tempfile.TemporaryDirectory(prefix="cozbpf-bench-") as where:
            return until_main(bench.profiler(os.path.join(where, "profile.jsonl"), ["--pay", pay, "-p", "progress"], program))

    cells = {"native": lambda: until_main(program)}
    for pay in bench.payers:
        cells[f"cozbpf, {pay}"] = lambda pay=pay: profiled(pay)
    values = common.interleaved(21 if bench.full else 7, cells)
    common.spread_table("ms until main", values, "{:.2f}")
