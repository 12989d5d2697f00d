#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Writes the sample profiles next to this file; they are checked in. Every number follows from the model below, so that tests can
compute what an analysis has to find.

The model: a visit takes 10 ms. Making hot.c:10 faster by s shortens a visit by s/2 (half the time is spent there), up to a knee at
s = 0.6; making lock.c:20 faster lengthens it by s/5 (contention); cold.c:30 does nothing."""
import json
import os
import random

HERE = os.path.dirname(os.path.abspath(__file__))
VISIT_NS = 10_000_000
DIRECTORY = "/src/app/"
LINES = {
    "hot.c:10": ("encode", lambda s: 1 - min(s, 0.6) / 2),
    "lock.c:20": ("enqueue", lambda s: 1 + s / 5),
    "cold.c:30": ("log_line", lambda s: 1.0),
}
SPEEDUPS = [0, 25, 50, 75, 100]
SAMPLES = {"hot.c:10": 500, "lock.c:20": 300, "cold.c:30": 150, "other.c:1": 50}


def share(percent):
    """As the program writes a share: no ".0"."""
    return percent / 100 if percent % 100 else percent // 100


def experiments(repeats, noise, rng):
    """(line, function, speedup in %, visits, span of the visits, duration)"""
    for _ in range(repeats):
        for line, (function, model) in LINES.items():
            for percent in SPEEDUPS:
                period = VISIT_NS * model(percent / 100) * (1 + rng.uniform(-noise, noise))
                visits = 100
                # Visits begin somewhere in the first period and end somewhere in the last one.
                yield line, function, percent, visits, round(period * (visits - 1)), round(period * visits)


def native(path, repeats, noise):
    rng = random.Random(7)
    records = [{"type": "startup", "time": 1700000000000000000,
                "cozbpf": {"version": "0.1.0", "command": "./app --work", "build": "0123456789abcdef0123456789abcdef01234567", "kernel": "6.1.0", "host": "box", "cpus": 2, "sync": "sched",
                           "pay": "sleep", "fallback": "ticks in user mode pay: the kernel has no task work", "granularity": "line",
                           "seed": 42, "period_ns": 1000000,
                           "pay_overhead_ns": 6000, "hit_overhead_ns": 8000, "tick_overhead_ns": 8000, "attribution": "first"}}]
    runtime = 0
    for line, function, percent, visits, span, duration in experiments(repeats, noise, rng):
        growth = duration * percent // 400
        runtime += duration + growth
        records.append({"type": "experiment", "selected": DIRECTORY + line, "speedup": share(percent), "duration": duration,
                        "selected_samples": 25, "samples": 50, "selected_ns": 12000000, "waits": 0, "held": 3, "hits": 25, "hit_ns": growth,
                        "payments": 25 if growth else 0, "paid": growth - 1000 if growth else 0, "held_asleep": 250, "credited": 2000,
                        "rq_credited": -300, "forgiven": 500, "oversleep": 700, "owed_at_exit": 400,
                        "function": function, "elapsed": duration + growth, "growth": growth, "owed": 1000, "ahead": 900,
                        "late": 40000 if growth else 0, "threads": 4, "imbalance": -12, "began": 5000, "burst": 0, "executed_ns": 80000000,
                        "settled_elapsed": (duration + growth) * 9 // 10, "settled_duration": duration * 9 // 10, "settled_executed_ns": 72000000,
                        "period_ns": 1000000,
                        "throttled": share(0), "stolen": share(0), "foreign": share(10 if line == "cold.c:30" else 0)})
        records.append({"type": "throughput-point", "name": "frame", "delta": visits, "first_ns": 1000, "last_ns": 1000 + span,
                        "effective_ns": span, "settled_delta": visits * 9 // 10})
        records.append({"type": "throughput-point", "name": "never", "delta": 0})
        # Two requests in flight on average: latency is twice the time between departures.
        records.append({"type": "latency-point", "name": "request", "arrivals": visits, "departures": visits, "difference": 2})
    records.append({"type": "runtime", "time": runtime, "samples": sum(SAMPLES.values()), "unattributed": 0,
                    "machine_ns": 4 * runtime, "own_cpu_ns": runtime // 100, "kernel_cpu_ns": runtime // 50, "scope_cpu_ns": 2 * runtime,
                    "foreign_cpu_ns": runtime // 2})
    records += [{"type": "samples", "location": DIRECTORY + location, "count": count, "ns": 0} for location, count in sorted(SAMPLES.items())]
    with open(os.path.join(HERE, path), "w", encoding="utf-8") as f:
        for record in records:
            f.write(json.dumps(record, separators=(",", ":")) + "\n")


def text(path, repeats, noise, old):
    """Coz's text form; the spellings of its early versions if old."""
    rng = random.Random(7)
    runtime = 0
    with open(os.path.join(HERE, path), "w", encoding="utf-8") as f:
        f.write("startup\ttime=1700000000000000000\n")
        for line, _, percent, visits, _, duration in experiments(repeats, noise, rng):
            runtime += duration
            f.write(f"experiment\tselected={DIRECTORY}{line}\tspeedup={percent / 100:.2f}\tduration={duration}"
                    f"\tselected-samples=25\n")
            if old:
                f.write(f"progress-point\tname=frame\ttype=source\tdelta={visits}\n")
                f.write("throughput_point\tname=never\tdelta=0\n")
            else:
                f.write(f"throughput-point\tname=frame\tdelta={visits}\n")
                f.write(f"latency-point\tname=request\tarrivals={visits}\tdepartures={visits}\tdifference=2\n")
        f.write(f"shutdown\ttime={runtime}\tsamples=1000\n" if old else f"runtime\ttime={runtime}\n")
        for location, count in sorted(SAMPLES.items()):
            f.write(f"samples\tlocation={DIRECTORY}{location}\tcount={count}\n")


