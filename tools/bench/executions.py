# SPDX-License-Identifier: BSD-2-Clause
"""How often blocks are executed by `cozbpf annotate --count`, compared with callgrind's counts: ten kernels, bzip2, zstd, sqlite3, python3.

Of each program the image that has most of its samples, and there the functions that have most. Counts are for a second, those of callgrind for a run: one factor for each program lies
between them, the weighted median of their quotients. Blocks weigh as much as they have samples, and programs the same."""

import bisect
import json
import math
import os
import signal
import subprocess
import tempfile
import time

import common
import variants

KERNELS = ("sort", "matrices", "hash", "sieve", "crc", "edits", "runs", "bodies", "search", "collatz")
BOUNDS = (0.05, 0.10, 0.15)
# Anderson et al., Continuous Profiling (TOCS 1997), figure 14: samples of the base SPEC benchmarks by how far their frequencies are off.
PAPER = (0.73, 0.87, 0.92)
LEAST_WITHIN, LEAST_OVERLAP = 0.60, 0.80
LEAST_SHARE = 0.03  # of a function
MOST_FUNCTIONS = 8
SQL = """drop table if exists t;
create table t(a integer primary key, b int, c text);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 20000) insert into t select i, (i * 7919) % 10007, printf('row %d', i) from n;
create index tb on t(b);
select count(*), sum(length(c)) from t where b between 100 and 5000;
select b % 10, count(*), max(c) from t group by b % 10 order by 2;
select count(*) from t x join t y on x.b = y.b where x.a < 8000;
"""
PYTHON = """import json, sys
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
def words(n):
    d = {}
    for i in range(n):
        k = str(i * 7919 % 1009)
        d[k] = d.get(k, 0) + i
    return sorted(d.items())
for _ in range(int(sys.argv[1])):
    fib(18)
    words(10000)
    json.loads(json.dumps([list(range(50))] * 100))
    s = [i * i % 97 for i in range(20000)]
    s.sort()
"""


