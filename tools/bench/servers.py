# SPDX-License-Identifier: BSD-2-Clause
"""What counting costs unmodified servers under load on loopback: throughput with cozbpf and without delays, over the native one.

Debian's redis, nginx (one process), memcached and sqlite; those that are not installed are left out. The server has CPU 0, the load CPU 1.
One server under one load is attached to and left again, many times, with native seconds in between. Whatever else the host does only ever slows
down, for some seconds or a tenth of one: so rates are counted in tenths of a second, and of those of a cell, and of the native ones around it, the
90th percentile is compared. Cells that differ in one cause each split the loss; what the kernel's statistics say of each BPF program is printed beside it. A cell
must reach 0.95 if its point took less than 2 % of the run, by what the profile says that its visits cost, else 0.90; slopes alone, at 1 kHz and with a point
that costs nothing, 0.98. `--only redis/slopes` measures that alone. See examples/servers.md."""

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

BAR, BAR_CHEAP, CHEAP, BAR_SLOPES = 0.90, 0.95, 0.02, 0.98
TRACEPOINT = "tracepoint:sock:sock_send_length"  # passed by each send to a socket, since Linux 6.3
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


class Redis:
    """Requests so short that load and server are busy all the time."""

    name = "redis"
    needs = ("redis-server", "redis-benchmark")
    function, call = "processCommand", "syscall:write"
    sampled = "sampled:libc.so.6:write"

    def command(self, port, where):
        return ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", where]

    said = r'"ZADD[^"]*","([0-9.]+)"'

    def load(self, port, seconds):
        requests = str(int(90000 * seconds))
        return ["redis-benchmark", "-p", str(port), "-r", "100000", "-n", requests, "-c", "50", "--csv", *self.request]

    request = ("-t", "zadd")


class RedisScripts(Redis):
    """A request is a script of four commands: points in, place and the ten best out. The load waits for the server."""

    name = "redis, scripts"
    call, sampled = "syscall:writev", "sampled:libc.so.6:writev"  # an answer of several parts
    said = r'[,"]([0-9.]+)"(?:,"[0-9.]+"){6}'
    script = """local points = redis.call('ZINCRBY', 'board', ARGV[1], KEYS[1])
redis.call('HSET', 'player:' .. KEYS[1], 'points', points, 'last', ARGV[1])
return {redis.call('ZREVRANK', 'board', KEYS[1]), redis.call('ZREVRANGE', 'board', 0, 9, 'WITHSCORES')}"""
    request = ("EVAL", script, "1", "__rand_int__", "__rand_int__")


class Nginx:
    name = "nginx"
    needs = ("nginx", "wrk")
    function, call = "ngx_http_free_request", "syscall:writev"
    sampled = "sampled:ngx_writev"

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

    said = r"Requests/sec:\s+([0-9.]+)"

    def load(self, port, seconds):
        return ["wrk", "-t1", "-c100", f"-d{seconds}s", f"http://127.0.0.1:{port}/"]


class Memcached:
    name = "memcached"
    needs = ("memcached",)
    function, call = None, "syscall:sendmsg"  # it is stripped: none of its functions has a name
    sampled = "sampled:libc.so.6:sendmsg"
    options = ("-b", "libc.so*", "--granularity", "function")
    said = r"gets=([0-9.]+)"

    def command(self, port, where):
        return ["memcached", "-u", "nobody", "-l", "127.0.0.1", "-p", str(port), "-t", "1"]

    def load(self, port, seconds):
        return [sys.executable, GETTER, str(port), str(seconds)]


class Sqlite:
    """Ends by itself: it says now and then what time it is, of which it knows the milliseconds. A transaction is twenty transfers and one answer."""

    name = "sqlite"
    needs = ("sqlite3",)
    function, call = "libsqlite3.so.0:sqlite3_column_text", None  # once for each answer; in memory it makes no system calls
    sampled = "sampled:libsqlite3.so.0:sqlite3VdbeExec"
    options = ("-b", "libsqlite3*", "--granularity", "function")
    transactions, transfers, at_once = 6000, 20, 800

    def script(self, seconds):
        """As many seconds of transactions as SETTLE and @seconds, about."""
        yield "CREATE TABLE account(id INTEGER PRIMARY KEY, balance INT, note TEXT); CREATE TABLE log(account INT, at INT);\n"
        yield "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<2000) INSERT INTO account SELECT i, 100, hex(i) FROM n;\n"
        for i in range(int(self.transactions * (SETTLE / 2 + seconds))):
            if i % self.at_once == 0:
                yield "SELECT 'at', julianday('now') * 86400.0;\n"
            a = i * 7919 % 2000 + 1
            yield "BEGIN;\n"
            for id_ in range(a, a + self.transfers):
                yield f"UPDATE account SET balance=balance-1 WHERE id={id_}; INSERT INTO log VALUES({id_},{i});\n"
            yield f"SELECT sum(balance) FROM account WHERE id BETWEEN {a} AND {a + 200}; COMMIT;\n"


