# SPDX-License-Identifier: BSD-2-Clause
"""What the benchmarks share: runs with and without the profiler, profiles, tables, verdicts, and a warning when others use the CPUs."""

import argparse
import json
import os
import re
import statistics
import subprocess
import tempfile
import time

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
BUSY_SHARE = 0.03  # of all CPUs, in the last second
TICKS = os.sysconf("SC_CLK_TCK")


class Failure(Exception):
    """The benchmark could not be measured."""


def numbers_in(text):
    """key=value pairs of a program's output; the last one of a name wins."""
    return {k: float(v) for k, v in re.findall(r"(\w+)=(-?[0-9.]+(?:e[-+]?\d+)?)\b", text)}


def line_of(source, marker):
    """FILE:LINE of the line of a source file, relative to the tree, that says /* LINE:marker */."""
    with open(os.path.join(ROOT, source), encoding="utf-8") as f:
        found = [n for n, text in enumerate(f, 1) if f"/* LINE:{marker} */" in text]
    if len(found) != 1:
        raise Failure(f"{source} has {len(found)} lines marked LINE:{marker}")
    return f"{os.path.basename(source)}:{found[0]}"


def cpu_ticks():
    """CPU time so far of each process, by id."""
    used = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as f:
                fields = f.read().rpartition(")")
        except OSError:
            continue
        used[int(name)] = (sum(int(x) for x in fields[2].split()[11:13]), fields[0].partition("(")[2])
    return used


def warn_if_busy():
    """Looks for a second who else uses the CPUs, and says so; the share."""
    before, t0 = cpu_ticks(), time.monotonic()
    time.sleep(1)
    after, elapsed = cpu_ticks(), time.monotonic() - t0
    used = {p: (n - before.get(p, (0, ""))[0], name) for p, (n, name) in after.items() if p != os.getpid()}
    share = sum(n for n, _ in used.values()) / TICKS / elapsed / os.cpu_count()
    if share > BUSY_SHARE:
        most = ", ".join(name for n, name in sorted(used.values(), reverse=True)[:3] if n)
        print(f"    WARNING: other processes use {100 * share:.0f} % of the CPUs ({most}): the figures are not to be trusted")
    return share


