#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Writes databases as `cozbpf collect --experiments` does, of simulated hosts that all run one service: fleet.py DIRECTORY HOSTS HOURS [SEED].

Hosts are not equally fast, and the load of each varies by a factor of three within an hour. What a line is worth is the same on all: that of
query.c:120 half of its speedup, that of cache.c:88 0.6 of it until it is 40 % faster, that of log.c:31 nothing."""

import json
import math
import os
import random
import sys
import time

LINES = {"query.c:120": ("search", 0.5), "cache.c:88": ("lookup", 0.3), "log.c:31": ("write_log", 0.2)}
BUILD = "5e12f1ce5e12f1ce5e12f1ce5e12f1ce5e12f1ce"
BEGIN_S = 1795780800  # an hour that began
HOUR_S = 3600
BURSTS = 16  # in an hour, with so many blocks of an experiment at 0 % and two others
BLOCKS = 3
USUAL_NS = 1_000_000  # a request
EXPERIMENT_NS = 200_000_000
NOISE = 0.03


def effect(line, speedup):
    return {"query.c:120": 0.5 * speedup, "cache.c:88": 0.6 * min(speedup, 0.4), "log.c:31": 0.0}[line]


def load(at_s, host):
    """How long a request takes, relative to the mean: from a half to three halves, once an hour, at another time on each host."""
    return 1 + 0.5 * math.sin(2 * math.pi * (at_s / HOUR_S + hash_of(host)))


def hash_of(host):
    return random.Random(host).random()


def experiments(host, speed, rng):
    """(burst, begin in the hour in seconds, line, speedup, effective ns, visits)"""
    weights = [share for _, share in LINES.values()]
    for burst in range(1, BURSTS + 1):
        at = (burst - 1 + rng.random()) * HOUR_S / BURSTS
        for _ in range(BLOCKS):
            zero = rng.randrange(3)
            for i in range(3):
                line = rng.choices(list(LINES), weights)[0]
                speedup = 0 if i == zero else rng.randrange(1, 21) / 20
                visit = USUAL_NS * speed * load(at, host) * (1 - effect(line, speedup)) * math.exp(rng.gauss(0, NOISE))
                visits = max(1, round(EXPERIMENT_NS / visit))
                yield burst, at, line, speedup, round(visits * visit), visits
                at += EXPERIMENT_NS / 1e9 + 0.01


def profile(host, speed, begin_s, rng):
    yield {"type": "startup", "time": begin_s * 10**9, "cozbpf": {
        "command": "system --cgroup /sys/fs/cgroup/service -p request", "build": BUILD, "host": host, "cpus": 8, "sync": "sched", "pay": "hold",
        "granularity": "line", "seed": 1, "period_ns": 1000000, "attribution": "first"}}
    counts = dict.fromkeys(LINES, 0)
    total = 0
    for burst, at, line, speedup, effective, visits in experiments(host, speed, rng):
        growth = round(effective * speedup / 4)
        for other, (_, share) in LINES.items():
            counts[other] += round(share * effective / 1e6)
        total += round(effective / 1e6)
        yield {"type": "experiment", "selected": "/src/" + line, "speedup": speedup, "duration": effective, "selected_samples": visits // 4,
               "function": LINES[line][0], "elapsed": effective + growth, "growth": growth, "began": (BEGIN_S // HOUR_S + 1) * 10**9 + round(at * 1e9),
               "burst": burst, "period_ns": 1000000}
        yield {"type": "throughput-point", "name": "request", "delta": visits}
    yield {"type": "runtime", "time": HOUR_S * 10**9, "samples": total, "unattributed": 0}
    for line, n in sorted(counts.items()):
        yield {"type": "samples", "location": "/src/" + line, "count": n}


def write(directory, host, speed, hours, rng):
    os.makedirs(directory, mode=0o700)
    with open(os.path.join(directory, "cozbpf-database"), "w", encoding="ascii") as f:
        f.write("cozbpf database 2\n")
    for hour in range(hours):
        begin_s = BEGIN_S + hour * HOUR_S
        epoch = os.path.join(directory, time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(begin_s)) + f"-{HOUR_S}")
        os.mkdir(epoch, mode=0o700)
        with open(os.path.join(epoch, f"experiments-{host}-{begin_s}.jsonl"), "w", encoding="utf-8") as f:
            for record in profile(host, speed, begin_s, rng):
                f.write(json.dumps(record, separators=(",", ":")) + "\n")


def main():
    directory, hosts, hours = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    rng = random.Random(int(sys.argv[4]) if len(sys.argv) > 4 else 1)
    for i in range(1, hosts + 1):
        host = f"host-{i:03}"
        write(os.path.join(directory, host), host, math.exp(rng.gauss(0, 0.35)), hours, rng)


main()
