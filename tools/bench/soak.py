# SPDX-License-Identifier: BSD-2-Clause
"""Thousands of attach, run -n and run beside one long system run on processes that come and go: does anything grow, or stay behind?

What is judged is a least-squares line through the samples after the first fifth, which pays for caches: how much it rises in a cycle, and over
the whole time for what belongs to the long run or to the victim. Nothing else may load BPF programs meanwhile."""

import ctypes
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time

import common

SHORT_MINUTES, FULL_MINUTES, FULL_CYCLES = 2, 45, 5000
SAMPLE_EVERY_S = 5
SYS_BPF, GET_NEXT_ID = 321, {"programs": 11, "maps": 12, "links": 31}  # commands of bpf(2)
MEMORY = ("Slab", "SUnreclaim", "Percpu", "VmallocUsed", "KernelStack")
TROUBLE = re.compile(r"WARN|BUG|Oops|stall|hung|leak|uprobe|bpf|refcount|use-after|segfault", re.I)
libc = ctypes.CDLL(None, use_errno=True)


def bpf_objects(kind):
    """How many there are."""
    attr, n, last = (ctypes.c_uint32 * 32)(), 0, 0
    while True:
        attr[0] = last
        if libc.syscall(SYS_BPF, GET_NEXT_ID[kind], attr, ctypes.sizeof(attr)) < 0:
            return n
        n, last = n + 1, attr[1]


def read(path):
    with open(path, encoding="utf-8", errors="replace") as f:
        return f.read()


def kilobytes(path, keys):
    text = read(path)
    return {k: int(re.search(rf"^{k}:\s+(\d+) kB$", text, re.M).group(1)) for k in keys}


def state_of(pid):
    """Memory and descriptors of a process."""
    return {"rss_kB": kilobytes(f"/proc/{pid}/status", ["VmRSS"])["VmRSS"], "fds": len(os.listdir(f"/proc/{pid}/fd")),
            "maps": read(f"/proc/{pid}/maps").count("\n"), "threads": len(os.listdir(f"/proc/{pid}/task"))}  # fmt: skip


def slope(points):
    """By least squares, of (x, y)."""
    n = len(points)
    mx, my = sum(x for x, _ in points) / n, sum(y for _, y in points) / n
    below = sum((x - mx) ** 2 for x, _ in points)
    return sum((x - mx) * (y - my) for x, y in points) / below if below else 0.0


def kernel_log():
    return subprocess.run(["dmesg"], capture_output=True, text=True, errors="replace", check=False).stdout.splitlines()


def files_of_ours():
    found = set()
    for where in ("/dev/shm", "/run/cozbpf"):
        if os.path.isdir(where):
            found |= {os.path.join(where, f) for f in os.listdir(where)}
    return found


def processes_with(mark):
    """Those that inherited the environment of this run."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as f:
                if mark.encode() in f.read() and int(pid) != os.getpid():
                    found.append(int(pid))
        except OSError:
            continue
    return found


class Soak:
    def __init__(self, bench, where):
        self.bench, self.where = bench, where
        self.env = {**os.environ, "COZBPF_SOAK": where}
        self.samples, self.cycles, self.errors = [], 0, []
        self.steady = bench.program("e2e", "steady")

    def start(self, command, name):
        with open(os.path.join(self.where, name), "w", encoding="utf-8") as out:
            return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=self.env, start_new_session=True)

    def begin(self):
        # They get what the cycles leave.
        self.victim = self.start(["nice", "-n", "19", self.steady, "100000"], "victim")
        cpu = self.bench.program("e2e", "cpu")
        # One that stays, so that the scope is never empty.
        self.churn = self.start(["nice", "-n", "19", "sh", "-c", f"{cpu} 1000000000 & while :; do {cpu} 30 & {cpu} 20; sleep 0.02; wait $!; done"], "churn")
        time.sleep(0.5)
        self.system = self.start([self.bench.cozbpf, "system", "--exe", cpu, "-q", "--experiment", "5000", "-p", f"{cpu}:progress", "-o",
                                  os.path.join(self.where, "system.jsonl")], "system")  # fmt: skip
        time.sleep(5)
        if self.system.poll() is not None:
            raise common.Failure("system: " + read(os.path.join(self.where, "system")).strip())

    def cycle(self):
        """One command, which must succeed."""
        profile = os.path.join(self.where, "cycle.jsonl")
        ours, quiet = self.bench.cozbpf, ["-q", "--no-report", "-o", profile]
        # Not of the long run's scope: it keeps a table for each file that was ever mapped there, and each run has a preloaded library of its own.
        short = [self.steady, "0.03"]
        commands = [
            [ours, "attach", str(self.victim.pid), "-p", f"{self.steady}:progress", "-d", "0.1", *quiet],
            [ours, "run", "--keep-root", *quiet, "-p", "progress", "--", *short],
            [ours, "run", "--keep-root", *quiet, "-n", "2", "--", *short],
        ]
        done = subprocess.run(commands[self.cycles % len(commands)], stdin=subprocess.DEVNULL, capture_output=True, text=True, env=self.env,
                              timeout=120, check=False)  # fmt: skip
        self.cycles += 1
        if done.returncode:
            self.errors.append(f"cycle {self.cycles}: status {done.returncode}: {(done.stderr.strip().splitlines() or ['-'])[-1]}")
        if os.path.exists(profile):
            os.unlink(profile)

    def sample(self):
        """Between two cycles: only the long run's objects are there, but for what the kernel still frees."""
        if self.system.poll() is not None:
            raise common.Failure("system ended: " + read(os.path.join(self.where, "system")).strip())
        time.sleep(0.5)
        x = {f"kernel {k}_kB": v for k, v in kilobytes("/proc/meminfo", MEMORY).items()}
        x |= {f"BPF {k}": bpf_objects(k) for k in GET_NEXT_ID}
        x |= {f"system {k}": v for k, v in state_of(self.system.pid).items()}
        x |= {f"victim {k}": v for k, v in state_of(self.victim.pid).items()}
        self.samples.append((self.cycles, x))

    def end(self):
        for p, name in ((self.system, signal.SIGINT), (self.churn, signal.SIGKILL), (self.victim, signal.SIGKILL)):
            os.killpg(p.pid, name)
            p.wait(60)


