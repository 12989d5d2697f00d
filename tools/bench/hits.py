# SPDX-License-Identifier: BSD-2-Clause
"""Samples in a line against CPU time in it: 1 within 2 % at 0, 25, 50, 75, 100 % (bar 5).

The program counts its batches of work in the line. How long one takes, under the same sampling but without pauses, is told by runs at 0 %:
those are repeated around the others, so that what is compared met the same machine. The visits of the experiments, times that, are the
CPU time in the line without payments. A sample stands for what was executed since the last one, so the sum of these weights must be the
same."""

import common

SPEEDUPS = (0, 25, 50, 75, 100)
ENOUGH = 20000
BAR = 0.02


def measure(bench, pay, percent, seconds, seed):
    command = [bench.program("truth", "hits"), "--per-us", bench.calibration(), "--seconds", f"{seconds:g}"]
    options = [
        "--pay", pay, "-p", "progress", "--fixed-line", common.line_of("tests/truth/programs/hits.c", "a"),
        "--fixed-speedup", str(percent), "--experiment", "1000", "--cool-off", "10", "--seed", str(seed),
    ]  # fmt: skip
    out, profile = bench.profiled(options, command, seconds + 60)
    said = common.numbers_in(out)
    cell = {
        "visits": profile.visits("progress"),
        "count": profile.total("hits" if percent else "selected_samples"),
        "selected_ns": profile.total("selected_ns"),
        "batch_ns": said["batch_iterations"] * said["ns_per_iteration"],
        "foreign": profile.foreign(),
    }
    if cell["visits"] == 0:
        raise common.Failure(f"no visits at {percent} %")
    return cell


def pooled(runs, key):
    return sum(r[key] for r in runs)


def run(bench):
    # Two threads in the line for 80 % of the time: 1600 samples a second at 0 %. At 100 % both are stopped half of the time.
    seconds, rounds = (16, 3) if bench.full else (3, 1)
    for pay in bench.payers:
        runs = {s: [] for s in SPEEDUPS}
        for turn in range(rounds):
            for s in SPEEDUPS[turn % 2 * 4 :: -1] if turn % 2 else SPEEDUPS:
                runs[s].append(measure(bench, pay, s, seconds if s < 50 else 1.5 * seconds, 1 + turn * 100 + s))
        batch_ns = common.median([r["batch_ns"] for r in runs[0]])
        rows, worst, fewest = [], 0, float("inf")
        for s, cells in runs.items():
            line_ns = pooled(cells, "visits") * batch_ns
            ratio = pooled(cells, "selected_ns") / line_ns
            each = [c["selected_ns"] / (c["visits"] * batch_ns) for c in cells]
            rows.append([f"{s} %", pooled(cells, "count"), f"{line_ns / 1e9:.3f}", f"{ratio:.4f}", f"{min(each):.4f}", f"{max(each):.4f}",
                         f"{100 * max(c['foreign'] for c in cells):.1f} %"])  # fmt: skip
            worst = max(worst, abs(ratio - 1))
            fewest = min(fewest, pooled(cells, "count"))
        print(f"    pay {pay}, a batch takes {batch_ns / 1000:.2f} us")
        common.table(["speedup", "hits", "s in line", "ratio", "least run", "most", "foreign"], rows)
        few = f"; only {fewest} hits in a cell, {ENOUGH} are asked for (--full)" if fewest < ENOUGH else ""
        good = worst <= BAR and (fewest >= ENOUGH or not bench.full)
        bench.verdict(good, f"{pay}: largest error {100 * worst:.2f} %, at most {100 * BAR:g} %{few}")
