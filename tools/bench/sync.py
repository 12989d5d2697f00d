# SPDX-License-Identifier: BSD-2-Clause
"""What it costs to follow waits, and to be probed: locks under each --sync (bar: 5x of native by wrapped calls), probes by instruction.

Experiments run all the time, without delays: the only speedup is 0 %. The scheduler's events, which cost a lock nothing, cost what blocks: here two
threads that wake each other through pipes."""

import common

BAR = 5
WRAPPED = "--sync pthread, wrapped calls"
WAYS = {
    "--sync sched": [],
    WRAPPED: ["--sync", "pthread"],
}
SITES = {"nop5": "behind a nop of 5 bytes, here on a ret", "nop1": "on a nop of 1 byte", "stepped": "on an instruction that is single-stepped"}


def run(bench):
    always = ["--fixed-speedup", "0", "--cool-off", "0", "--rate", "1000"]
    locks = [bench.program("e2e", "locks"), "2" if bench.full else "0.5"]
    line = ["--fixed-line", common.line_of("tests/e2e/programs/locks.c", "unlock"), "-p", "progress"]
    rounds = 7 if bench.full else 3

    def pair(options):
        return lambda: common.numbers_in(bench.timed([*always, *line, *options], locks)[0])["ns_per_pair"]

    cells = {"native": lambda: common.numbers_in(bench.native(locks)[0])["ns_per_pair"], **{n: pair(o) for n, o in WAYS.items()}}
    values = common.interleaved(rounds, cells)
    common.spread_table("lock + unlock, uncontended, ns", values, "{:.1f}")
    ratio = common.median([v / b for v, b in zip(values[WRAPPED], values["native"])])

    sites = [bench.program("e2e", "sites")]
    line = ["--fixed-line", common.line_of("tests/e2e/programs/sites.c", "batch")]
    probes = [word for site in SITES for word in ("-p", f"site_{site}")]
    found = {"native": [], "probed": [], **{n: [] for n in WAYS}}
    for _ in range(rounds):
        found["native"].append(common.numbers_in(bench.native(sites)[0]))
        found["probed"].append(common.numbers_in(bench.timed([*always, *line, *probes], sites)[0]))
        for name, options in WAYS.items():
            found[name].append(common.numbers_in(bench.timed([*always, *line, "-p", "progress", *options], sites)[0]))
    middle = {name: {key: common.median([v[key] for v in runs]) for key in runs[0]} for name, runs in found.items()}
    common.table(["a probe, ns a hit", ""], [[text, f"{middle['probed'][s] - middle['native'][s]:.0f}"] for s, text in SITES.items()])
    common.table(
        ["there and back through pipes, ns", "", "of native"],
        [[n, f"{middle[n]['pipe']:.0f}", f"{middle[n]['pipe'] / middle['native']['pipe']:.3f}"] for n in ("native", *WAYS)],
    )
    bench.verdict(ratio <= BAR, f"lock + unlock, {WRAPPED}: {ratio:.2f}x of native, at most {BAR}x")
