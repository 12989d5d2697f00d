# SPDX-License-Identifier: BSD-2-Clause
"""What a visit of a progress point costs: by the instruction that the probe stands on, and for a line where cozbpf chose it.

A line whose first instruction is single-stepped must cost under 1 us where its block has one that is not."""

import common

BAR_NS = 1000


def rounds(bench, points, command):
    options = ["--fixed-speedup", "0", *(word for p in points for word in ("-p", p))]
    return common.numbers_in(bench.timed(options, command)[0])["ns_per_round"]


def run(bench):
    program = bench.program("e2e", "places")
    command = [program, "200000" if bench.full else "50000"]
    line = common.line_of("tests/e2e/programs/places.c", "sum")
    points = {
        "function": ["places:site"],
        "nop, 5 bytes (behind it)": ["places:site+2"],
        "nop": ["places:site+7"],
        "push": ["places:site+8"],
        "pop": ["places:site+9"],
        "function, return": ["places:site%return"],
        "line, site chosen": [line],
        "system call": ["syscall:getppid"],
    }
    cells = {"native": lambda: common.numbers_in(bench.native(command)[0])["ns_per_round"]}
    cells["unprobed"] = lambda: rounds(bench, [], command)
    for name, where in points.items():
        cells[name] = lambda where=where: rounds(bench, where, command)
    values = common.interleaved(5 if bench.full else 3, cells)
    base = common.median(values["unprobed"])
    costs = {name: [v - base for v in found] for name, found in values.items() if name not in ("native", "unprobed")}
    common.spread_table("cost of a visit, ns", costs, "{:.0f}")
    chosen = common.median(costs["line, site chosen"])
    bench.verdict(chosen < BAR_NS, f"a line whose first instruction is single-stepped: {chosen:.0f} ns a visit, less than {BAR_NS}")
