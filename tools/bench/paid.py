# SPDX-License-Identifier: BSD-2-Clause
"""Time paid against time really stopped, and against what was due: 1 within 1 % at 5 % speedup (bar 6).

Two independent threads, one in the line, one beside it. Due: the growth of G for each thread, less its own hits, what was credited and
forgiven, and what is still owed at the end. Stopped: the program itself notices gaps between readings of the CPU's counter; those of a
run at 0 %, which has all of the sampling but no pauses, are subtracted (ticks are gaps too)."""

import re

import common

BAR = 0.01
LATE_US = 100


def account(out):
    """(stopped, lived) in ns, of each of the two threads."""
    found = {t: (float(s), float(n)) for t, s, n in re.findall(r"thread=(\w) .*?stopped_ns=(\d+) lived_ns=(\d+)", out)}
    if len(found) != 2 or not all(lived > 0 for _, lived in found.values()):
        raise common.Failure("the program's account is incomplete")
    return found


def measure(bench, pay, percent, seconds, seed):
    command = [bench.program("truth", "stopped"), "--per-us", bench.calibration(), "--seconds", f"{seconds:g}"]
    options = [
        "--pay", pay, "-p", "progress", "--fixed-line", common.line_of("tests/truth/programs/stopped.c", "a"),
        "--fixed-speedup", str(percent), "--experiment", "1000", "--cool-off", "10", "--seed", str(seed),
    ]  # fmt: skip
    out, profile = bench.profiled(options, command, seconds + 60)
    return account(out), profile


def run(bench):
    seconds, rounds = (60, 3) if bench.full else (6, 1)
    for pay in bench.payers:
        rows = []
        for turn in range(rounds):
            ticks, _ = measure(bench, pay, 0, seconds / 4, 10 + turn)
            stops, profile = measure(bench, pay, 5, seconds, 20 + turn)
            stopped = sum(s - lived * ticks[t][0] / ticks[t][1] for t, (s, lived) in stops.items())
            total = {k: profile.total(k) for k in ("paid", "hit_ns", "credited", "rq_credited", "forgiven", "owed")}
            growth = sum(x.get("threads", 2) * x["growth"] for x in profile.experiments)
            due = growth - sum(total[k] for k in ("hit_ns", "credited", "rq_credited", "forgiven", "owed"))
            if due <= 0 or total["paid"] <= 0:
                raise common.Failure("nothing was due or nothing paid")
            rows.append({**total, "growth": growth, "due": due, "stopped": stopped, "late": profile.late(),
                         "imbalance": max(abs(x.get("imbalance", 0)) for x in profile.experiments)})  # fmt: skip
        names = ["growth", "hit_ns", "credited", "rq_credited", "forgiven", "owed", "due", "paid", "stopped"]
        common.table([f"pay {pay}, ms", *names, "imbalance"],
                     [[f"run {i}", *(f"{r[n] / 1e6:.3f}" for n in names), f"{r['imbalance'] / 1e6:.3f}"] for i, r in enumerate(rows, 1)])  # fmt: skip
        books = common.median([r["paid"] / r["due"] for r in rows])
        body = common.median([r["paid"] / r["stopped"] for r in rows])
        late = common.median([r["late"] for r in rows]) / 1000
        bench.verdict(abs(books - 1) <= BAR, f"{pay}: paid / due {books:.4f}, within {100 * BAR:g} % of 1")
        bench.verdict(abs(body - 1) <= BAR, f"{pay}: paid / really stopped {body:.4f}, within {100 * BAR:g} % of 1")
        bench.verdict(0 < late < LATE_US, f"{pay}: {late:.1f} us from hit to pause (median), under {LATE_US}")