SERVERS = (Redis, RedisScripts, Nginx, Memcached, Sqlite)


def pin(pid):
    for task in os.listdir(f"/proc/{pid}/task"):
        os.sched_setaffinity(int(task), {SERVER_CPU})


def programs_run():
    """Of all BPF programs by name: runs and ns."""
    shown = json.loads(subprocess.run(["bpftool", "prog", "show", "-j"], capture_output=True, text=True, check=True).stdout)
    return {p["name"]: (p.get("run_cnt", 0), p.get("run_time_ns", 0)) for p in shown if p.get("name")}


def options_of(server, options):
    delays = [] if "--slopes-only" in options else ["--fixed-speedup", "0"]
    return [*getattr(server, "options", ("--granularity", "function")), *delays, *options]


class Attached:
    """The profiler at work on a process."""

    def __init__(self, bench, server, options, pid, where):
        path = os.path.join(where, "profile.jsonl")
        if os.path.exists(path):
            os.unlink(path)
        self.path, self.has_experiments = path, "--slopes-only" not in options
        command = [bench.cozbpf, "attach", str(pid), "-q", "--no-report", "-o", path, *options_of(server, options)]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def leave(self):
        """What its point took of the run."""
        self.process.send_signal(signal.SIGINT)
        try:
            _, err = self.process.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()
            raise common.Failure("the profiler did not end within 20 s") from None
        if self.process.returncode != 0:
            raise common.Failure(f"status {self.process.returncode}: {(err.strip().splitlines() or ['nothing on stderr'])[-1]}")
        return cost_of(common.Profile(self.path)) if self.has_experiments else 0.0


def cost_of(profile):
    """Of all points' visits, as a share of the run, as the profile says. A few samples may all be elsewhere; else a point must be passed."""
    points = [p for x in profile.experiments for p in x["points"].values()]
    if not any(p["delta"] for p in points) and profile.total("samples") > 500:
        raise common.Failure(f"nothing passed {points[0]['name']}, so that counting it costs nothing" if points else "no point was counted")
    return sum(p["delta"] * p.get("cost_ns", 0) for p in points) / profile.total("elapsed")


SETTLE = 3  # seconds, until names are read, the rate is found and what is not needed rests
WARM = 3  # seconds of load before anything is measured
WINDOW = 0.1  # seconds
QUANTILE = 0.9
LONG = 3600  # seconds: the load is ended before


def segments_sent():
    with open("/proc/net/snmp", encoding="utf-8") as f:
        names, values = [line.split() for line in f if line.startswith("Tcp:")]
    return int(values[names.index("OutSegs")])


def quantile(values):
    return sorted(values)[int(QUANTILE * (len(values) - 1))]


