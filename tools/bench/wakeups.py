# SPDX-License-Identifier: BSD-2-Clause
"""How late a thread out of scope gets its CPU after it was woken, on a CPU that it shares with a thread that a system run holds: at the 99th percentile
at most 1.2 times as late as when that thread computes."""

import os
import signal
import subprocess
import tempfile
import time

import beside
import common
import variants

BAR = 1.2


def run(bench):
    line = common.line_of("tests/truth/programs/independent.c", "a")
    command = [bench.program("truth", "independent"), "--per-us", bench.calibration(), "--round", "1700", "--threads", "2", "--seconds", "600"]
    scoped = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    paid = []
    with tempfile.TemporaryDirectory(prefix="cozbpf-bench-") as where:
        wakes = os.path.join(where, "wakes")
        variants.call(["gcc", "-O2", os.path.join(variants.HERE, "programs", "wakes.c"), "-o", wakes], where)

        def late(bench):
            return common.numbers_in(bench.native(["taskset", "-c", "1", wakes, "8" if bench.full else "3"], 60)[0])

        def held():
            found, share = beside.beside(bench, scoped.pid, ["--fixed-line", line, "--fixed-speedup", "100"], late)
            paid.append(share)
            return found

        cells = {
            "no profiler": lambda: late(bench),
            "computing": lambda: beside.beside(bench, scoped.pid, ["--fixed-line", line, "--fixed-speedup", "0"], late)[0],
            "held": held,
        }
        try:
            time.sleep(0.5)
            values = common.interleaved(9 if bench.full else 3, cells)
        finally:
            scoped.send_signal(signal.SIGKILL)
            scoped.wait()
    for which in ("p50_ns", "p99_ns"):
        common.spread_table(f"late, {which}", {name: [v[which] for v in found] for name, found in values.items()}, "{:.0f}")
    ratio = common.median([h["p99_ns"] / c["p99_ns"] for h, c in zip(values["held"], values["computing"])])
    print(f"    threads in scope were paused for {100 * common.median(paid):.0f} % of the time of the experiments, both together")
    bench.verdict(common.median(paid) > 0.1, "there were delays")
    bench.verdict(ratio <= BAR, f"99th percentile beside held threads over that beside computing ones: {ratio:.2f}, at most {BAR:g}")
