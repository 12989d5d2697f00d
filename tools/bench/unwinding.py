# SPDX-License-Identifier: BSD-2-Clause
"""What unwinding adds to a sample: slowdown of a CPU-bound loop at 4 kHz over that without unwinding, at most 1.3x (bar 4).

The loop is in the C library, DEPTH frames below the line in scope: DEPTH is the median of bench `attribution` (attribution.md), and more
for comparison. --disable unwind looks at the interrupted frame only. Both are compared with the native time, in turn. Beside it stands
what the kernel says of the BPF program itself (BPF run-time statistics): that leaves out the interrupt around it, and includes ticks that
meet no thread of the program, which are measured apart (a program that sleeps) and taken off."""

import json
import os
import subprocess
import tempfile
import time

import common
import variants

BAR = 1.3
DEPTHS = (3, 4, 8)
JUDGED = 3
RATE = 4000
STATISTICS = "/proc/sys/kernel/bpf_stats_enabled"
TIMES_IN_A_SECOND = 4_000_000


def build(where):
    sources = [os.path.join(variants.HERE, "programs", name) for name in ("deep.c", "deep_main.c")]
    program = os.path.join(where, "deep")
    variants.call(["gcc", "-g", "-O2", "-fomit-frame-pointer", *sources, "-o", program], where)
    return program


def options(unwind):
    return ["--rate", str(RATE), "--fixed-speedup", "0", "--source", "*/deep_main.c", *([] if unwind else ["--disable", "unwind"])]


def program_statistics():
    """(ns, runs) of the sampler, while cozbpf runs; (0, 0) if it does not."""
    listed = subprocess.run(["bpftool", "-j", "prog", "show"], capture_output=True, text=True, check=False)
    found = [p for p in json.loads(listed.stdout or "[]") if p.get("name") == "sample_tick"]
    return max(((p.get("run_time_ns", 0), p.get("run_cnt", 0)) for p in found), default=(0, 0), key=lambda x: x[1])


def statistics_of(bench, unwind, command):
    """(ns, runs, samples of the program)"""
    with tempfile.TemporaryDirectory(prefix="cozbpf-bench-") as where:
        path = os.path.join(where, "profile.jsonl")
        last = (0, 0)
        with subprocess.Popen(bench.profiler(path, options(unwind), command), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as run:
            while run.poll() is None:
                now = program_statistics()
                last = now if now[1] > last[1] else last
                time.sleep(0.2)
        samples = 0
        with open(path, encoding="utf-8") as lines:
            for line in lines:
                record = json.loads(line)
                samples += record["count"] if record["type"] == "samples" else record.get("unattributed", 0)
    if not last[1]:
        raise common.Failure("no BPF run-time statistics")
    return (*last, samples)


def own_ns(bench, program, times, depth):
    """{unwind: ns of the BPF program for a sample of the program}"""
    found = {}
    with open(STATISTICS, "r+", encoding="ascii") as f:
        before = f.read()
        try:
            f.seek(0)
            f.write("1")
            f.flush()
            for unwind in (True, False):
                ns, runs, _ = statistics_of(bench, unwind, ["sleep", "2"])
                other = ns / runs
                ns, runs, samples = statistics_of(bench, unwind, [program, str(depth), str(times)])
                # The last look was a little before the end.
                samples = min(samples, runs)
                found[unwind] = (ns - other * (runs - samples)) / samples
        finally:
            f.seek(0)
            f.write(before)
    return found


def slowdowns(bench, program, times, depth):
    """(with, without unwinding): microseconds a sample, from the loop's time alone"""
    command = [program, str(depth), str(times)]
    cells = {
        "native": lambda: common.numbers_in(bench.native(command)[0])["elapsed_ns"],
        "unwinding": lambda: common.numbers_in(bench.timed(options(True), command)[0])["elapsed_ns"],
        "without": lambda: common.numbers_in(bench.timed(options(False), command)[0])["elapsed_ns"],
    }
    values = common.interleaved(15 if bench.full else 5, cells)
    common.spread_table(f"depth {depth}, ns", values, "{:.0f}")
    native = common.median(values["native"])
    samples = native / 1e9 * RATE
    return tuple((common.median(values[x]) - native) / samples / 1000 for x in ("unwinding", "without"))


def run(bench):
    seconds = 2 if bench.full else 1
    rows, ratio = [], None
    with tempfile.TemporaryDirectory(prefix="cozbpf-bench-") as where:
        try:
            program = build(where)
        except variants.NotBuilt as e:
            raise common.Failure(str(e)) from None
        took = common.numbers_in(bench.native([program, "3", str(TIMES_IN_A_SECOND // 10)])[0])["elapsed_ns"]
        times = int(TIMES_IN_A_SECOND / 10 * 1e9 / took * seconds)
        for depth in DEPTHS if bench.full else (JUDGED,):
            with_it, without = slowdowns(bench, program, times, depth)
            own = own_ns(bench, program, times, depth)
            if without <= 0:
                raise common.Failure("the loop is not slower under samples than without: the machine is too busy to tell")
            rows.append([depth, f"{with_it:.2f}", f"{without:.2f}", f"{with_it / without:.3f}", f"{own[True]:.0f}", f"{own[False]:.0f}"])
            if depth == JUDGED:
                ratio = with_it / without
    common.table(["depth", "us a sample", "without unwinding", "ratio", "BPF program, ns", "without"], rows)
    bench.verdict(ratio <= BAR, f"a sample at depth {JUDGED} costs {ratio:.3f}x of one without unwinding, at most {BAR:g}x")