def execute(command, limit):
    """(stdout, stderr) of a command that must succeed within `limit` seconds."""
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            out, err = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            process.terminate()  # the profiler ends its program as well
            try:
                process.communicate(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
            raise Failure(f"no end after {limit:.0f} s: {' '.join(command)}") from None
    if process.returncode != 0:
        raise Failure(f"status {process.returncode}: {(err.strip().splitlines() or ['nothing on stderr'])[-1]}")
    return out, err


def compiled(name, path, flags=()):
    """Builds a program of tools/bench/programs."""
    source = os.path.join(ROOT, "tools", "bench", "programs", f"{name}.c")
    execute(["gcc", "-O2", "-g", "-pthread", *flags, source, "-o", path], 60)


class Profile:
    """Experiments (each with "points" by name), sums over them."""

    def __init__(self, path):
        self.experiments = []
        with open(path, encoding="utf-8") as lines:
            for line in lines:
                record = json.loads(line)
                if record["type"] == "experiment":
                    self.experiments.append({**record, "points": {}})
                elif record["type"].endswith("-point"):
                    self.experiments[-1]["points"][record["name"]] = record
        if not self.experiments:
            raise Failure("the run has no experiment")

    def total(self, key):
        return sum(x.get(key, 0) for x in self.experiments)


class Bench:
    """Options, and runs of the build's programs with and without the profiler."""

    def __init__(self, options):
        self.options = options
        self.full = options.full
        self.payers = options.pay.split(",")
        self.cozbpf = options.cozbpf or os.path.join(options.build, "user", "cmd", "cozbpf")
        self.failed = False

    def program(self, kind, name):
        """The path of a program of tests/truth or tests/e2e."""
        path = os.path.join(self.options.build, *{"truth": ("tests", "truth"), "e2e": ("tests", "e2e", "programs")}[kind], name)
        if not os.access(path, os.X_OK):
            raise Failure(f"{path} is not there: build it first, or say --build")
        return path

    def native(self, command, limit=300):
        return execute(command, limit)

    def profiler(self, path, options, command):
        return [self.cozbpf, "run", "--keep-root", "-q", "--no-report", "-o", path, *options, "--", *command]

    def profiled(self, options, command, limit=600):
        """(stdout, the profile) of a run."""
        with tempfile.TemporaryDirectory(prefix="cozbpf-bench-") as where:
            path = os.path.join(where, "profile.jsonl")
            out, _ = execute(self.profiler(path, options, command), limit)
            return out, Profile(path)

    def timed(self, options, command, limit=600):
        """stdout and stderr only: of a run whose profile does not matter, and may be empty."""
        with tempfile.TemporaryDirectory(prefix="cozbpf-bench-") as where:
            return execute(self.profiler(os.path.join(where, "profile.jsonl"), options, command), limit)

    def calibration(self):
        """Iterations in a microsecond, once for all runs that are compared."""
        if not hasattr(self, "per_us"):
            said, _ = self.native([self.program("truth", "busy"), "--calibrate"], 30)
            self.per_us = f"{numbers_in(said)['per_us']:.3f}"
        return self.per_us

    def verdict(self, good, what):
        print(f"    {'PASS' if good else 'FAIL'}: {what}", flush=True)
        self.failed |= not good


def interleaved(rounds, cells):
    """Measures every cell in turn, `rounds` times, after one round that does not count; {name: values}. What is compared meets the same
    weather, and the order changes from round to round."""
    values = {name: [] for name in cells}
    order = list(cells)
    for turn in range(rounds + 1):
        for name in order:
            value = cells[name]()
            if turn > 0:
                values[name].append(value)
        order = order[1:] + order[:1]
    return values


def median(values):
    return statistics.median(values)


def table(head, rows):
    widths = [max(len(str(r[i])) for r in [head, *rows]) for i in range(len(head))]
    for row in [head, *rows]:
        cells = [str(c).ljust(w) if i == 0 else str(c).rjust(w) for i, (c, w) in enumerate(zip(row, widths))]
        print("    " + "  ".join(cells).rstrip(), flush=True)


def spread_table(head, values, form="{:.3f}"):
    """One row for each cell: median, smallest, largest, number of runs."""
    rows = [[n, form.format(median(v)), form.format(min(v)), form.format(max(v)), len(v)] for n, v in values.items()]
    table([head, "median", "least", "most", "runs"], rows)


def main(benchmarks, description):
    p = argparse.ArgumentParser(description=description)
    p.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(benchmarks)} (all)")
    p.add_argument("--full", action="store_true", help="as long as the bars ask for; else short, for a first impression")
    p.add_argument("--pay", default="sleep,hold", help="payers to compare, comma between (sleep,hold)")
    p.add_argument("--build", default=os.path.join(ROOT, "build"), metavar="DIR")
    p.add_argument("--cozbpf", metavar="PATH", help="another executable than the build's")
    p.add_argument("--only", action="append", metavar="TEXT", help="cells whose names contain TEXT (repeatable), where there are many")
    p.add_argument("--minutes", type=float, help="soak, duty: how long (2; with --full 45)")
    p.add_argument("--cycles", type=int, help="soak: end after so many, if that is earlier (with --full 5000)")
    options = p.parse_args()
    unknown = [n for n in options.names if n not in benchmarks]
    if unknown:
        p.error(f"no such benchmark: {', '.join(unknown)}; there are {', '.join(benchmarks)}")
    if set(options.pay.split(",")) - {"auto", "sleep", "hold", "spin"}:
        p.error("payers are auto, sleep, hold, spin")
    bench = Bench(options)
    for name in options.names or benchmarks:
        module = benchmarks[name]
        print(f"{name}: {(module.__doc__ or '').strip().splitlines()[0]}", flush=True)
        warn_if_busy()
        try:
            module.run(bench)
        except Failure as e:
            bench.verdict(False, str(e))
    return 1 if bench.failed else 0