class Serving:
    """A server that runs, and its load. Requests are told by the TCP segments that the machine sends: one has as many as the next."""

    def __init__(self, server):
        self.server, self.load = server, None

    def __enter__(self):
        self.where = tempfile.TemporaryDirectory(prefix="cozbpf-bench-")
        self.port = free_port()
        command = self.server.command(self.port, self.where.name)
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            wait_for(self.port, self.process)
            pin(self.process.pid)
            started, before = time.monotonic(), segments_sent()
            out, _ = common.execute(self.load_command(WARM), 60)
            sent = (segments_sent() - before) / (time.monotonic() - started)
            self.requests = float(re.search(self.server.said, out).group(1)) / sent
            self.load = subprocess.Popen(self.load_command(LONG), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(1)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for process in (self.load, self.process):
            if process:
                process.kill()
                process.wait()
        self.where.cleanup()

    def load_command(self, seconds):
        return ["taskset", "-c", str(LOAD_CPU), *self.server.load(self.port, seconds)]

    def rates(self, seconds):
        """Requests a second from now on, window by window."""
        end, rates = time.monotonic() + seconds, []
        at, n = time.monotonic(), segments_sent()
        while at < end:
            time.sleep(WINDOW)
            now, m = time.monotonic(), segments_sent()
            rates.append(self.requests * (m - n) / (now - at))
            at, n = now, m
        if self.load.poll() is not None or self.process.poll() is not None:
            raise common.Failure(f"{self.server.name}, or its load, ended")
        return rates

    def profiled(self, bench, options, seconds, statistics=None):
        """Rates, and what the point took of the run. @statistics gets the cost of the BPF programs, in shares of one CPU."""
        profiler = Attached(bench, self.server, options, self.process.pid, self.where.name)
        try:
            time.sleep(SETTLE)
            before, start = programs_run() if statistics is not None else {}, time.monotonic()
            rates = self.rates(seconds)
            elapsed = time.monotonic() - start
            for name, (n, ns) in (programs_run() if statistics is not None else {}).items():
                n, ns = n - before.get(name, (0, 0))[0], ns - before.get(name, (0, 0))[1]
                if n > 100:
                    statistics[name] = (n / elapsed, ns / n, ns / elapsed / 1e9)
        except BaseException:
            profiler.process.kill()
            profiler.process.communicate()
            raise
        return rates, profiler.leave()


def beside(bench, server, seconds, rounds):
    """Of each cell, the rates of windows, the native ones around them, and what the point took of the runs."""
    cells, values, natives, costs = cells_of(bench, server), {}, {}, {}
    with Serving(server) as s:
        order = list(cells)
        before = s.rates(seconds)
        for _ in range(rounds):
            for name in order:
                rates, cost = s.profiled(bench, cells[name], seconds)
                values.setdefault(name, []).extend(rates)
                costs.setdefault(name, []).append(cost)
                after = s.rates(seconds)
                natives.setdefault(name, []).extend(before + after)
                before = after
            order = order[1:] + order[:1]
    return values, natives, costs


def worked_off(bench, server, script, options, costs=None):
    """Transactions a second of sqlite, by windows, without those while a profiler settles. @costs gets what the point took of the run."""
    with tempfile.TemporaryDirectory(prefix="cozbpf-bench-") as where:
        command = ["taskset", "-c", str(SERVER_CPU), "sqlite3", ":memory:", f".read {script}"]
        profile = os.path.join(where, "profile.jsonl")
        if options is not None:
            command = bench.profiler(profile, options_of(server, options), command)
        out, _ = common.execute(command, 100)
        if options is not None:
            costs.append(0.0 if "--slopes-only" in options else cost_of(common.Profile(profile)))
        at = [float(x) for x in re.findall(r"^at\|([0-9.]+)$", out, re.M)]
        return [server.at_once / (b - a) for a, b in zip(at, at[1:]) if a > at[0] + SETTLE / 2]


def one_by_one(bench, server, seconds, rounds):
    """As beside(), for a server that is started anew each time."""
    cells, values, natives, costs = cells_of(bench, server), {}, {}, {}
    with tempfile.NamedTemporaryFile("w", prefix="cozbpf-bench-", suffix=".sql") as script:
        script.writelines(server.script(seconds))
        script.flush()
        order = list(cells)
        before = worked_off(bench, server, script.name, None)
        # A window is told to one part in a hundred, the clock's milliseconds; so it takes more of them.
        for _ in range(3 * rounds):
            for name in order:
                values.setdefault(name, []).extend(worked_off(bench, server, script.name, cells[name], costs.setdefault(name, [])))
                after = worked_off(bench, server, script.name, None)
                natives.setdefault(name, []).extend(before + after)
                before = after
            order = order[1:] + order[:1]
    return values, natives, costs


def kernel_has(symbol):
    """Of the kernel's own list, which needs no tracefs to be mounted."""
    with open("/proc/kallsyms", encoding="utf-8") as f:
        return any(line.split()[2] == symbol for line in f)


def cells_of(bench, server):
    """Slopes; and edges and samples, to which each of the others adds its point. Their point costs nothing; one that is never visited would
    not either, but makes experiments longer and longer, and what needs whole ones to come to rest would do so later."""
    cells = {
        "slopes": ["--slopes-only", "--rate", "1000", "-p", server.sampled],
        "edges": ["--rate", "50", "-p", server.sampled],
        "+ sampled": ["-p", server.sampled],
    }
    if server.call and kernel_has("__traceiter_sock_send_length"):
        cells["+ tracepoint"] = ["-p", TRACEPOINT]
    if server.call:
        cells["+ system call"] = ["-p", server.call]
    if server.function:
        cells["+ function"] = ["-p", server.function]
    wanted = [only.partition("/")[2] for only in bench.options.only or () if only.partition("/")[0] in server.name]
    return {name: options for name, options in cells.items() if not wanted or any(w in name for w in wanted)}


def judged(bench, server):
    return [(name, options) for name, options in cells_of(bench, server).items() if name != "edges"]


def measure(bench, server, seconds, rounds):
    values, natives, costs = (one_by_one if isinstance(server, Sqlite) else beside)(bench, server, seconds, rounds)
    all_natives = [n for ns in natives.values() for n in ns]
    rows = [
        [name, *(f"{x:.0f}" for x in (quantile(v), common.median(v), min(v), max(v))), len(v)]
        for name, v in {"native": all_natives, **values}.items()
    ]
    common.table([f"{server.name}, a second", f"{QUANTILE:.0%}", "median", "least", "most", "windows"], rows)
    ratios = {name: quantile(rates) / quantile(natives[name]) for name, rates in values.items()}
    costs = {name: common.median(shares) for name, shares in costs.items() if shares}
    medians = [
        [name, f"{common.median(rates) / common.median(natives[name]):.3f}", f"{ratios[name]:.3f}", f"{100 * costs[name]:.1f}"]
        for name, rates in values.items()
    ]
    common.table(["of native", "median", f"{QUANTILE:.0%}", "point, % of the run"], medians)
    return ratios, costs


def split(ratios):
    """Each cell's loss beyond the one that it adds to."""
    if "edges" not in ratios or "+ sampled" not in ratios:
        return
    rows = [["scheduler edges", 1 - ratios["edges"]], ["sampling", ratios["edges"] - ratios["+ sampled"]]]
    all_told = [name for name in ratios if name not in ("slopes", "edges")]
    rows += [[f"point: {name[2:]}", ratios["+ sampled"] - ratios[name]] for name in all_told[1:]]
    rows += [[f"all, {name[2:]}", 1 - ratios[name]] for name in ("slopes", *all_told) if name in ratios]
    common.table(["loss by cause", "% of native"], [[n, f"{100 * v:.1f}"] for n, v in rows])


def explain(bench, server, seconds):
    """BPF's own statistics, in runs that are not judged, since they cost time as well."""
    path, statistics = "/proc/sys/kernel/bpf_stats_enabled", {}
    with open(path, "r+", encoding="utf-8") as f:
        old = f.read().strip()
        f.seek(0)
        f.write("1")
        f.flush()
        try:
            with Serving(server) as serving:
                for name, options in judged(bench, server):
                    serving.profiled(bench, options, seconds, statistics.setdefault(name, {}))
        finally:
            f.seek(0)
            f.write(old)
            f.flush()
    for name, programs in statistics.items():
        rows = [[n, f"{a:.0f}", f"{b:.0f}", f"{100 * c:.2f}"] for n, (a, b, c) in sorted(programs.items(), key=lambda x: -x[1][2]) if c > 0.0005]
        common.table([f"{name.removeprefix('+ ')}: programs, with statistics", "a second", "ns each", "% of a CPU"], rows)


def run(bench):
    seconds, rounds = (3, 7) if bench.full else (1, 2)
    chosen = [s() for s in SERVERS if not bench.options.only or any(t.partition("/")[0] in s.name for t in bench.options.only)]
    found = [s for s in chosen if all(shutil.which(need) for need in (*s.needs, "taskset"))]
    if not found:
        raise common.Failure("no server is installed: redis-server and redis-tools, nginx and wrk, memcached, or sqlite3")
    for server in found:
        ratios, costs = measure(bench, server, seconds, rounds)
        split(ratios)
        if server.call and shutil.which("bpftool"):
            explain(bench, server, seconds)
        for name, options in judged(bench, server):
            bar = BAR_SLOPES if name == "slopes" else BAR_CHEAP if costs[name] < CHEAP else BAR
            bench.verdict(
                ratios[name] >= bar,
                f"{server.name}, {'slopes' if name == 'slopes' else options[-1]}: {ratios[name]:.3f} of native, at least {bar:g} for a point that took {100 * costs[name]:.1f} %",
            )
