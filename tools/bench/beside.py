# SPDX-License-Identifier: BSD-2-Clause
"""A busy process out of scope beside a system run: its throughput against that without delays, within 3 % (bar 6 of many processes).

Two threads in scope, pinned to a CPU each, and the other process on one of these CPUs. What it is slower by splits into the share of the CPU
that it did not get, and what interrupts and our work in the scheduler took of its own CPU time."""

import os
import signal
import subprocess
import tempfile
import time

import common

BAR = 0.03
PIECES = 3


def other(bench):
    """Works of a fixed size, one after the other: CPU time and elapsed time of one, ns."""
    found = []
    for _ in range(PIECES):
        before, t0 = os.times(), time.monotonic()
        said = common.numbers_in(bench.native(["taskset", "-c", "1", bench.program("e2e", "cpu"), "400"], 60)[0])
        after = os.times()
        cpu = after.children_user + after.children_system - before.children_user - before.children_system
        found.append((said["elapsed_ns"], cpu * 1e9, time.monotonic() - t0))
    return common.median([f[0] for f in found]), common.median([f[1] for f in found])


def beside(bench, target, options, measure=other):
    """What @measure finds while a system run with these options goes on, and for which part of the time threads in scope were paused."""
    with tempfile.TemporaryDirectory(prefix="cozbpf-bench-") as where:
        path = os.path.join(where, "profile.jsonl")
        command = [bench.cozbpf, "system", "-q", "--no-report", "-o", path, "--pid-tree", str(target), "--experiment", "100",
                   "-p", bench.program("truth", "independent") + ":progress", *options]  # fmt: skip
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + 20
        while not (os.path.exists(path) and os.path.getsize(path)) and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
        time.sleep(0.3)
        found = measure(bench)
        process.send_signal(signal.SIGINT)
        err = process.communicate(timeout=20)[1]
        if process.returncode != 0:
            raise common.Failure(f"status {process.returncode}: {(err.strip().splitlines() or ['nothing on stderr'])[-1]}")
        profile = common.Profile(path)
        return found, profile.total("paid") / (profile.total("elapsed") or 1)


def run(bench):
    line = common.line_of("tests/truth/programs/independent.c", "a")
    command = [bench.program("truth", "independent"), "--per-us", bench.calibration(), "--round", "1700", "--threads", "2", "--seconds", "600"]
    scoped = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    paid = []

    def delayed():
        found, share = beside(bench, scoped.pid, ["--fixed-line", line, "--fixed-speedup", "50"])
        paid.append(share)
        return found

    cells = {
        "no profiler": lambda: other(bench),
        "without delays": lambda: beside(bench, scoped.pid, ["--fixed-line", line, "--fixed-speedup", "0"])[0],
        "with delays": delayed,
    }
    try:
        time.sleep(0.5)
        values = common.interleaved(9 if bench.full else 3, cells)
    finally:
        scoped.kill()
        scoped.wait()
    elapsed = {name: [v[0] for v in found] for name, found in values.items()}
    common.spread_table("elapsed, ns", elapsed, "{:.0f}")
    common.spread_table("CPU time, ns", {name: [v[1] for v in found] for name, found in values.items()}, "{:.0f}")

    def against(name, base):
        return common.median([b / v for v, b in zip(elapsed[name], elapsed[base])]) - 1

    print(f"    threads in scope were paused for {100 * common.median(paid):.0f} % of the time of the experiments, both together")
    bench.verdict(common.median(paid) > 0.1, "there were delays")
    change = against("with delays", "without delays")
    bench.verdict(abs(change) <= BAR, f"throughput with delays over without: {100 * change:+.2f} %, at most {100 * BAR:g} % either way")
    # Not the bar's: what sampling takes of every CPU, whoever runs there, and following switches.
    print(f"    without delays over no profiler at all: {100 * against('without delays', 'no profiler'):+.2f} %")
