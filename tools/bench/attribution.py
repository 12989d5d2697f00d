# SPDX-License-Identifier: BSD-2-Clause
"""A program with its work in libraries, built in every way: share of samples with a line in scope, shares per line against perf's (bar 1).

Both sample the same run, each by its own clocks. perf record --call-graph dwarf copies the stack at each sample, and perf script unwinds
it; which line an address belongs to, and what was inlined there, llvm-symbolizer tells, from ordinary debug information of the same code.
The rule is applied here: the first line in scope of the chain, where code inlined from out of scope belongs to the place of its call. So
nothing but the program is shared with cozbpf."""

import bisect
import fnmatch
import json
import os
import re
import shutil
import statistics
import struct
import subprocess
import tempfile

import common
import variants

BAR_IN_SCOPE = 99.0  # percent
BAR_SHARE = 2.0  # percentage points
PERF_RATE = 1500
FRAME = re.compile(r"^\s+([0-9a-f]+) .*?\(([^()]*)\)$")


def code_segments(path):
    """(file offset, size, address) of the executable's segments of code."""
    with open(path, "rb") as f:
        head = f.read(64)
        at, size, number = struct.unpack_from("<Q", head, 32)[0], *struct.unpack_from("<HH", head, 54)
        f.seek(at)
        table = f.read(size * number)
    found = []
    for i in range(number):
        kind, flags, offset, address, _, in_file = struct.unpack_from("<IIQQQQ", table, i * size)
        if kind == 1 and flags & 1:
            found.append((offset, in_file, address))
    return found


def to_address(segments, offset):
    """None: not code."""
    for begin, size, address in segments:
        if begin <= offset < begin + size:
            return offset - begin + address
    return None


def chains_of(script, program):
    """[[address in the program's file or None, innermost first]], of user space alone. perf prints where in a file a frame is."""
    segments = code_segments(program)
    chains, chain = [], None
    for line in script:
        frame = FRAME.match(line)
        if not line.strip():
            chain = None
        elif not frame:
            chain = []
            chains.append(chain)
        elif chain is not None and not frame.group(2).startswith("[kernel"):
            chain.append(to_address(segments, int(frame.group(1), 16)) if frame.group(2) == program else None)
    return chains


def files_alone(program, where):
    """A tree of links to the program and its libraries: beside these files perf 6.1 finds no debug files. It would take those for what to
    unwind by, and they have nothing."""
    listed = subprocess.run(["ldd", program], capture_output=True, text=True, check=False).stdout
    for path in {program, *re.findall(r"(/\S+) \(0x", listed)}:
        real = os.path.realpath(path)
        link = where + real
        os.makedirs(os.path.dirname(link), exist_ok=True)
        if not os.path.exists(link):
            os.symlink(real, link)
    return where


def symbolize(plain, addresses):
    """{address: [(file, line), innermost first]}"""
    wanted = sorted(addresses)
    command = ["llvm-symbolizer", f"--obj={plain}", "--inlines", "--functions=none", "--output-style=LLVM"]
    done = subprocess.run(command, input="".join(f"{a:#x}\n" for a in wanted), capture_output=True, text=True, check=False)
    blocks = done.stdout.split("\n\n")
    if done.returncode != 0 or len(blocks) < len(wanted):
        raise common.Failure(f"llvm-symbolizer: {(done.stderr.strip().splitlines() or ['fewer answers than questions'])[-1]}")
    places = {}
    for address, block in zip(wanted, blocks):
        split = [x.rsplit(":", 2) for x in block.split("\n") if x.count(":") >= 2]
        places[address] = [(file, int(line)) for file, line, _ in split]
    return places


def in_scope(places):
    """The first that is the program's own, as FILE:LINE; None."""
    own = {os.path.realpath(s): os.path.basename(s) for s in variants.SOURCES}
    for file, line in places:
        name = own.get(os.path.realpath(file))
        if name and line:
            return f"{name}:{line}"
    return None


