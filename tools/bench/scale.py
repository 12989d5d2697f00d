# SPDX-License-Identifier: BSD-2-Clause
"""Many at a time: 1 000 threads, threads made and joined as fast as they go, 200 processes; the rate of work under the profiler at 0 %
over the native one, and what the kernel's tables take (bar 5 of many processes: under 1 KiB a thread, nothing lost)."""

import json
import os
import subprocess
import tempfile
import time

import common

BAR_BYTES = 1024
KINDS = (("threads", 1000), ("short", 2), ("processes", 200))
LOST = ("table of processes was full", "more threads than ledger slots", "could not be given a ledger entry", "no room for")
TASK_STORAGE = "29"
HEAD_BYTES = 64  # the kernel's own, of each task's storage
SLOT_BYTES = 64 + 2 * 8  # a slot and its two works


def rate(out):
    said = common.numbers_in(out)
    return said["visits"] / said["elapsed_ns"] * 1e9


def map_bytes(pid):
    """Of all maps that the process holds: bytes; and of a thread's storage, which they do not count."""
    total, storage = 0, 0
    seen = set()
    for fd in os.listdir(f"/proc/{pid}/fdinfo"):
        try:
            with open(f"/proc/{pid}/fdinfo/{fd}", encoding="utf-8") as f:
                info = dict(line.split(":", 1) for line in f.read().splitlines() if ":" in line)
        except OSError:
            continue
        if "map_id" in info and info["map_id"] not in seen:  # programs have a memlock of their own
            seen.add(info["map_id"])
            total += int(info["memlock"])
            if info["map_type"].strip() == TASK_STORAGE:
                storage += int(info["value_size"]) + HEAD_BYTES
    return total, storage


def own(pid):
    """Memory in use at most so far, bytes, and CPU time, s."""
    with open(f"/proc/{pid}/status", encoding="utf-8") as f:
        peak = next(int(line.split()[1]) * 1024 for line in f if line.startswith("VmHWM"))
    ticks, _ = common.cpu_ticks().get(pid, (0, ""))
    return peak, ticks / common.TICKS


def profiled(bench, command, seconds):
    """The program's output, the bytes of all maps in mid-run, the profiler's own memory and CPU time by then, and what the report says was
    lost."""
    with tempfile.TemporaryDirectory(prefix="cozbpf-bench-") as where:
        profile = os.path.join(where, "profile.jsonl")
        run = [a for a in bench.profiler(profile, ["-p", "progress", "--fixed-speedup", "0"], command) if a != "--no-report"]
        with subprocess.Popen(run, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            time.sleep(seconds / 2)
            size, storage = map_bytes(process.pid)
            memory, cpu = own(process.pid)
            out, err = process.communicate(timeout=seconds + 60)
        if process.returncode != 0:
            raise common.Failure(f"status {process.returncode}: {(err.strip().splitlines() or ['nothing on stderr'])[-1]}")
        with open(profile, encoding="utf-8") as f:
            experiments = sum(json.loads(line)["type"] == "experiment" for line in f)
    return out, size, storage, memory, cpu, experiments, [line.strip() for line in err.splitlines() if any(text in line for text in LOST)]


def run(bench):
    seconds = 8 if bench.full else 3
    rows = []
    for kind, n in KINDS:
        if bench.options.only and not any(text in kind for text in bench.options.only):
            continue
        command = [bench.program("e2e", "crowd"), kind, str(n), f"{seconds:g}"]
        natives, ours, lost, experiments = [], [], [], 0
        for _ in range(3 if bench.full else 1):
            natives.append(rate(bench.native(command, seconds + 30)[0]))
            out, size, storage, memory, cpu, found, complaints = profiled(bench, command, seconds)
            ours.append(rate(out))
            lost += complaints
            experiments += found
        ratio = common.median(ours) / common.median(natives)
        rows.append([f"{kind} {n}", f"{common.median(natives):.0f}", f"{common.median(ours):.0f}", f"{ratio:.3f}", experiments,
                     f"{size / 1048576:.1f}", f"{memory / 1048576:.1f}", f"{cpu:.2f}"])  # fmt: skip
        bench.verdict(not lost and experiments > 0, f"{kind}: {experiments} experiments, {lost[0] if lost else 'nothing lost'}")
    common.table(["", "native, 1/s", "profiled, 1/s", "ratio", "experiments", "tables, MiB", "profiler, MiB", "profiler, s"], rows)
    if not rows:
        raise common.Failure("no such cell")
    # Slots and works have a place for each of 16 384 threads from the start; storage comes and goes with the threads.
    each = storage + SLOT_BYTES
    bench.verdict(each < BAR_BYTES, f"{each} bytes a thread in the tables of threads, less than {BAR_BYTES}")
