# SPDX-License-Identifier: BSD-2-Clause
"""Time paid against time really stopped, and against what was due: 1 within 1 % at 5 % speedup (bar 6).

Two independent threads, one in the line, one beside it. Due: the growth of G for each thread, less its own hits, what was credited and
what is still owed at the end (which is what will be forgiven: that is booked when the thread is seen again). Stopped: the program reads the CPU's counter without pause and writes down every gap; gaps
are also what ticks cause, so experiments at 0 %, which have all of the sampling but no pauses, lie between the others, and what the
median one of them has a second is taken off the median of the others. A gap of more than a millisecond is no pause at 5 % but another program on the CPU: left out of both.
Each run calibrates anew: what an interrupt costs a virtual machine changes from one minute to the next."""

import bisect
import os
import tempfile

import common

BAR = 0.01
LATE_US = 100
LONGEST_NS = 1_000_000
PERCENT = 5


def read_gaps(path):
    """{thread: (begins, lengths)} in ns, in order of time."""
    gaps = {}
    with open(path, encoding="ascii") as lines:
        for line in lines:
            thread, begin, length = line.split()
            begins, lengths = gaps.setdefault(thread, ([], []))
            begins.append(float(begin))
            lengths.append(float(length))
    if sorted(gaps) != ["a", "b"]:
        raise common.Failure("the program's account is incomplete")
    return gaps


def stopped_in(gaps, x):
    """{thread: ns stopped} in an experiment."""
    total = {}
    for thread, (begins, lengths) in gaps.items():
        i, j = bisect.bisect_left(begins, x["began"]), bisect.bisect_left(begins, x["began"] + x["elapsed"])
        total[thread] = sum(n for n in lengths[i:j] if n < LONGEST_NS)
    return total


def measure(bench, pay, seconds, seed):
    """One run: the books of its experiments at PERCENT, and the pauses that the program saw in them."""
    with tempfile.TemporaryDirectory(prefix="cozbpf-bench-") as where:
        path = os.path.join(where, "gaps")
        command = [bench.program("truth", "stopped"), "--per-us", bench.calibration(), "--seconds", f"{seconds:g}", "--gaps", path]
        options = [
            "--pay", pay, "-p", "progress", "--fixed-line", common.line_of("tests/truth/programs/stopped.c", "a"),
            "--calibrate", "--speedups", str(PERCENT), "--zero-share", "50", "--experiment", "200", "--cool-off", "10", "--seed", str(seed),
        ]  # fmt: skip
        _, profile = bench.profiled(options, command, seconds + 60)
        gaps = read_gaps(path)
    # The main thread, which sleeps, is seen in the first experiment and in the last.
    paid = [x for x in profile.experiments if x["speedup"] > 0 and x["threads"] == 2]
    unpaid = [x for x in profile.experiments if x["speedup"] == 0]
    if not paid or not unpaid:
        raise common.Failure("the run is too short: experiments at one speedup only")
    row = {k: sum(x.get(k, 0) for x in paid) for k in ("paid", "hit_ns", "credited", "rq_credited", "owed", "growth")}
    row["due"] = sum(x["threads"] * x["growth"] for x in paid)
    row["due"] -= sum(row[k] for k in ("hit_ns", "credited", "rq_credited", "owed"))
    elapsed = sum(x["elapsed"] for x in paid)
    for thread in "ab":
        rates = [[stopped_in(gaps, x)[thread] / x["elapsed"] for x in of] for of in (paid, unpaid)]
        row[thread] = (common.median(rates[0]) - common.median(rates[1])) * elapsed
    row["stopped"] = row["a"] + row["b"]
    row["late"] = common.median([x["late"] for x in paid])
    row["imbalance"] = max(abs(x.get("imbalance", 0)) for x in profile.experiments)
    if row["due"] <= 0 or row["paid"] <= 0:
        raise common.Failure("nothing was due or nothing paid")
    return row


def run(bench):
    seconds, rounds = (60, 3) if bench.full else (10, 3)
    rows = {pay: [] for pay in bench.payers}
    for turn in range(rounds):
        for pay in bench.payers:
            rows[pay].append(measure(bench, pay, seconds, 10 + turn))
    names = ["growth", "hit_ns", "credited", "rq_credited", "owed", "due", "paid", "stopped", "a", "b", "imbalance"]
    for pay, runs in rows.items():
        common.table([f"pay {pay}, ms", *names],
                     [[f"run {i}", *(f"{r[n] / 1e6:.3f}" for n in names)] for i, r in enumerate(runs, 1)])  # fmt: skip
        books = common.median([r["paid"] / r["due"] for r in runs])
        body = common.median([r["stopped"] / r["due"] for r in runs])
        late = common.median([r["late"] for r in runs]) / 1000
        bench.verdict(abs(books - 1) <= BAR, f"{pay}: paid / due {books:.4f}, within {100 * BAR:g} % of 1")
        bench.verdict(abs(body - 1) <= BAR, f"{pay}: really stopped / due {body:.4f}, within {100 * BAR:g} % of 1")
        bench.verdict(0 < late < LATE_US, f"{pay}: {late:.1f} us from hit to pause (median), under {LATE_US}")