class Program:
    """One that runs for ever, and once."""

    def __init__(self, name, once, forever, fed=None):
        self.name, self.once, self.forever, self.fed = name, once, forever, fed

    def __enter__(self):
        feed = None
        if self.fed:
            # Again and again through a pipe, so that it is one process.
            self.feeder = subprocess.Popen(["sh", "-c", 'while cat "$0"; do :; done 2>/dev/null', self.fed], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
            feed = self.feeder.stdout
        self.process = subprocess.Popen(self.forever, stdin=feed or subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if feed:
            feed.close()
        return self.process.pid

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        if self.fed:
            self.feeder.kill()
            self.feeder.wait()

    def count(self, where):
        """{last component of an object's path: {address: executions}}, by callgrind."""
        out = os.path.join(where, self.name + ".callgrind")
        with open(self.fed or os.devnull, "rb") as fed:
            command = ["valgrind", "--tool=callgrind", "--dump-instr=yes", "--dump-line=no", "--compress-pos=no", "--compress-strings=no", f"--callgrind-out-file={out}"]
            subprocess.run(command + self.once, stdin=fed, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        found, of, call = {}, None, False
        with open(out, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                if line.startswith("ob="):
                    of = found.setdefault(os.path.basename(line[3:].strip()), {})
                elif line.startswith("calls="):
                    call = True
                elif line.startswith("0x"):
                    # The line after a call has the cost of the callee.
                    if not call and of is not None:
                        words = line.split()
                        of[int(words[0], 16)] = of.get(int(words[0], 16), 0) + int(words[-1])
                    call = False
        return found


def programs_in(where):
    kernels = os.path.join(where, "kernels")
    variants.call(["gcc", "-O2", "-g", os.path.join(variants.HERE, "programs", "kernels.c"), "-o", kernels, "-lm"], where)
    data, sql, script = (os.path.join(where, n) for n in ("data", "script.sql", "script.py"))
    with open(data, "wb") as f:
        for folder in ("user", "bpf", "tests"):
            for path, folders, names in os.walk(os.path.join(common.ROOT, folder)):
                folders.sort()
                for name in sorted(names):
                    with open(os.path.join(path, name), "rb") as source:
                        f.write(source.read())
    for path, content in ((sql, SQL), (script, PYTHON)):
        with open(path, "w", encoding="utf-8") as f:
            f.write(content)
    zstd = ["zstd", "--single-thread", "-6", "--zstd=wlog=20", "-c"]
    python = "/usr/bin/python3"
    return [
        *(Program(k, [kernels, k, "2"], [kernels, k, "1000000000"]) for k in KERNELS),
        Program("bzip2", ["bzip2", "-c"], ["bzip2", "-c"], data),
        Program("zstd", zstd, zstd, data),
        Program("sqlite3", ["sqlite3", ":memory:"], ["sqlite3", ":memory:"], sql),
        Program("python3", [python, script, "2"], [python, script, "1000000000"]),
    ]


def ask(bench, *words):
    return json.loads(subprocess.run([bench.cozbpf, words[0], "--json", *words[1:]], stdout=subprocess.PIPE, check=True).stdout)


def blocks_of(bench, program, where):
    """(image, [(address, samples, executions a second or None)], functions, part of the image's samples that they have) by cozbpf."""
    seconds = 20 if bench.full else 5
    database = os.path.join(where, program.name + ".db")
    with program as pid:
        time.sleep(0.5)
        collector = subprocess.Popen([bench.cozbpf, "collect", "--db", database, "--rate", "2000", "-d", f"{seconds}s"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        collector.wait(timeout=seconds + 60)
        # The image first that has most of the process' samples, then its functions.
        mine = ["--db", database, "--process", os.path.basename(program.forever[0])[:15]]
        images = ask(bench, "top", *mine, "--by", "image", "--top", "3")["shares"]["rows"]
        image = next(r["image"] for r in images if r["image"].startswith("/"))
        rows = ask(bench, "top", *mine, "--image", image, "--top", str(MOST_FUNCTIONS))["shares"]["rows"]
        rows = [r for r in rows if r["share"] >= LEAST_SHARE]
        found, part = [], 0.0
        for row in rows:
            try:
                said = ask(bench, "annotate", *mine, "--image", image, "--pid", str(pid), "--count", f"{seconds}s", row["function"])
            except subprocess.CalledProcessError:
                print(f"    {program.name}: nothing is counted in {row['function']}")
                continue
            part += row["share"]
            for b in said["blocks"]:
                first = b["instructions"][0]
                found.append((int(first["address"]), sum(x["samples"] for x in b["instructions"]), b["executed"] if b["executed_error"] is not None else None))
    return image, found, len(rows), part


def weighted_median(pairs):
    pairs = sorted(pairs)
    total, sums = 0.0, []
    for _, weight in pairs:
        total += weight
        sums.append(total)
    return pairs[bisect.bisect_left(sums, total / 2)][0]


def judge(blocks, exact):
    """(shares of the samples within BOUNDS, overlap of the two distributions of executions over blocks)."""
    known = [(math.log(e / exact[at]), s) for at, s, e in blocks if s and e and exact.get(at)]
    if not known:
        raise common.Failure("no block has counts of both")
    factor = math.exp(weighted_median(known))
    total = sum(s for _, s, _ in blocks)
    within = [sum(s for at, s, e in blocks if s and e and exact.get(at) and abs(e / factor / exact[at] - 1) <= bound) / total for bound in BOUNDS]
    told, real = (sum(x or 0 for x in xs) for xs in ([e for _, _, e in blocks], [exact.get(at, 0) for at, _, _ in blocks]))
    overlap = sum(min((e or 0) / told, exact.get(at, 0) / real) for at, _, e in blocks)
    return within, overlap


def run(bench):
    rows, all_within, all_overlaps = [], [], []
    with tempfile.TemporaryDirectory(prefix="cozbpf-bench-") as where:
        os.chmod(where, 0o755)
        for program in programs_in(where):
            image, blocks, functions, part = blocks_of(bench, program, where)
            exact = program.count(where)
            name = os.path.basename(os.path.realpath(image))
            within, overlap = judge(blocks, exact.get(name, {}))
            all_within.append(within)
            all_overlaps.append(overlap)
            sampled = sum(1 for _, s, _ in blocks if s)
            rows.append([program.name, name, functions, f"{100 * part:.0f} %", sampled, *(f"{100 * w:.0f} %" for w in within), f"{100 * overlap:.0f} %"])
    mean = [sum(w[i] for w in all_within) / len(all_within) for i in range(len(BOUNDS))]
    overlap = sum(all_overlaps) / len(all_overlaps)
    rows.append(["all", "", "", "", "", *(f"{100 * w:.0f} %" for w in mean), f"{100 * overlap:.0f} %"])
    rows.append(["Anderson et al.", "", "", "", "", *(f"{100 * w:.0f} %" for w in PAPER), ""])
    common.table(["program", "image", "functions", "of its samples", "blocks", *(f"within {100 * b:.0f} %" for b in BOUNDS), "overlap"], rows)
    bench.verdict(mean[-1] >= LEAST_WITHIN, f"{100 * mean[-1]:.0f} % of the samples are in blocks whose executions are within 15 %, at least {100 * LEAST_WITHIN:.0f} %")
    bench.verdict(overlap >= LEAST_OVERLAP, f"overlap {100 * overlap:.0f} %, at least {100 * LEAST_OVERLAP:.0f} %")
