# SPDX-License-Identifier: BSD-2-Clause
"""Continuous sampling: throughput with it over that without, beside perf record -a; the collector's memory and CPU time; shares beside perf's.

A loop that computes and one that makes system calls, at 100 Hz and at 1 kHz. Shares of functions are compared in one run of both samplers, each with
its own standard error."""

import json
import math
import os
import signal
import subprocess
import tempfile
import time

import common

MOST = {100: 0.01, 1000: 0.03}  # of the throughput
MOST_RSS_MB, MOST_CPU = 30, 0.005
PROCESSES = 500
STANDARD_ERRORS = 4
LOST = 0.001


class Sampler:
    """One that runs beside something; its process is ended with the block."""

    def __init__(self, command):
        self.command = command

    def __enter__(self):
        if self.command:
            self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(1.0)
            if self.process.poll() is not None:
                raise common.Failure(f"status {self.process.returncode}: {' '.join(self.command)}")
        return self

    def __exit__(self, *_):
        if self.command:
            self.process.send_signal(signal.SIGINT)
            self.process.wait(timeout=60)


def collector(bench, where, hz):
    return [bench.cozbpf, "collect", "--db", os.path.join(where, f"db{hz}"), "--rate", str(hz)]


def perf(where, hz):
    return ["perf", "record", "-a", "-e", "cpu-clock", "-F", str(hz), "-o", os.path.join(where, "perf.data"), "-q"]


def costs(bench, where, programs):
    """Runs that follow each other are compared: what a shared machine does meanwhile is the same for all."""
    for name, command in programs.items():
        samplers = {"nothing": None}
        for hz in MOST:
            samplers[f"collect, {hz} Hz"] = collector(bench, where, hz)
            samplers[f"perf record -a, {hz} Hz"] = perf(where, hz)

        def cell(sampler, command=command):
            with Sampler(sampler):
                return common.numbers_in(bench.native(command)[0])["elapsed_ns"]

        cells = {n: (lambda s=s: cell(s)) for n, s in samplers.items()}
        values = common.interleaved(25 if bench.full else 5, cells)
        common.spread_table(f"{name}, ms", {n: [v / 1e6 for v in vs] for n, vs in values.items()}, "{:.1f}")
        for hz, most in MOST.items():
            for who in ("collect", "perf record -a"):
                lost = 1 - common.median([a / b for a, b in zip(values["nothing"], values[f"{who}, {hz} Hz"])])
                words = f"{name}, {who} at {hz} Hz: {100 * lost:.2f} % less"
                if who == "collect":
                    bench.verdict(lost <= most, f"{words}, at most {100 * most:g} %")
                else:
                    print(f"    {words}")


def usage_of(pid):
    """(resident MB at most, CPU seconds) of a process."""
    with open(f"/proc/{pid}/status", encoding="utf-8") as f:
        peak = next(int(line.split()[1]) for line in f if line.startswith("VmRSS:"))
    with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
        ticks = sum(int(x) for x in f.read().rpartition(")")[2].split()[11:13])
    return peak / 1024, ticks / common.TICKS


def daemon(bench, where):
    """Memory and CPU time of the collector with many processes that do a little each."""
    seconds = 120 if bench.full else 40
    crowd = [subprocess.Popen(["sh", "-c", "while :; do sleep 1; done"], stdin=subprocess.DEVNULL) for _ in range(PROCESSES)]
    try:
        with Sampler(collector(bench, where, 100)) as s:
            time.sleep(5)
            _, before = usage_of(s.process.pid)
            t0, most = time.monotonic(), 0.0
            while time.monotonic() < t0 + seconds:
                time.sleep(1)
                most = max(most, usage_of(s.process.pid)[0])
            share = (usage_of(s.process.pid)[1] - before) / (time.monotonic() - t0)
    finally:
        for p in crowd:
            p.kill()
            p.wait()
    bench.verdict(most < MOST_RSS_MB, f"the collector's memory with {PROCESSES} processes: {most:.1f} MB, under {MOST_RSS_MB}")
    bench.verdict(share < MOST_CPU, f"its CPU time: {100 * share:.2f} % of a CPU, under {100 * MOST_CPU:g} %")


def shares_of_perf(where):
    text = subprocess.run(["perf", "script", "-i", os.path.join(where, "perf.data"), "-F", "comm,sym,ip", "--comm", "split"],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True, text=True).stdout  # fmt: skip
    found = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) >= 3:
            found[words[2]] = found.get(words[2], 0) + 1
    return found


def agreement(bench, where, split):
    seconds = 60 if bench.full else 20
    database = os.path.join(where, "agreement")
    with subprocess.Popen([split, str(seconds + 5)], stdout=subprocess.DEVNULL) as program:
        with Sampler([bench.cozbpf, "collect", "--db", database, "--rate", "1000"]), Sampler(perf(where, 1000)):
            time.sleep(seconds)
        program.kill()
    said = subprocess.run([bench.cozbpf, "top", "--db", database, "--process", "split", "--json", "--top", "0"], stdout=subprocess.PIPE, check=True).stdout
    ours = {r["function"]: r["samples"] for r in json.loads(said)["shares"]["rows"]}
    theirs = shares_of_perf(where)
    n, m = sum(ours.values()), sum(theirs.values())
    rows, worst = [], 0.0
    for name in sorted(ours, key=ours.get, reverse=True)[:8]:
        p, q = ours[name] / n, theirs.get(name, 0) / m
        error = math.sqrt(p * (1 - p) / n + q * (1 - q) / m) or 1 / n
        if ours[name] >= 30:
            worst = max(worst, abs(p - q) / error)
        rows.append([name, f"{100 * p:.2f} %", f"{100 * q:.2f} %", f"{abs(p - q) / error:.1f}"])
    common.table(["function", "collect", "perf", "standard errors"], rows)
    bench.verdict(worst <= STANDARD_ERRORS, f"shares of {n} and {m} samples differ by {worst:.1f} standard errors, at most {STANDARD_ERRORS}")


def run(bench):
    with tempfile.TemporaryDirectory(prefix="cozbpf-bench-") as where:
        for name in ("calls", "split"):
            common.compiled(name, os.path.join(where, name))
        programs = {
            "computing": [bench.program("e2e", "cpu"), "8000"],
            "system calls": [os.path.join(where, "calls"), "4000000"],
        }
        costs(bench, where, programs)
        daemon(bench, where)
        agreement(bench, where, os.path.join(where, "split"))