def parts_of_lines():
    """{FILE:LINE: the function of the program that it is in}, callbacks and what is inlined aside."""
    found = {}
    for source in variants.SOURCES:
        with open(source, encoding="utf-8") as f:
            name = None
            for number, text in enumerate(f, 1):
                begin = re.match(r"(?:static )?(?:KEEP|inline)? ?\w+ \*?(\w+)\(.*\)$", text)
                if begin:
                    name = begin.group(1)
                part = re.match(r"\tPART\((\w+)", text)  # a last call of a function's is its caller's
                if name:
                    found[f"{os.path.basename(source)}:{number}"] = part.group(1) if part else name
                if text.startswith("}"):
                    name = None
    return found


CALLED_BACK = {"by_value": "sort", "mix": "own", "thrower": "throw_and_catch"}


class Shares:
    """samples: by line; total: with those of no line; depths: how many frames up each was found (perf only); times: of the program's parts,
    as it says itself."""

    def __init__(self, samples, total, depths=(), times=()):
        self.samples, self.total, self.depths, self.times = samples, total, depths, dict(times)

    def off_times(self):
        """How far the share of a part is from its share of the time, in points: (the most, which part)."""
        lines, sums = parts_of_lines(), dict.fromkeys(self.times, 0)
        for line, n in self.samples.items():
            part = lines.get(line)
            part = CALLED_BACK.get(part, part)
            if part in sums:
                sums[part] += n
        whole, all_times = sum(sums.values()) or 1, sum(self.times.values())
        return max((abs(100 * sums[p] / whole - 100 * t / all_times), p) for p, t in self.times.items())

    def of(self, line):
        return 100 * self.samples.get(line, 0) / self.total

    def inside(self):
        return 100 * sum(self.samples.values()) / self.total


def perf_shares(built, data, where):
    """What perf has of the program, by our rule."""
    out = os.path.join(where, "script")
    script = ["perf", "script", "-i", data, "--comms", os.path.basename(built.path), "-F", "comm,ip,dso", "--no-inline", "--symfs",
              files_alone(built.path, os.path.join(where, "files"))]  # fmt: skip
    with open(out, "w", encoding="utf-8") as f:
        done = subprocess.run(script, stdout=f, stderr=subprocess.PIPE, text=True, timeout=600, check=False)
    if done.returncode != 0:
        raise common.Failure(f"perf script: {(done.stderr.strip().splitlines() or ['no message'])[-1]}")
    with open(out, encoding="utf-8", errors="replace") as f:
        chains = [c for c in chains_of(f, built.path) if c]
    if not any(a is not None for c in chains for a in c):
        raise common.Failure("perf saw no code of the program")
    known = symbolize(built.plain, {a for c in chains for a in c if a is not None})
    samples, depths = {}, []
    for chain in chains:
        for depth, address in enumerate(chain, 1):
            line = in_scope(known[address]) if address is not None else None
            if line:
                samples[line] = samples.get(line, 0) + 1
                depths.append(depth)
                break
    return Shares(samples, len(chains), depths)


def times_of(said):
    return {key.removesuffix("_ns"): ns for key, ns in common.numbers_in(said).items() if key.endswith("_ns")}


