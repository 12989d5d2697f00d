# SPDX-License-Identifier: BSD-2-Clause
"""What it costs to follow waits by the program's pthread calls: an uncontended lock + unlock (bar: 5x with the preloaded library).

Experiments run all the time, without delays: the only speedup is 0 %. The probes on the calls themselves are what static executables
get; --sync sched, where a lock costs nothing, stands beside them."""

import common

BAR = 5


def run(bench):
    command = [bench.program("e2e", "locks"), "2" if bench.full else "0.5"]
    line = common.line_of("tests/e2e/programs/locks.c", "unlock")
    always = ["--fixed-speedup", "0", "--fixed-line", line, "-p", "progress", "--cool-off", "0"]

    def cell(options):
        return lambda: common.numbers_in(bench.timed([*always, *options], command)[0])["ns_per_pair"]

    cells = {
        "native": lambda: common.numbers_in(bench.native(command)[0])["ns_per_pair"],
        "--sync sched": cell([]),
        "--sync pthread, wrapped calls": cell(["--sync", "pthread"]),
        "--sync pthread, probes on the calls": cell(["--sync", "pthread", "--disable", "sync_sites"]),
    }
    values = common.interleaved(7 if bench.full else 3, cells)
    common.spread_table("lock + unlock, uncontended, ns", values, "{:.1f}")
    ratio = common.median([v / b for v, b in zip(values["--sync pthread, wrapped calls"], values["native"])])
    bench.verdict(ratio <= BAR, f"--sync pthread, wrapped calls: {ratio:.2f}x of native, at most {BAR}x")