def literal(path, lines):
    with open(os.path.join(HERE, path), "w", encoding="utf-8") as f:
        f.write("\n".join(lines) + "\n")


def main():
    native("noisy.jsonl", 4, 0.01)
    native("exact.jsonl", 2, 0)
    text("exact.coz", 2, 0, old=False)
    text("old.coz", 2, 0, old=True)
    literal("empty.jsonl", [
        '{"type":"startup","time":1,"cozbpf":{"version":"0.1.0","pay":"hold","sync":"sched","seed":5,"period_ns":1000000}}',
        '{"type":"runtime","time":300000000,"unattributed":0}'])
    literal("hostile.jsonl", [
        '{"type":"startup","time":1}',
        '{"type":"experiment","selected":"/a/\\u001b[31m.c:1","speedup":0,"duration":1000000,"selected_samples":1}',
        '{"type":"throughput-point","name":"p\\u001b]0;x\\u0007\\u202e","delta":18446744073709551615}',
        '{"type":"experiment","selected":"/a/b.c:1","speedup":7,"duration":1000000}',
        '{"type":"throughput-point","name":"lost","delta":5}',
        '{"type":"experiment","selected":"/a/b.c:1","speedup":0.5,"duration":-3}',
        '{"type":"experiment","selected":"/a/\\u001b[31m.c:1","speedup":1,"duration":18446744073709551615,"foreign":1e308}',
        '{"type":"experiment","selected":"/a/\\u001b[31m.c:1","speedup":1,"duration":18446744073709551615,"imbalance":'
        '-9223372036854775808,"rq_credited":-9223372036854775808}',
        '{"type":"throughput-point","name":"p\\u001b]0;x\\u0007\\u202e","delta":3,"first_ns":9,"last_ns":2,"effective_ns":0}',
        '{"type":"latency-point","name":"l","arrivals":0,"departures":0,"difference":-9223372036854775808}',
        '{"type":"unheard-of"}', '[1,2,3]', '{"type":"samples","location":"a"}', 'x' * 300, '{"type":',
        '{"type":"samples","location":"/a/\\u001b[31m.c:1","count":18446744073709551615}',
        '{"type":"samples","location":"/a/\\u001b[31m.c:1","count":18446744073709551615}'])


if __name__ == "__main__":
    main()
