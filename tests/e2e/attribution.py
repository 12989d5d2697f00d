#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""attribution.py SOURCES COZBPF DIRECTORY SECONDS: see attribution.test.sh. SOURCES: where attributed.c and attributed_more.cc are."""

import glob
import json
import os
import re
import shutil
import subprocess
import sys

SOURCES = ("attributed.c", "attributed_more.cc")
LEAST_INSIDE, MOST_OFF = 97.0, 5.0  # per cent of the samples; percentage points
CALLED_BACK = {"by_value": "sort", "mix": "own", "thrower": "throw_and_catch"}


class Failure(Exception):
    """It could not be built or measured."""


def call(command, where=None):
    done = subprocess.run(command, cwd=where, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode != 0:
        raise Failure(f"{' '.join(command)}: {(done.stderr.strip().splitlines() or ['no message'])[-1]}")
    return done.stdout


def dwp(program, where):
    call(["llvm-dwp", "-e", program, "-o", program + ".dwp"], where)
    for name in glob.glob(os.path.join(where, "*.dwo")):
        os.unlink(name)


def debuglink(program, where):
    call(["objcopy", "--only-keep-debug", program, program + ".debug"], where)
    call(["objcopy", "--strip-all", program], where)
    call(["objcopy", "--remove-section=.note.gnu.build-id", f"--add-gnu-debuglink={program}.debug", program], where)


def dwz_alternate(program, where):
    other = os.path.join(where, "other")
    shutil.copy(program, other)
    call(["dwz", "-m", os.path.join(where, "common.debug"), program, other], where)
    if ".gnu_debugaltlink" not in call(["readelf", "-SW", program], where):
        raise Failure("dwz moved nothing into the common file")


# Compilers, flags for compiling and linking, flags for linking alone, what is done to the result.
GCC, CLANG = ("gcc", "g++"), ("clang", "clang++")
VARIANTS = {
    "clang -O2 -static": (CLANG, "-O2", "-static -Wl,--eh-frame-hdr", None),
    "gcc -O2 -gsplit-dwarf, dwp": (GCC, "-O2 -gsplit-dwarf", "", dwp),
    "gcc -O2, stripped, debuglink": (GCC, "-O2 -Wl,--build-id", "", debuglink),
}
ALSO_IN_FULL = {
    "gcc -O2 -flto": (GCC, "-O2 -flto", "", None),
    "gcc -O2, dwz, alternate file": (GCC, "-O2", "", dwz_alternate),
    "clang -O0": (CLANG, "-O0 -fomit-frame-pointer", "", None),
}


def build(variant, sources, where):
    """The program's path, in `where`."""
    compilers, flags, link, finish = variant
    objects = []
    for source in SOURCES:
        objects.append(source + ".o")
        call([compilers[source.endswith(".cc")], "-g", *flags.split(), "-c", os.path.join(sources, source), "-o", objects[-1]], where)
    program = os.path.join(where, "attributed")
    call([compilers[1], "-g", *flags.split(), *link.split(), *objects, "-o", program, "-lm"], where)
    if finish:
        finish(program, where)
    return program


def parts_of_lines(sources):
    """({FILE:LINE: the function of the program that it is in}, callbacks and what is inlined aside; FILE:LINE of the progress point)"""
    found, point = {}, None
    for source in SOURCES:
        with open(os.path.join(sources, source), encoding="utf-8") as f:
            name = None
            for number, text in enumerate(f, 1):
                begin = re.match(r"(?:static )?(?:KEEP|inline)? ?\w+ \*?(\w+)\(.*\)$", text)
                if begin:
                    name = begin.group(1)
                if "/* LINE:progress */" in text:
                    point = f"{source}:{number}"
                part = re.match(r"\tPART\((\w+)", text)  # a last call of a function's is its caller's
                if name:
                    found[f"{source}:{number}"] = part.group(1) if part else name
                if text.startswith("}"):
                    name = None
    return found, point


def read_samples(profile):
    """The log of a profile: (samples by line, how many have no line)."""
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
        raise Failure("the profile has no samples")
    return samples, others


def compare(variant, sources, cozbpf, where, seconds):
    """(what is wrong or "", figures)"""
    lines, point = parts_of_lines(sources)  # a stripped program has no functions, so the point is a line
    profile = os.path.join(where, "profile.jsonl")
    program = build(variant, sources, where)
    said = call([cozbpf, "run", "--keep-root", "-q", "--no-report", "-o", profile, "--rate", "4000", "--fixed-speedup", "0", "-p", point,
                 "--", program, seconds])  # fmt: skip
    times = {name: float(ns) for name, ns in re.findall(r"(\w+)_ns=(\d+)", said)}
    samples, others = read_samples(profile)
    sums = dict.fromkeys(times, 0)
    for line, n in samples.items():
        part = lines.get(line)
        part = CALLED_BACK.get(part, part)
        if part in sums:
            sums[part] += n
    total = sum(samples.values()) + others
    inside = 100 * sum(samples.values()) / total
    whole, all_times = sum(sums.values()) or 1, sum(times.values()) or 1
    off, part = max(((abs(100 * sums[p] / whole - 100 * t / all_times), p) for p, t in times.items()), default=(0, "nothing"))
    figures = f"{inside:.2f} % of {total} samples in scope; {part} is off its share of the time by {off:.1f} points"
    return figures if inside < LEAST_INSIDE or off > MOST_OFF or len(times) < 10 else "", figures


def main(sources, cozbpf, directory, seconds):
    full = ALSO_IN_FULL if os.environ.get("FULL") == "1" else {}
    for i, (name, variant) in enumerate({**VARIANTS, **full}.items()):
        where = os.path.join(directory, str(i))
        os.makedirs(where)
        try:
            wrong, figures = compare(variant, sources, cozbpf, where, seconds)
        except Failure as e:
            wrong, figures = str(e), "no figures"
        print(f"not ok {name}: {wrong}" if wrong else f"ok {name}")
        print(f"# {figures}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
