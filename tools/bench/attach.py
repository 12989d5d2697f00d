# SPDX-License-Identifier: BSD-2-Clause
"""Attaching to and letting go of a program of eight threads under load, again and again: what it finds afterwards (bar 3 of many processes).

The program hands numbers to and fro by pipes, epoll, futexes and socket pairs, and its output is known. Its rate before the first turn and
after the last one is compared with that of another process of the same program that nobody attaches to, measured in turn with it."""

import os
import re
import signal
import subprocess
import tempfile
import threading
import time

import common

BAR = 0.03
PIECE = 400  # rounds of a piece of load
TURN_S = "0.1"
# A probe has to be removed again, for which the kernel waits until all CPUs have been elsewhere: some turns without, some with.
WITH_POINT = 4


class Program:
    def __init__(self, bench):
        self.process = subprocess.Popen([bench.program("e2e", "turns")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = self.process.pid
        self.lock = threading.Lock()
        self.sums, self.eintr = set(), 0

    def work(self, rounds=PIECE):
        """Rounds in a second."""
        with self.lock:
            self.process.stdin.write(f"{rounds}\n")
            self.process.stdin.flush()
            said = common.numbers_in(self.process.stdout.readline())
        if "sum" not in said:
            raise common.Failure(f"the program ended with status {self.process.wait()}")
        if rounds == PIECE:
            self.sums.add(said["sum"])
        self.eintr = int(said["eintr"])
        return rounds / said["elapsed_ns"] * 1e9

    def trace(self):
        """What a profiler could leave in it: descriptors, mappings (the kernel keeps its own page for probes), signals, its threads' slack."""
        with open(f"/proc/{self.pid}/maps", encoding="utf-8") as f:
            maps = [re.sub(r"\s+", " ", line.strip()) for line in f if not line.rstrip().endswith("[uprobes]")]
        with open(f"/proc/{self.pid}/status", encoding="utf-8") as f:
            status = [line.strip() for line in f if re.match(r"(Sig|Shd|Seccomp|NoNewPrivs|TracerPid|Threads|Cap)", line)]
        descriptors = sorted(os.readlink(f"/proc/{self.pid}/fd/{n}") for n in os.listdir(f"/proc/{self.pid}/fd"))
        slack = []
        for tid in os.listdir(f"/proc/{self.pid}/task"):
            with open(f"/proc/{tid}/timerslack_ns", encoding="utf-8") as f:
                slack.append(f.read().strip())
        return {"descriptors": descriptors, "mappings": maps, "status": status, "slack": slack}

    def end(self):
        self.process.stdin.close()
        return self.process.wait(30)


def pace(program, other, pieces):
    """How fast one is, in units of the other, measured in turn; the ratios."""
    return [program.work() / other.work() for _ in range(pieces)]


def attach(bench, pid, options, path):
    command = [bench.cozbpf, "attach", str(pid), "-q", "--no-report", "-o", path, "-d", TURN_S, "--experiment", "30"]
    common.execute(command + options, 60)


def turns(bench, program, count, stop_at):
    """Attaches `count` times while the program works; how often."""
    done = 0
    over = threading.Event()
    failures = []

    def load():
        try:
            while not over.is_set():
                program.work()
        except common.Failure as e:
            failures.append(e)

    worker = threading.Thread(target=load)
    worker.start()
    try:
        with tempfile.TemporaryDirectory(prefix="cozbpf-bench-") as where:
            while done < count and time.monotonic() < stop_at and not failures:
                options = ["-p", "progress"] if done % WITH_POINT == 0 else []
                path = os.path.join(where, f"{done}.jsonl")
                attach(bench, program.pid, options, path)
                if not common.Profile(path).experiments:
                    raise common.Failure("a turn without an experiment")
                done += 1
    finally:
        over.set()
        worker.join()
    if failures:
        raise failures[0]
    return done


def run(bench):
    count = 100 if bench.full else 10
    pieces = 20 if bench.full else 9
    program, other = Program(bench), Program(bench)
    try:
        for p in (program, other):
            p.work()
        before, traces = pace(program, other, pieces), program.trace()
        begin = time.monotonic()
        done = turns(bench, program, count, begin + 240)
        took = time.monotonic() - begin
        program.work()
        after, left = pace(program, other, pieces), program.trace()
    except BaseException:
        for p in (program, other):
            p.process.send_signal(signal.SIGKILL)
            p.process.wait()
        raise
    statuses = program.end(), other.end()
    common.spread_table("pace over another process's", {"before": before, "after": after}, "{:.4f}")
    print(f"    {done} turns in {took:.1f} s")
    change = common.median(after) / common.median(before) - 1
    bench.verdict(done == count and statuses == (0, 0), f"{done} of {count} turns, statuses {statuses}")
    bench.verdict(program.eintr == 0, f"{program.eintr} calls interrupted")
    bench.verdict(program.sums == other.sums and len(other.sums) == 1, f"{len(program.sums | other.sums)} outputs of the same work, 1 is right")
    for what, found in left.items():
        bench.verdict(found == traces[what], f"{what}: " + ("as before" if found == traces[what] else f"{found}, before {traces[what]}"))
    bench.verdict(abs(change) <= BAR, f"throughput after over before: {100 * change:+.2f} %, at most {100 * BAR:g} % either way")
