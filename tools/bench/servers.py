# SPDX-License-Identifier: BSD-2-Clause
"""What counting costs unmodified servers under load on loopback: their throughput with cozbpf and without delays, over the native one.

With a point and with the sampling alone (bar: 90 %), and with samples for a point, or one under 2 % of the run (95 %). Servers that are not
installed (redis-server and redis-tools, nginx and apache2-utils, memcached) are left out. See examples/servers.md."""

import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time

import common

BAR = 0.90


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_for(port, process):
    for _ in range(200):
        if process.poll() is not None:
            raise common.Failure(f"the server ended at once: {process.args}")
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise common.Failure(f"nobody listens at port {port}")


class Redis:
    name = "redis-server"
    needs = ("redis-server", "redis-benchmark")
    point = "processCommand"

    def command(self, port, where):
        return ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", where]

    def load(self, port, seconds):
        requests = 60000 * seconds
        out, _ = common.execute(["redis-benchmark", "-p", str(port), "-t", "get", "-n", str(requests), "-c", "20", "-P", "1", "--csv"], 300)
        return float(re.search(r'"GET","([0-9.]+)"', out).group(1))


class Nginx:
    name = "nginx, one process"
    needs = ("nginx", "ab")
    point = "ngx_http_log_request"

    def command(self, port, where):
        os.chmod(where, 0o755)
        with open(os.path.join(where, "index.html"), "w", encoding="utf-8") as f:
            f.write("hello\n" * 100)
        with open(os.path.join(where, "nginx.conf"), "w", encoding="utf-8") as f:
            f.write(
                f"daemon off; master_process off; pid {where}/pid; error_log {where}/error.log;\n"
                f"events {{ worker_connections 512; }}\n"
                f"http {{ access_log off; keepalive_requests 1000000; server {{ listen 127.0.0.1:{port}; root {where}; }} }}\n"
            )
        return ["nginx", "-p", where, "-c", os.path.join(where, "nginx.conf")]

    def load(self, port, seconds):
        out, _ = common.execute(["ab", "-q", "-k", "-c", "20", "-n", str(15000 * seconds), f"http://127.0.0.1:{port}/"], 300)
        return float(re.search(r"Requests per second:\s+([0-9.]+)", out).group(1))


class Memcached:
    name = "memcached"
    needs = ("memcached",)
    point = "syscall:sendmsg"  # it is stripped: no function has a name
    options = ("-b", "libevent*", "--granularity", "function")

    def command(self, port, where):
        return ["memcached", "-u", "nobody", "-l", "127.0.0.1", "-p", str(port), "-t", "1"]

    def load(self, port, seconds):
        counts = []

        def client():
            n, end = 0, time.monotonic() + seconds
            with socket.create_connection(("127.0.0.1", port)) as s:
                s.sendall(b"set key 0 0 5\r\nvalue\r\n")
                s.recv(100)
                while time.monotonic() < end:
                    s.sendall(b"get key\r\n" * 20)
                    got = 0
                    while got < 20 * 31:  # VALUE key 0 5, value, END
                        got += len(s.recv(65536))
                    n += 20
            counts.append(n)

        threads = [threading.Thread(target=client) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        return sum(counts) / seconds


def served(bench, server, options, seconds):
    """Requests a second: of the server alone, or under the profiler."""
    with tempfile.TemporaryDirectory(prefix="cozbpf-bench-") as where:
        port = free_port()
        command = server.command(port, where)
        if options is not None:
            scope = list(getattr(server, "options", ("--granularity", "function")))
            command = bench.profiler(os.path.join(where, "profile.jsonl"), [*scope, "--fixed-speedup", "0", *options], command)
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            try:
                wait_for(port, process)
                server.load(port, 1)
                return server.load(port, seconds)
            finally:
                process.send_signal(signal.SIGTERM)
                try:
                    process.wait(20)
                except subprocess.TimeoutExpired:
                    process.kill()


def run(bench):
    seconds = 5 if bench.full else 2
    found = False
    for server in (Redis(), Nginx(), Memcached()):
        if not all(shutil.which(need) for need in server.needs):
            continue
        found = True
        cells = {
            "native": lambda server=server: served(bench, server, None, seconds),
            "sampling alone": lambda server=server: served(bench, server, [], seconds),
            f"and {server.point}": lambda server=server: served(bench, server, ["-p", server.point], seconds),
        }
        values = common.interleaved(5 if bench.full else 3, cells)
        common.spread_table(f"{server.name}, requests a second", values, "{:.0f}")
        for name, rates in values.items():
            if name == "native":
                continue
            ratio = common.median([v / n for v, n in zip(rates, values["native"])])
            bench.verdict(ratio >= BAR, f"{server.name}, {name}: {ratio:.3f} of native, at least {BAR:g}")
    if not found:
        raise common.Failure("no server is installed: redis-server and redis-tools, nginx and apache2-utils, or memcached")