def judge(bench, soak):
    settled = [s for s in soak.samples if s[0] >= soak.cycles / 5]
    if len(settled) < 4:
        raise common.Failure(f"{len(soak.samples)} samples are too few: give it more minutes")
    rows = []
    for name in settled[0][1]:
        points = [(c, x[name]) for c, x in settled]
        per_cycle = slope(points)
        rows.append([name, points[0][1], points[-1][1], f"{per_cycle:+.4f}", f"{per_cycle * (points[-1][0] - points[0][0]):+.1f}"])
    common.table([f"{soak.cycles} cycles, {len(settled)} samples", "first", "last", "a cycle", "in all"], rows)
    risen = {r[0]: (float(r[3]), float(r[4])) for r in rows}
    for name in ("system fds", "system threads", "system maps", "victim fds", "victim threads", "victim maps", *(f"BPF {k}" for k in GET_NEXT_ID)):
        bench.verdict(risen[name][1] < 1, f"{name}: {risen[name][1]:+.1f} in all, less than 1")
    for name, bar in (("system rss_kB", 2048), ("victim rss_kB", 256)):
        bench.verdict(risen[name][1] < bar, f"{name}: {risen[name][1]:+.0f} in all, less than {bar}")
    for name in ("kernel SUnreclaim_kB", "kernel Percpu_kB"):
        limit = max(2.0, 4096 / soak.cycles)
        bench.verdict(risen[name][0] < limit, f"{name}: {risen[name][0]:+.3f} a cycle, less than {limit:.1f}")


def left_behind(bench, soak, before):
    for _ in range(50):
        left = processes_with("COZBPF_SOAK=" + soak.where)
        objects = {k: bpf_objects(k) - before["bpf"][k] for k in GET_NEXT_ID}
        if not left and not any(objects.values()):
            break
        time.sleep(0.2)
    bench.verdict(not left, f"{len(left)} processes are left")
    bench.verdict(all(n <= 0 for n in objects.values()), f"BPF objects more than at the beginning: {objects}")
    files = sorted(files_of_ours() - before["files"])
    bench.verdict(not files, f"files are left: {', '.join(files) or 'none'}")
    said = [x for x in kernel_log() if x not in before["log"] and TROUBLE.search(x)]
    bench.verdict(not said, f"the kernel said: {'; '.join(said[:5]) or 'nothing'}")
    bench.verdict(not soak.errors, f"{len(soak.errors)} of {soak.cycles} cycles failed: {'; '.join(soak.errors[:3]) or '-'}")


def run(bench):
    minutes = bench.options.minutes or (FULL_MINUTES if bench.full else SHORT_MINUTES)
    cycles = bench.options.cycles or (FULL_CYCLES if bench.full else 1 << 30)
    before = {"bpf": {k: bpf_objects(k) for k in GET_NEXT_ID}, "log": set(kernel_log()), "files": files_of_ours()}
    where = tempfile.mkdtemp(prefix="cozbpf-soak-")
    soak = Soak(bench, where)
    try:
        soak.begin()
        end, due = time.monotonic() + 60 * minutes, 0.0
        while time.monotonic() < end and soak.cycles < cycles:
            if time.monotonic() >= due:
                soak.sample()
                due = time.monotonic() + max(SAMPLE_EVERY_S, 60 * minutes / 300)
            soak.cycle()
        soak.sample()
        soak.end()
        judge(bench, soak)
        left_behind(bench, soak, before)
    finally:
        for pid in processes_with("COZBPF_SOAK=" + where):
            os.kill(pid, 9)
        shutil.rmtree(where, ignore_errors=True)
