# SPDX-License-Identifier: BSD-2-Clause
"""What the profiler costs without delays: locks 1.1x, threads 1.5x, sampling 1.02x of perf's at the same rate (bar 9).

Times are those that the programs tell, so that start-up and exit do not count. Delays are off: the only speedup is 0 %."""

import os
import shutil

import common

BARS = {"locks": 1.1, "threads": 1.5, "cpu": 1.02}


def against(bench, name, cells, bar, form, unit, base):
    values = common.interleaved(15 if bench.full else 7, cells)
    common.spread_table(f"{name}, {unit}", values, form)
    for cell, found in values.items():
        if cell in (base, "native"):
            continue
        # Neighbours in time are compared, and the median of these ratios is what counts: it forgives a slow drift.
        ratio = common.median([v / b for v, b in zip(found, values[base])])
        bench.verdict(ratio <= bar, f"{name}, {cell}: {ratio:.4f}x of {base}, at most {bar:g}x")


def cells_of(bench, program, arguments, key, line):
    """Native, and under each payer."""
    command = [bench.program("e2e", program), *arguments]
    cells = {"native": lambda: common.numbers_in(bench.native(command)[0])[key]}
    for pay in bench.payers:
        options = ["--pay", pay, "--fixed-speedup", "0", "--rate", "1000"]
        if line:
            options += ["--fixed-line", common.line_of(f"tests/e2e/programs/{program}.c", line)]
        cells[f"cozbpf, {pay}"] = lambda options=options: common.numbers_in(bench.timed(options, command)[0])[key]
    return cells


def run(bench):
    seconds = "2" if bench.full else "0.5"
    against(bench, "lock + unlock", cells_of(bench, "locks", [seconds], "ns_per_pair", "unlock"), BARS["locks"], "{:.3f}", "ns", "native")
    count = "20000"
    against(bench, "thread create + join", cells_of(bench, "threads", [count], "us_per_thread", None), BARS["threads"], "{:.2f}", "us",
            "native")  # fmt: skip

    perf = shutil.which("perf")
    if not perf:
        raise common.Failure("perf is not installed: nothing to compare sampling with (Debian package linux-perf)")
    millions = "6000" if bench.full else "2000"
    cells = cells_of(bench, "cpu", [millions], "elapsed_ns", "burn")
    record = [perf, "record", "-q", "-e", "cpu-clock", "-F", "1000", "-o", os.devnull, "--", bench.program("e2e", "cpu"), millions]
    cells["perf record"] = lambda: common.numbers_in(common.execute(record, 300)[0])["elapsed_ns"]
    against(bench, "1 kHz sampling", cells, BARS["cpu"], "{:.0f}", "ns", "perf record")
