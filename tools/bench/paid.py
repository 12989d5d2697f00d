# SPDX-License-Identifier: BSD-2-Clause
"""Time paid against time really stopped, and against what was due: 1 within 1 % at 5 % speedup (bar 6).

Two independent threads, one in the line, one beside it. Due: the growth of G for each thread, less its own hits, what was credited and
what is still owed at the end (which is what will be forgiven: that is booked when the thread is seen again), and what it was ahead then.
Stopped: the program reads the CPU's counter without pause and writes down every gap, and --trace-payments when the ledger stopped it and what it
booked for that from tick to tick, so that each stop can be held against the gap in which it lies. Of a gap that began with a tick, what ticks alone take on average is no payment; a tick in the middle of a
payment stops nobody. (Sums of all gaps, compared with those at 0 %, say less: a shared host takes from a CPU as much as payments do, from second to second
something else, and part of that while the CPU idles in a payment.) A gap of more than a millisecond had another program or machine in it, and so has what
was booked for it: left out. Each run calibrates anew: what an interrupt costs a virtual machine changes from one minute to the next."""

import bisect
import os
import statistics
import tempfile

import common

BAR = 0.01
LATE_US = 100
LONGEST_NS = 1_000_000
SLACK_NS = 300  # between our clock and the program's, which reads the counter in ns of its own reckoning
PERCENT = 5
ENOUGH = 0.9  # of the stops must be found in gaps
FEW = 100


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


def read_stops(path):
    """[(kind, thread id, time, what a tick found to be paid)] in ns."""
    with open(path, encoding="ascii") as lines:
        return [(kind, int(tid), int(at), int(paid)) for kind, tid, at, paid in map(str.split, lines)]


def gap_around(of_thread, at):
    """The gap with a moment in it, as its number, or None."""
    begins, lengths = of_thread
    i = bisect.bisect_right(begins, at + SLACK_NS) - 1
    return i if i >= 0 and begins[i] + lengths[i] >= at - SLACK_NS else None


def by_thread(stops, gaps):
    """{thread: its stops in order}: the ids of the program's threads are told by whose gaps they fit."""
    found = {}
    for tid in {s[1] for s in stops}:
        own = sorted((s for s in stops if s[1] == tid), key=lambda s: s[2])
        fits = {t: sum(gap_around(gaps[t], s[2]) is not None for s in own) for t in gaps}
        best = max(fits, key=fits.get)
        if len(own) >= FEW and fits[best] >= ENOUGH * len(own):
            found[best] = own
    return found


def between_ticks(stops):
    """(the stops from one tick on to the next, what was booked for them): a hit's asking belongs to the tick that it comes with."""
    last, since = None, []
    for s in stops:
        if s[0] != "tick":
            since.append(s)
            continue
        if last and since:
            yield last, since, s[3] - last[3]
        last, since = s, []


def stopped_of(gaps, stops):
    """(really stopped, booked, stops, of those compared) of one thread, in ns."""
    lengths = gaps[1]
    paying = {gap_around(gaps, s[2]) for s in stops if s[0] != "tick"}
    ticks = {gap_around(gaps, s[2]): s[2] for s in reversed(stops) if s[0] == "tick"}
    tick = statistics.mean(lengths[i] for i in ticks if i is not None and i not in paying and lengths[i] < LONGEST_NS)
    real = booked = n = 0
    for _, of, paid in between_ticks(stops):
        inside = {gap_around(gaps, s[2]): s[2] for s in reversed(of)}
        # In another experiment the account begins anew.
        if paid <= 0 or None in inside or any(lengths[i] >= LONGEST_NS for i in inside):
            continue
        real += sum(lengths[i] - (tick if ticks.get(i, at) < at else 0) for i, at in inside.items())
        booked += paid
        n += len(of)
    return real, booked, sum(s[0] != "tick" for s in stops), n


def due_in(x):
    """What its threads should have been stopped for in an experiment, in ns."""
    return x["threads"] * x["growth"] + x.get("ahead", 0) - sum(x.get(k, 0) for k in ("hit_ns", "credited", "rq_credited", "owed"))


def measure(bench, pay, seconds, seed):
    """One run: the books of its experiments, and of the stops that were booked in it what the program saw of them."""
    with tempfile.TemporaryDirectory(prefix="cozbpf-bench-") as where:
        path, trace = os.path.join(where, "gaps"), os.path.join(where, "stops")
        command = [bench.program("truth", "stopped"), "--per-us", bench.calibration(), "--seconds", f"{seconds:g}", "--gaps", path]
        options = [
            "--pay", pay, "-p", "progress", "--fixed-line", common.line_of("tests/truth/programs/stopped.c", "a"),
            "--calibrate", "--fixed-speedup", str(PERCENT), "--experiment", "200", "--cool-off", "10", "--seed", str(seed),
            "--trace-payments", trace,
        ]  # fmt: skip
        _, profile = bench.profiled(options, command, seconds + 60)
        gaps, stops = read_gaps(path), read_stops(trace)
    begin, end = min(g[0][0] for g in gaps.values()), max(g[0][-1] for g in gaps.values())
    threads = by_thread([s for s in stops if begin <= s[2] <= end], gaps)
    if sorted(threads) != ["a", "b"]:
        raise common.Failure("the stops that were booked do not fit those that the program saw")
    # The main thread, which sleeps, is seen in the first experiment and in the last.
    paid = [x for x in profile.experiments if x["threads"] == 2]
    row = {k: sum(x.get(k, 0) for x in paid) for k in ("paid", "hit_ns", "credited", "rq_credited", "owed", "ahead", "growth")}
    row["due"] = sum(due_in(x) for x in paid)
    row["late"] = common.median([x["late"] for x in paid])
    row["imbalance"] = max(abs(x.get("imbalance", 0)) for x in profile.experiments)
    real, booked, n, found = (sum(v) for v in zip(*(stopped_of(gaps[t], threads[t]) for t in "ab")))
    row.update(stopped=real, booked=booked, stops=n, found=found)
    if row["due"] <= 0 or row["paid"] <= 0 or found < ENOUGH * n:
        raise common.Failure("nothing was due or nothing paid, or too few stops are found in gaps")
    return row


def run(bench):
    seconds, rounds = (60, 3) if bench.full else (10, 3)
    rows = {pay: [] for pay in bench.payers}
    for turn in range(rounds):
        for pay in bench.payers:
            rows[pay].append(measure(bench, pay, seconds, 10 + turn))
    names = ["growth", "hit_ns", "credited", "rq_credited", "owed", "ahead", "due", "paid", "booked", "stopped", "imbalance"]
    for pay, runs in rows.items():
        common.table([f"pay {pay}, ms", *names, "stops", "in gaps"],
                     [[f"run {i}", *(f"{r[n] / 1e6:.3f}" for n in names), r["stops"], r["found"]] for i, r in enumerate(runs, 1)])  # fmt: skip
        books = common.median([r["paid"] / r["due"] for r in runs])
        body = common.median([r["stopped"] / r["booked"] for r in runs])
        late = common.median([r["late"] for r in runs]) / 1000
        bench.verdict(abs(books - 1) <= BAR, f"{pay}: paid / due {books:.4f}, within {100 * BAR:g} % of 1")
        bench.verdict(abs(body - 1) <= BAR, f"{pay}: really stopped / booked as paid {body:.4f}, within {100 * BAR:g} % of 1")
        bench.verdict(0 < late < LATE_US, f"{pay}: {late:.1f} us from hit to pause (median), under {LATE_US}")
