# SPDX-License-Identifier: BSD-2-Clause
"""What counting costs unmodified servers under load on loopback: throughput with cozbpf and without delays, over the native one.

Debian's redis, nginx (one process), memcached and sqlite; those that are not installed are left out. The server has CPU 0, the load CPU 1.
Cells that differ in one cause each split the loss; what the kernel's statistics say of each BPF program is printed beside it.
See examples/servers.md."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import common

BAR, BAR_CHEAP = 0.90, 0.95
SERVER_CPU, LOAD_CPU = 0, os.cpu_count() - 1
GETTER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs", "getter.py")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_for(port, process):
    for _ in range(200):
        if process.poll() is not None:
            raise common.Failure(f"the server ended at once: {' '.join(process.args)}")
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise common.Failure(f"nobody listens at port {port}")


def loaded(command, pattern):
    """The rate that a load generator prints."""
    out, _ = common.execute(["taskset", "-c", str(LOAD_CPU), *command], 60)
    return float(re.search(pattern, out).group(1))


class Redis:
    name = "redis"
    needs = ("redis-server", "redis-benchmark")
    function, cheap = "processCommand", "syscall:write"

    def command(self, port, where):
        return ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", where]

    def load(self, port, seconds):
        requests = str(int(90000 * seconds))
        return loaded(
            ["redis-benchmark", "-p", str(port), "-t", "zadd", "-r", "100000", "-n", requests, "-c", "20", "--csv"], r'"ZADD[^"]*","([0-9.]+)"'
        )


class Nginx:
    name = "nginx"
    needs = ("nginx", "wrk")
    function, cheap = "ngx_http_free_request", "syscall:writev"

    def command(self, port, where):
        os.chmod(where, 0o755)
        with open(os.path.join(where, "index.html"), "w", encoding="utf-8") as f:
            f.write("hello\n" * 100)
        with open(os.path.join(where, "nginx.conf"), "w", encoding="utf-8") as f:
            f.write(
                f"daemon off; master_process off; pid {where}/pid; error_log {where}/error.log;\n"
                f"events {{ worker_connections 512; }}\n"
                f"http {{ access_log off; keepalive_requests 1000000000; server {{ listen 127.0.0.1:{port}; root {where}; }} }}\n"
            )
        return ["nginx", "-p", where, "-c", os.path.join(where, "nginx.conf")]

    def load(self, port, seconds):
        return loaded(["wrk", "-t1", "-c20", f"-d{seconds}s", f"http://127.0.0.1:{port}/"], r"Requests/sec:\s+([0-9.]+)")


class Memcached:
    name = "memcached"
    needs = ("memcached",)
    function, cheap = None, "syscall:sendmsg"  # it is stripped: none of its functions has a name
    options = ("-b", "libevent*", "--granularity", "function")

    def command(self, port, where):
        return ["memcached", "-u", "nobody", "-l", "127.0.0.1", "-p", str(port), "-t", "1"]

    def load(self, port, seconds):
        return loaded([sys.executable, GETTER, str(port), str(seconds)], r"gets=([0-9.]+)")


class Sqlite:
    """Ends by itself: its throughput is transactions over time."""

    name = "sqlite"
    needs = ("sqlite3",)
    function, cheap = "libsqlite3.so.0:sqlite3_step", None  # in memory: it makes no system calls
    options = ("-b", "libsqlite3*", "--granularity", "function")
    transactions = 20000

    def script(self):
        yield "CREATE TABLE account(id INTEGER PRIMARY KEY, balance INT, note TEXT); CREATE TABLE log(account INT, at INT);\n"
        yield "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<2000) INSERT INTO account SELECT i, 100, hex(i) FROM n;\n"
        for i in range(self.transactions):
            a = i * 7919 % 2000 + 1
            yield f"UPDATE account SET balance=balance-1 WHERE id={a}; INSERT INTO log VALUES({a},{i});\n"
            yield f"SELECT sum(balance) FROM account WHERE id BETWEEN {a} AND {a + 200};\n"


SERVERS = (Redis, Nginx, Memcached, Sqlite)


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="utf-8") as f:
        return [int(x) for x in f.read().split()]


def pin(pid):
    for task in os.listdir(f"/proc/{pid}/task"):
        os.sched_setaffinity(int(task), {SERVER_CPU})


def programs_run():
    """Of all BPF programs by name: runs and ns."""
    shown = json.loads(subprocess.run(["bpftool", "prog", "show", "-j"], capture_output=True, text=True, check=True).stdout)
    return {p["name"]: (p.get("run_cnt", 0), p.get("run_time_ns", 0)) for p in shown if p.get("name")}


def profiler(bench, server, options, where, command):
    scope = getattr(server, "options", ("--granularity", "function"))
    return bench.profiler(os.path.join(where, "profile.jsonl"), [*scope, "--fixed-speedup", "0", *options], command)


def answered(bench, server, options, seconds, statistics=None):
    """Requests a second: of the server alone, or under the profiler. @statistics gets the cost of its BPF programs, in shares of one CPU."""
    with tempfile.TemporaryDirectory(prefix="cozbpf-bench-") as where:
        port = free_port()
        command = server.command(port, where)
        if options is not None:
            command = profiler(bench, server, options, where, command)
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            try:
                wait_for(port, process)
                pin(process.pid if options is None else children(process.pid)[0])
                server.load(port, 1 if options is None else 2)  # until names are read and unused clocks rest
                before, start = programs_run() if statistics is not None else {}, time.monotonic()
                rate = server.load(port, seconds)
                if statistics is not None:
                    elapsed = time.monotonic() - start
                    for name, (n, ns) in programs_run().items():
                        n, ns = n - before.get(name, (0, 0))[0], ns - before.get(name, (0, 0))[1]
                        if n > 100:
                            statistics[name] = (n / elapsed, ns / n, ns / elapsed / 1e9)
                return rate
            finally:
                process.send_signal(signal.SIGTERM)
                try:
                    process.wait(20)
                except subprocess.TimeoutExpired:
                    process.kill()


def worked_off(bench, server, options):
    """Transactions a second of sqlite, by the time from its first to its last one."""
    with tempfile.TemporaryDirectory(prefix="cozbpf-bench-") as where:
        script = os.path.join(where, "script.sql")
        with open(script, "w", encoding="utf-8") as f:
            f.write("SELECT 'from', julianday('now') * 86400.0;\n")
            f.writelines(server.script())
            f.write("SELECT 'to', julianday('now') * 86400.0;\n")
        command = ["taskset", "-c", str(SERVER_CPU), "sqlite3", ":memory:", f".read {script}"]
        out, _ = common.execute(command if options is None else profiler(bench, server, options, where, command), 100)
        at = {k: float(v) for k, v in re.findall(r"^(from|to)\|([0-9.]+)$", out, re.M)}
        return server.transactions / (at["to"] - at["from"])


def cells_of(server):
    idle = ["-p", "syscall:acct"]  # a point that is never passed
    cells = {"native": None, "edges": ["--rate", "50", *idle], "+ sampling": ["--rate", "2000", *idle]}
    if server.function:
        cells["+ function"] = ["--rate", "2000", "-p", server.function]
    if server.cheap:
        cells["+ system call"] = ["--rate", "2000", "-p", server.cheap]
        cells["as it comes"] = ["-p", server.cheap]
    else:
        cells["as it comes"] = ["-p", server.function]
    return cells


def measure(bench, server, seconds, rounds):
    def cell(options):
        return worked_off(bench, server, options) if isinstance(server, Sqlite) else answered(bench, server, options, seconds)

    values = common.interleaved(rounds, {name: lambda o=o: cell(o) for name, o in cells_of(server).items()})
    common.spread_table(f"{server.name}, a second", values, "{:.0f}")
    return {name: common.median([v / n for v, n in zip(rates, values["native"])]) for name, rates in values.items()}


def split(ratios):
    """Each cell's loss beyond the one that it adds to."""
    ratios = dict(ratios)
    rows = [["scheduler edges", 1 - ratios["edges"]], ["sampling, 2000 a second", ratios["edges"] - ratios["+ sampling"]]]
    for name in ("+ function", "+ system call"):
        if name in ratios:
            rows.append([f"point: {name[2:]}", ratios["+ sampling"] - ratios[name]])
    common.table(["loss by cause", "% of native"], [[n, f"{100 * v:.1f}"] for n, v in rows])


