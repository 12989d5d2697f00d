# SPDX-License-Identifier: BSD-2-Clause
"""The program's rate after `kill -9` of cozbpf in an experiment at 100 %, against its native one (bar 8).

Batches of work in intervals of 100 ms, as the program tells. The interval of the kill and the next one are the transition; from the third
on the rate must be the native one, and no batch may take longer than a pause's cap of 10 ms once the transition is over."""

import os
import re
import signal
import subprocess
import tempfile
import time

import common

BAR = 0.95
INTERVALS = 60
KILL_AT = 20


def intervals_in(text):
    return [(int(b), int(u)) for b, u in re.findall(r"^at_ms=\d+ batches=(\d+) longest_us=(\d+)$", text, re.M)]


def native(bench):
    out, _ = bench.native([bench.program("e2e", "steady"), "3"], 30)
    return common.median([b for b, _ in intervals_in(out)[3:]])


def killed(bench, pay):
    """Median batches before and after; what the intervals of the transition had; the longest batch after it, us."""
    with tempfile.TemporaryDirectory(prefix="cozbpf-bench-") as where:
        path = os.path.join(where, "out")
        command = [bench.program("e2e", "steady"), f"{INTERVALS / 10:g}"]
        options = ["--pay", pay, "-p", "progress", "--fixed-line", common.line_of("tests/e2e/programs/steady.c", "burn"),
                   "--fixed-speedup", "100", "--experiment", "600000"]  # fmt: skip

        def so_far():
            with open(path, encoding="utf-8") as f:
                return intervals_in(f.read())

        with open(path, "w", encoding="utf-8") as out:
            process = subprocess.Popen(bench.profiler(os.path.join(where, "profile.jsonl"), options, command),
                                       stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.DEVNULL)  # fmt: skip
        deadline = time.monotonic() + 60
        while len(so_far()) < KILL_AT and time.monotonic() < deadline and process.poll() is None:
            time.sleep(0.02)
        at = len(so_far())
        process.send_signal(signal.SIGKILL)
        process.wait()
        while len(so_far()) < INTERVALS:
            if time.monotonic() > deadline:
                raise common.Failure(f"the program stopped after {len(so_far())} of {INTERVALS} intervals")
            time.sleep(0.05)
        found = so_far()
    after = found[at + 2 : INTERVALS]
    return (common.median([b for b, _ in found[3:at]]), common.median([b for b, _ in after]), [b for b, _ in found[at : at + 2]],
            max(u for _, u in after))  # fmt: skip


def run(bench):
    rounds = 7 if bench.full else 3
    for pay in bench.payers:
        rows, ratios, slowed = [], [], []
        for turn in range(rounds):
            # Natively before and after: what the machine's own speed did meanwhile.
            first, (before, after, transition, longest), second = native(bench), killed(bench, pay), native(bench)
            base = (first + second) / 2
            ratios.append(after / base)
            slowed.append(before / base)
            rows.append([f"run {turn + 1}", f"{base:.0f}", f"{before:.0f}", *transition, f"{after:.0f}", f"{ratios[-1]:.4f}", longest])
        common.table([f"pay {pay}, batches in 100 ms", "native", "before", "1st", "2nd", "after", "ratio", "longest, us"], rows)
        bench.verdict(common.median(ratios) >= BAR, f"{pay}: {common.median(ratios):.4f} of the native rate after the kill, at least {BAR:g}")
        if common.median(slowed) > 0.9:
            bench.verdict(False, f"{pay}: {common.median(slowed):.2f} of the native rate before the kill: no experiment to kill it in")
