# SPDX-License-Identifier: BSD-2-Clause
"""Experiments at a duty cycle of 2 %, with lines alone, beside a service whose load varies by a factor of three: what they say of its bottleneck after so many minutes, and what
they cost it. With two builds that take turns, likewise.

The truth is the service with really less work under its lock, over whole cycles of its load. --minutes says how long each of both takes."""

import json
import os
import subprocess
import tempfile
import time

import common

DUTY = 2  # percent
OFF, WIDE = 3.0, 3.0  # points
LOSS = 0.05
PERCENT = 50
CYCLE = 60  # seconds, of the load
TURN = 300  # of a build


class Group:
    """A control group of version 2 for the service."""

    def __enter__(self):
        mounts = subprocess.run(["findmnt", "-nt", "cgroup2", "-o", "TARGET"], stdout=subprocess.PIPE, check=False, text=True).stdout.split()
        if not mounts:
            raise common.Failure("there are no control groups of version 2")
        self.path = os.path.join(mounts[0], f"cozbpf-bench-{os.getpid()}")
        os.mkdir(self.path)
        return self

    def join(self):
        with open(os.path.join(self.path, "cgroup.procs"), "w", encoding="ascii") as f:
            f.write(str(os.getpid()))

    def __exit__(self, *_):
        time.sleep(0.5)
        os.rmdir(self.path)


def serve(program, seconds, percent=0, group=None):
    """Requests a second."""
    said = subprocess.run([program, str(seconds), str(percent)], stdout=subprocess.PIPE, check=True, text=True, preexec_fn=group.join if group else None).stdout
    numbers = common.numbers_in(said)
    return numbers["requests"] / numbers["elapsed_ns"] * 1e9


def truth(program, rounds):
    """What really less work is worth, in percent of the time per request; and requests a second as it is."""
    values = common.interleaved(rounds, {p: (lambda p=p: serve(program, CYCLE, p)) for p in (0, PERCENT)})
    return 100 * (1 - common.median(values[0]) / common.median(values[PERCENT])), values[0]


def told(bench, database, build):
    """(effect, half-width, experiments) of the bottleneck at PERCENT, in points."""
    said = json.loads(common.execute([bench.cozbpf, "report", "--db", database, "--json", "--build-id", build], 60)[0])
    place = common.line_of("tools/bench/programs/service.c", "bottleneck")
    lines = [x for x in said["points"][0]["lines"] if x["selected"].endswith(place)]
    at = next((c for x in lines for c in x["curve"]["at"] if round(100 * c["speedup"]) == PERCENT), None)
    if not at or at["effect"] is None:
        raise common.Failure(f"nothing is said of {place}")
    return 100 * at["effect"], 50 * (at["high"] - at["low"]), lines[0]["experiments"]


def build_id(program):
    return subprocess.run(["readelf", "-n", program], stdout=subprocess.PIPE, check=True, text=True).stdout.split("Build ID: ")[1].split()[0]


def measure(bench, where, programs, minutes, wanted):
    database = os.path.join(where, "db-" + "-".join(os.path.basename(p) for p in programs))
    with Group() as group:
        points = [w for p in programs for w in ("-p", f"{os.path.basename(p)}={p}:served")]
        command = [bench.cozbpf, "collect", "--db", database, "--cgroup", group.path, "--experiments", f"{DUTY}%", "--what", "on-cpu", *points[:2]]
        rates = {p: [] for p in programs}
        collector = None
        end = time.monotonic() + 60 * minutes
        turn = 0
        try:
            while time.monotonic() < end:
                program = programs[turn % len(programs)]
                turn += 1
                # One process of the collector for each build: its point is in that file.
                command[-1] = f"served={program}:served"
                seconds = min(TURN, max(CYCLE, end - time.monotonic())) // CYCLE * CYCLE
                collector = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                rates[program].append(serve(program, seconds, group=group))
                if collector.poll() is not None:
                    raise common.Failure(f"the collector has ended with status {collector.returncode}")
                collector.terminate()
                collector.wait(timeout=60)
        finally:
            if collector and collector.poll() is None:
                collector.kill()
    rows = []
    for p in programs:
        effect, half, n = told(bench, database, build_id(p))
        real, native = wanted[p]
        rows.append([os.path.basename(p), f"{real:.1f} %", f"{effect:.1f} +-{half:.1f}", n, f"{common.median(native):.0f}", f"{common.median(rates[p]):.0f}"])
        bench.verdict(abs(effect - real) <= OFF, f"{os.path.basename(p)}: {effect:.1f} for {real:.1f} %, within {OFF:g} points")
        bench.verdict(half <= WIDE, f"{os.path.basename(p)}: +-{half:.1f}, at most {WIDE:g} points")
        loss = 1 - common.median(rates[p]) / common.median(native)
        bench.verdict(loss <= LOSS, f"{os.path.basename(p)}: {100 * loss:.2f} % fewer requests, at most {100 * LOSS:g} %")
    common.table([f"{minutes:g} min", f"really at {PERCENT} %", "told", "experiments", "requests/s alone", "beside experiments"], rows)


def run(bench):
    minutes = bench.options.minutes or (60 if bench.full else 4)
    with tempfile.TemporaryDirectory(prefix="cozbpf-bench-") as where:
        os.chmod(where, 0o755)
        programs = []
        for name, flags in (("service", []), ("other", ["-DOTHER"])):
            programs.append(os.path.join(where, name))
            common.compiled("service", programs[-1], flags)
        wanted = {p: truth(p, 5 if bench.full else 1) for p in programs}
        measure(bench, where, programs[:1], minutes, wanted)
        measure(bench, where, programs, minutes, wanted)