def read_samples(profile, times):
    """The log of a profile: samples by line, and how many there were in all."""
    samples, others = {}, None
    with open(profile, encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            if record["type"] == "samples":
                file, _, number = record["location"].rpartition(":")
                key = f"{os.path.basename(file)}:{number}"
                samples[key] = samples.get(key, 0) + record["count"]
            elif record["type"] == "runtime":
                others = record["unattributed"]
    if others is None or not samples:
        raise common.Failure("the profile has no samples")
    return Shares(samples, sum(samples.values()) + others, times=times)


def profiler(cozbpf, built, seconds, profile):
    point = common.line_of("tools/bench/programs/attributed.c", "progress")  # a stripped program has no functions
    return [cozbpf, "run", "--keep-root", "-q", "--no-report", "-o", profile, "--rate", "4000", "--fixed-speedup", "0", "-p", point,
            *built.options, "--", built.path, f"{seconds:g}"]  # fmt: skip


def measure_cozbpf(cozbpf, built, seconds, where):
    profile = os.path.join(where, "profile.jsonl")
    said, _ = common.execute(profiler(cozbpf, built, seconds, profile), seconds + 60)
    return read_samples(profile, times_of(said))


def measure_both(cozbpf, built, seconds, where):
    """(cozbpf's shares, perf's), of one run: what happens to the one happens to the other. perf 6.1 is given the program alone: it unwinds
    wrongly through libraries that another process has mapped elsewhere."""
    profile, data = os.path.join(where, "profile.jsonl"), os.path.join(where, "perf.data")
    record = ["perf", "record", "-q", "-B", "-N", "-m", "8M", "-e", "cpu-clock", "-F", str(PERF_RATE), "--call-graph", "dwarf,16384",
              "-o", data, "-p"]  # fmt: skip
    with subprocess.Popen(profiler(cozbpf, built, seconds, profile), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        pid = int(common.numbers_in(run.stdout.readline()).get("pid", 0))
        if pid:
            common.execute([*record, str(pid)], seconds + 60)
        said, complaint = run.communicate(timeout=60)
    if run.returncode != 0 or not pid:
        raise common.Failure(f"status {run.returncode}: {(complaint.strip().splitlines() or ['nothing on stderr'])[-1]}")
    return read_samples(profile, times_of(said)), perf_shares(built, data, where)


def compare(ours, theirs):
    """(the largest difference of a line's shares in points, that line)"""
    return max((abs(ours.of(x) - theirs.of(x)), x) for x in {*ours.samples, *theirs.samples})


def quantile(sorted_values, q):
    return sorted_values[min(len(sorted_values) - 1, int(q * len(sorted_values)))]


def row(name, ours, theirs):
    depths = sorted(theirs.depths)
    off, line = compare(ours, theirs)
    shallow = bisect.bisect_right(depths, 1) / len(depths)
    return [name, f"{ours.inside():.2f}", f"{theirs.inside():.2f}", f"{off:.2f}", line, f"{ours.off_times()[0]:.2f}", f"{ours.total}",
            f"{theirs.total}", f"{statistics.median(depths):g}", f"{quantile(depths, 0.9)}", f"{100 * shallow:.0f}"]  # fmt: skip


HEAD = ["built with", "in scope %", "perf %", "largest difference", "of line", "from time", "samples", "perf's", "median depth", "90 %", "own %"]


def show_lines(ours, theirs):
    common.table(
        ["", "cozbpf %", "perf %"],
        [[x, f"{ours.of(x):.2f}", f"{theirs.of(x):.2f}"] for x in sorted({*ours.samples, *theirs.samples}, key=ours.of, reverse=True)],
    )


def run(bench):
    for tool in ("perf", "llvm-symbolizer", "llvm-dwp", "dwz", "clang", "gcc"):
        if not shutil.which(tool):
            raise common.Failure(f"{tool} is not installed (tests/packages.txt names the packages)")
    only = bench.options.only or [""]
    names = [n for n in variants.VARIANTS if any(n == w if w in variants.VARIANTS else fnmatch.fnmatch(n, f"*{w}*") for w in only)]
    seconds = 6 if bench.full else 3
    rows = []
    for name in names:
        with tempfile.TemporaryDirectory(prefix="cozbpf-bench-") as where:
            try:
                built = variants.build(name, os.path.join(where, "build"))
            except variants.NotBuilt as e:
                raise common.Failure(f"{name}: {e}") from None
            ours, theirs = measure_both(bench.cozbpf, built, seconds, where)
        rows.append(row(name, ours, theirs))
        off, line = compare(ours, theirs)
        bench.verdict(ours.inside() >= BAR_IN_SCOPE, f"{name}: {ours.inside():.2f} % of the samples have a line in scope, at least {BAR_IN_SCOPE:g}")
        bench.verdict(off <= BAR_SHARE, f"{name}: {line} differs by {off:.2f} points from perf's share, at most {BAR_SHARE:g}")
        if off > BAR_SHARE or ours.inside() < BAR_IN_SCOPE or bench.options.verbose:
            show_lines(ours, theirs)
    common.table(HEAD, rows)
