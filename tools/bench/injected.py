# SPDX-License-Identifier: BSD-2-Clause
"""What is said of a server that shares two CPUs with its load: by `run`, which lets its threads sleep; by `attach` and by `system --cgroup`, without a
handler in the process, and with --inject=auto; and by `validate`, which really slows the line. With a handler the effects must be within 5 points of those of
`run`; without, no effect may be told that is off by more than its interval."""

import contextlib
import json
import math
import os
import re
import shutil
import subprocess
import tempfile

import common
import servers

BAR = 0.05
SPEEDUPS = ("25", "50", "75")
GROUP = "/sys/fs/cgroup/{}cozbpf-bench"


class Memcached(servers.Memcached):
    line = "sendmsg"
    point = f"answers={servers.TRACEPOINT}"


class Redis(servers.Redis):
    """A function that has more than a tenth of the samples."""

    options = ("--granularity", "function")
    line = "zslInsert"
    point = "answers=syscall:write"


@contextlib.contextmanager
def loaded(server, port, process):
    servers.wait_for(port, process)
    load = subprocess.Popen(server.load(port, servers.LONG), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        load.kill()
        load.wait()


@contextlib.contextmanager
def grouped(pid):
    """The path of a control group that @pid is in for a while, as `system` takes it."""
    unified = "unified/" if os.path.isdir(GROUP.format("unified/").rsplit("/", 1)[0]) else ""
    group = GROUP.format(unified)
    with open(f"/proc/{pid}/cgroup", encoding="utf-8") as f:
        before = next(line.strip().split("::")[1] for line in f if line.startswith("0::"))
    os.mkdir(group)
    try:
        with open(os.path.join(group, "cgroup.procs"), "w", encoding="utf-8") as f:
            f.write(str(pid))
        yield group
    finally:
        with open(f"{os.path.dirname(group)}{before}/cgroup.procs", "w", encoding="utf-8") as f:
            f.write(str(pid))
        os.rmdir(group)


def reported(bench, path, line):
    """{speedup: (effect, low, high)} that the report tells of the line, and for which part of the time sleepers were held."""
    report = json.loads(common.execute([bench.cozbpf, "report", "--json", path], 60)[0])
    at = next(row for point in report["points"] for row in point["lines"] if row["selected"] == line)["curve"]["at"]
    told = {f"{100 * c['speedup']:.0f}": (c["effect"], c["low"], c["high"]) for c in at if c["effect"] is not None}
    of = [x for x in common.Profile(path).experiments if x["speedup"] > 0]
    return told, sum(x.get("held_asleep", 0) for x in of) / sum(x["elapsed"] for x in of)


def options_of(server, seconds):
    return ["-q", "--no-report", *server.options, "-p", server.point, "-l", server.line, "--speedups", ",".join(SPEEDUPS), "-d", str(seconds)]


def started(bench, server, seconds):
    with tempfile.TemporaryDirectory(prefix="cozbpf-bench-") as where:
        path, port = os.path.join(where, "profile.jsonl"), servers.free_port()
        command = [bench.cozbpf, "run", "--keep-root", "-o", path, *options_of(server, seconds), "--", *server.command(port, where)]
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            with loaded(server, port, process):
                process.wait(seconds + 60)
        return reported(bench, path, server.line)


def attached(bench, server, seconds, inject, by_group):
    with tempfile.TemporaryDirectory(prefix="cozbpf-bench-") as where:
        path, port = os.path.join(where, "profile.jsonl"), servers.free_port()
        with subprocess.Popen(server.command(port, where), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            try:
                with loaded(server, port, process), grouped(process.pid) if by_group else contextlib.nullcontext() as group:
                    who = ["system", "--cgroup", group] if by_group else ["attach", str(process.pid)]
                    common.execute([bench.cozbpf, *who, "-o", path, "--inject", inject, *options_of(server, seconds)], seconds + 60)
            finally:
                process.kill()
        return reported(bench, path, server.line)


def validated(bench, server, seconds):
    """The last line that validate says, and its table."""
    with tempfile.TemporaryDirectory(prefix="cozbpf-bench-") as where:
        port = servers.free_port()
        command = [bench.cozbpf, "validate", "--keep-root", "-q", *server.options, "-p", server.point, "-l", server.line, "-d", str(seconds), "--",
                   *server.command(port, where)]  # fmt: skip
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
            with loaded(server, port, process):
                return process.communicate(timeout=seconds + 60)[0]


def half(value):
    return (value[2] - value[1]) / 2


def cell(value):
    return "-" if value is None else f"{100 * value[0]:.1f} ±{100 * half(value):.1f}"


def run(bench):
    seconds = 60 if bench.full else 20
    chosen = [s() for s in (Memcached, Redis) if not bench.options.only or any(t in s.name for t in bench.options.only)]
    found = [s for s in chosen if all(shutil.which(need) for need in s.needs)]
    if not found:
        raise common.Failure("no server is installed: memcached, or redis-server and redis-tools")
    for server in found:
        told = {"run": started(bench, server, seconds)}
        for inject in ("never", "auto"):
            told[f"attach, {inject}"] = attached(bench, server, seconds, inject, False)
            told[f"system --cgroup, {inject}"] = attached(bench, server, seconds, inject, True)
        rows = [[name, *(cell(effects.get(s)) for s in SPEEDUPS), f"{100 * held:.1f} %"] for name, (effects, held) in told.items()]
        common.table([f"{server.name}, {server.line}", *(f"{s} %" for s in SPEEDUPS), "held asleep"], rows)
        said = validated(bench, server, seconds)
        print("\n".join(f"    {line}" for line in said.strip().splitlines() if re.match(r"^ *(measured|predicted|gap|agrees|differs|undecided|cannot)", line)))
        truth = told.pop("run")[0]
        for name, (effects, _) in told.items():
            off = max((abs(effects[s][0] - truth[s][0]) for s in SPEEDUPS if s in effects and s in truth), default=None)
            if name.endswith("auto"):
                bench.verdict(off is not None and off <= BAR, f"{server.name}, {name}: {100 * (off or 1):.1f} points from run, at most {100 * BAR:g}")
                continue
            wrong = [s for s in SPEEDUPS if s in effects and s in truth and abs(effects[s][0] - truth[s][0]) > math.hypot(half(effects[s]), half(truth[s]))]
            bench.verdict(not wrong, f"{server.name}, {name}: {'nothing is told' if off is None else f'{100 * off:.1f} points from run, by both intervals'}")
