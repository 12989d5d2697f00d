# SPDX-License-Identifier: BSD-2-Clause
"""Rows of cells, and what many cells say together."""

import math
import statistics

KNEE_BAR = 10.0  # points of line speedup


def median_or_none(values):
    values = list(values)
    return None if None in values else statistics.median(values)


def mean_size(values):
    return statistics.mean(abs(v) for v in values)


def worst_size(values):
    return max(abs(v) for v in values)


def show_row(title, values, note="", form="8.2f"):
    cells = "".join(format(v, form) if v is not None else format("-", form.split(".", maxsplit=1)[0]) for v in values.values())
    print(f"    {title:10}{cells}   {note}".rstrip())


def show_groups(groups):
    """The errors of all cells of a program, or of so many threads, together."""
    width = max(len(name) for name in groups)
    for name, cells in sorted(groups.items()):
        worst = max(cells, key=lambda cell: abs(cells[cell]))
        print(f"{name:{width}}  {len(cells):3} cells, mean error {mean_size(cells.values()):5.2f}, worst {cells[worst]:6.2f}: {worst}")


def show(found):
    """Of the cells of a run (a Runner's lists), as far as there are any: errors by group, intervals that hold, verdicts, knees, Coz."""
    if found.errors:
        show_groups(found.errors)
    if found.intervals:
        covering = sum(covers for covers, _, _ in found.intervals)
        half, mean, own = (f([i[k] for i in found.intervals]) for f, k in ((statistics.median, 1), (statistics.mean, 1), (statistics.mean, 2)))
        noise = statistics.mean(math.sqrt(max(half**2 - method**2, 0)) for _, half, method in found.intervals)
        print(f"95 % intervals: {covering} of {len(found.intervals)} hold the truth, median half-width {half:.2f} points")
        print(f"mean half-width {mean:.2f} points: {noise:.2f} the noise, {own:.2f} what is allowed for the method")
    if found.flat:
        print(f"lines without effect: {sum(found.flat)} of {len(found.flat)} runs call one helpful or harmful")
    if found.spinning:
        print(f"threads spin, says the report: {', '.join(sorted(found.spinning))}")
    if found.knees:
        missed = sorted({name for name, off in found.knees if off is None or abs(off) > KNEE_BAR})
        seen = [abs(off) for _, off in found.knees if off is not None]
        middle = f"{statistics.median(seen):.1f} points off in the median, " if seen else ""
        print(f"knees: {middle}beyond {KNEE_BAR:g} or not found: {', '.join(missed) or 'none'}")
    if found.peers:
        nearer = [name for name, ours, theirs in found.peers if theirs < ours]
        means = [statistics.mean(p[i] for p in found.peers) for i in (1, 2)]
        print(f"mean error over {len(found.peers)} cases: {means[0]:.2f} points, Coz {means[1]:.2f}; Coz nearer: {', '.join(nearer) or 'none'}")