def explain(bench, server, seconds):
    """BPF's own statistics, in a run that is not judged, since they cost time as well."""
    path, statistics = "/proc/sys/kernel/bpf_stats_enabled", {}
    with open(path, "r+", encoding="utf-8") as f:
        old = f.read().strip()
        f.seek(0)
        f.write("1")
        f.flush()
        try:
            answered(bench, server, ["-p", server.cheap], seconds, statistics)
        finally:
            f.seek(0)
            f.write(old)
            f.flush()
    rows = sorted(statistics.items(), key=lambda x: -x[1][2])
    common.table(["BPF program, with statistics", "a second", "ns each", "% of a CPU"], [[n, f"{a:.0f}", f"{b:.0f}", f"{100 * c:.2f}"] for n, (a, b, c) in rows])


def run(bench):
    seconds, rounds = (3, 7) if bench.full else (1, 3)
    chosen = [s() for s in SERVERS if not bench.options.only or any(t in s.name for t in bench.options.only)]
    found = [s for s in chosen if all(shutil.which(need) for need in (*s.needs, "taskset"))]
    if not found:
        raise common.Failure("no server is installed: redis-server and redis-tools, nginx and wrk, memcached, or sqlite3")
    for server in found:
        ratios = measure(bench, server, seconds, rounds)
        split(ratios)
        if server.cheap and shutil.which("bpftool"):
            explain(bench, server, seconds)
        if server.function:
            bench.verdict(ratios["+ function"] >= BAR, f"{server.name}, {server.function}: {ratios['+ function']:.3f} of native, at least {BAR:g}")
        if server.cheap:
            bench.verdict(
                ratios["+ system call"] >= BAR_CHEAP, f"{server.name}, {server.cheap}: {ratios['+ system call']:.3f} of native, at least {BAR_CHEAP:g}"
            )
        bench.verdict(ratios["as it comes"] >= BAR, f"{server.name}, rate by itself: {ratios['as it comes']:.3f} of native, at least {BAR:g}")
