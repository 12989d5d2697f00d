# SPDX-License-Identifier: BSD-2-Clause
"""What counting costs unmodified servers under load on loopback: throughput with cozbpf and without delays, over the native one.

Debian's redis, nginx (one process), memcached and sqlite; those that are not installed are left out. The server has CPU 0, the load CPU 1.
One server is attached to and left again, with native runs in between. Whatever else the host does only ever slows down, for a second or a
tenth of one: so rates are counted in tenths of a second, and of those of a cell, and of the native ones around it, the 90th percentile is
compared. Cells that differ in one cause each split the loss; what the kernel's statistics say of each BPF program is printed beside it. See examples/servers.md."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

import common

BAR, BAR_CHEAP = 0.90, 0.95
CHEAP = "tracepoint:sock:sock_send_length"  # passed by each send to a socket, since Linux 6.3; well under 2 % of the run
NEVER = "tracepoint:sched:sched_process_exit"
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
    function, call = "processCommand", "syscall:write"

    def command(self, port, where):
        return ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", where]

    def load(self, port, seconds):
        requests = str(int(90000 * seconds))
        return loaded(
            ["redis-benchmark", "-p", str(port), "-t", "zadd", "-r", "100000", "-n", requests, "-c", "50", "--csv"], r'"ZADD[^"]*","([0-9.]+)"'
        )


class Nginx:
    name = "nginx"
    needs = ("nginx", "wrk")
    function, call = "ngx_http_free_request", "syscall:writev"

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
        return loaded(["wrk", "-t1", "-c100", f"-d{seconds}s", f"http://127.0.0.1:{port}/"], r"Requests/sec:\s+([0-9.]+)")


class Memcached:
    name = "memcached"
    needs = ("memcached",)
    function, call = None, "syscall:sendmsg"  # it is stripped: none of its functions has a name
    options = ("-b", "libevent*", "--granularity", "function")

    def command(self, port, where):
        return ["memcached", "-u", "nobody", "-l", "127.0.0.1", "-p", str(port), "-t", "1"]

    def load(self, port, seconds):
        return loaded([sys.executable, GETTER, str(port), str(seconds)], r"gets=([0-9.]+)")


class Sqlite:
    """Ends by itself: its throughput is transactions over time."""

    name = "sqlite"
    needs = ("sqlite3",)
    function, call = "libsqlite3.so.0:sqlite3_step", None  # in memory: it makes no system calls
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


def pin(pid):
    for task in os.listdir(f"/proc/{pid}/task"):
        os.sched_setaffinity(int(task), {SERVER_CPU})


def programs_run():
    """Of all BPF programs by name: runs and ns."""
    shown = json.loads(subprocess.run(["bpftool", "prog", "show", "-j"], capture_output=True, text=True, check=True).stdout)
    return {p["name"]: (p.get("run_cnt", 0), p.get("run_time_ns", 0)) for p in shown if p.get("name")}


def options_of(server, options):
    return [*getattr(server, "options", ("--granularity", "function")), "--fixed-speedup", "0", *options]


class Attached:
    """The profiler at work on a process."""

    def __init__(self, bench, server, options, pid, where):
        path = os.path.join(where, "profile.jsonl")
        if os.path.exists(path):
            os.unlink(path)
        command = [bench.cozbpf, "attach", str(pid), "-q", "--no-report", "-o", path, *options_of(server, options)]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def leave(self):
        self.process.send_signal(signal.SIGINT)
        try:
            _, err = self.process.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()
            raise common.Failure("the profiler did not end within 20 s") from None
        if self.process.returncode != 0:
            raise common.Failure(f"status {self.process.returncode}: {(err.strip().splitlines() or ['nothing on stderr'])[-1]}")


SETTLE = 3  # seconds, until names are read, the rate is found and what is not needed rests


WINDOW = 0.1  # seconds
QUANTILE = 0.9


def segments_sent():
    with open("/proc/net/snmp", encoding="utf-8") as f:
        names, values = [line.split() for line in f if line.startswith("Tcp:")]
    return int(values[names.index("OutSegs")])


class Windows(threading.Thread):
    """How many TCP segments a second the machine sends, window by window: a request has as many as the next one."""

    def __init__(self):
        super().__init__(daemon=True)
        self.rates, self.stopped = [], threading.Event()

    def run(self):
        at, n = time.monotonic(), segments_sent()
        while not self.stopped.wait(WINDOW):
            now, m = time.monotonic(), segments_sent()
            self.rates.append((m - n) / (now - at))
            at, n = now, m

    def requests(self, rate):
        """The windows that lie within the load, in requests a second; @rate: of all of it, as the load tells."""
        self.stopped.set()
        self.join()
        inside = self.rates[2:-2] or self.rates
        return [rate * r * len(inside) / sum(inside) for r in inside]


def quantile(values):
    return sorted(values)[int(QUANTILE * (len(values) - 1))]


class Serving:
    """A server that runs."""

    def __init__(self, server):
        self.server = server

    def __enter__(self):
        self.where = tempfile.TemporaryDirectory(prefix="cozbpf-bench-")
        self.port = free_port()
        command = self.server.command(self.port, self.where.name)
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            wait_for(self.port, self.process)
        except BaseException:
            self.__exit__()
            raise
        pin(self.process.pid)
        self.server.load(self.port, 1)
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.where.cleanup()

    def native(self, seconds):
        windows = Windows()
        windows.start()
        return windows.requests(self.server.load(self.port, seconds))

    def profiled(self, bench, options, seconds, statistics=None):
        """@statistics gets the cost of the BPF programs, in shares of one CPU."""
        profiler = Attached(bench, self.server, options, self.process.pid, self.where.name)
        try:
            self.server.load(self.port, SETTLE)
            before, start = programs_run() if statistics is not None else {}, time.monotonic()
            rates = self.native(seconds)
            elapsed = time.monotonic() - start
            for name, (n, ns) in (programs_run() if statistics is not None else {}).items():
                n, ns = n - before.get(name, (0, 0))[0], ns - before.get(name, (0, 0))[1]
                if n > 100:
                    statistics[name] = (n / elapsed, ns / n, ns / elapsed / 1e9)
            return rates
        finally:
            profiler.leave()


def beside(bench, server, seconds, rounds):
    """Of each cell, the rates of windows, and the native ones around them."""
    cells, values, natives = cells_of(server), {}, {}
    with Serving(server) as s:
        order = list(cells)
        for _ in range(rounds):
            before = s.native(seconds)
            for name in order:
                values.setdefault(name, []).extend(s.profiled(bench, cells[name], seconds))
                after = s.native(seconds)
                natives.setdefault(name, []).extend(before + after)
                before = after
            order = order[1:] + order[:1]
    return values, natives


def worked_off(bench, server, options):
    """Transactions a second of sqlite, by the time from its first to its last one."""
    with tempfile.TemporaryDirectory(prefix="cozbpf-bench-") as where:
        script = os.path.join(where, "script.sql")
        with open(script, "w", encoding="utf-8") as f:
            f.write("SELECT 'from', julianday('now') * 86400.0;\n")
            f.writelines(server.script())
            f.write("SELECT 'to', julianday('now') * 86400.0;\n")
        command = ["taskset", "-c", str(SERVER_CPU), "sqlite3", ":memory:", f".read {script}"]
        if options is not None:
            command = bench.profiler(os.path.join(where, "profile.jsonl"), options_of(server, options), command)
        out, _ = common.execute(command, 100)
        at = {k: float(v) for k, v in re.findall(r"^(from|to)\|([0-9.]+)$", out, re.M)}
        return server.transactions / (at["to"] - at["from"])


def cells_of(server):
    """The last of the first two is what each of the others adds its point to."""
    cells = {"edges": ["--rate", "50", "-p", NEVER], "+ sampling": ["-p", NEVER]}
    if server.call and os.path.isdir("/sys/kernel/tracing/events/sock/sock_send_length"):
        cells["+ tracepoint"] = ["-p", CHEAP]
    if server.call:
        cells["+ system call"] = ["-p", server.call]
    if server.function:
        cells["+ function"] = ["-p", server.function]
    return cells


def measure(bench, server, seconds, rounds):
    if isinstance(server, Sqlite):
        cells = {"native": None, **cells_of(server)}
        values = common.interleaved(rounds, {name: lambda o=o: worked_off(bench, server, o) for name, o in cells.items()})
        natives = {name: values["native"] for name in cells if name != "native"}
        all_natives = values.pop("native")
    else:
        values, natives = beside(bench, server, seconds, rounds)
        all_natives = [n for ns in natives.values() for n in ns]
    rows = [
        [name, *(f"{x:.0f}" for x in (quantile(v), common.median(v), min(v), max(v))), len(v)]
        for name, v in {"native": all_natives, **values}.items()
    ]
    common.table([f"{server.name}, a second", f"{QUANTILE:.0%}", "median", "least", "most", "windows"], rows)
    ratios = {name: quantile(rates) / quantile(natives[name]) for name, rates in values.items()}
    medians = [[name, f"{common.median(rates) / common.median(natives[name]):.3f}", f"{ratios[name]:.3f}"] for name, rates in values.items()]
    common.table(["of native", "median", f"{QUANTILE:.0%}"], medians)
    return ratios


def split(ratios):
    """Each cell's loss beyond the one that it adds to."""
    rows = [["scheduler edges", 1 - ratios["edges"]], ["sampling", ratios["edges"] - ratios["+ sampling"]]]
    for name in list(ratios)[2:]:
        rows.append([f"point: {name[2:]}", ratios["+ sampling"] - ratios[name]])
    rows += [[f"all, {name[2:]}", 1 - ratios[name]] for name in list(ratios)[2:]]
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
            with Serving(server) as serving:
                serving.profiled(bench, ["-p", server.call], seconds, statistics)
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
        if server.call and shutil.which("bpftool"):
            explain(bench, server, seconds)
        for name, bar, point in (("+ tracepoint", BAR_CHEAP, CHEAP), ("+ system call", BAR, server.call), ("+ function", BAR, server.function)):
            if name in ratios:
                bench.verdict(ratios[name] >= bar, f"{server.name}, {point}: {ratios[name]:.3f} of native, at least {bar:g}")
