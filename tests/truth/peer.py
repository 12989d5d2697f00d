# SPDX-License-Identifier: BSD-2-Clause
"""The same programs under Coz, for the comparison. Coz reads DWARF 4 only and wants its macro in the program, so each program is
built once more. Debian's package is taken, or the tree that COZ= names (its `coz` script, include/coz.h)."""

import json
import os
import re
import shutil
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))


class Missing(Exception):
    """Coz, or what it takes to build for it, is not here."""


def find(tree):
    """(the coz script, the folder of coz.h) of a tree, or of this system where it is empty."""
    if tree:
        scripts = [os.path.join(tree, *p) for p in (("coz",), ("bin", "coz"))]
        script = next((s for s in scripts if os.access(s, os.X_OK) and os.path.isfile(s)), None)
        headers = os.path.join(tree, "include")
    else:
        script, headers = shutil.which("coz"), "/usr/include"
    if not script or not os.path.exists(os.path.join(headers, "coz.h")):
        raise Missing(f"no Coz in {tree}: it has no coz script or no include/coz.h" if tree else "no Coz here: apt install coz-profiler")
    return script, headers


def read(path):
    """{percent: [duration, visits]} of the point "progress", from either form of Coz's profile."""
    sums, current = {}, None
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            if line.startswith("{"):
                try:
                    record = json.loads(line)
                except ValueError:
                    break  # cut off at the program's end
                kind = record.get("type")
            else:
                kind, *pairs = line.rstrip("\n").split("\t")
                record = dict(p.split("=", 1) for p in pairs if "=" in p)
            if kind == "experiment":
                current = sums.setdefault(round(100 * float(record["speedup"])), [0, 0])
                current[0] += int(record["duration"])
            elif kind in ("throughput-point", "throughput_point", "progress-point") and current and record.get("name") == "progress":
                current[1] += int(record["delta"])
    return sums


def effects(sums, speedups):
    """As Coz's viewer has them, in percent; None where there are no visits."""

    def period(percent):
        duration, visits = sums.get(percent, (0, 0))
        return duration / visits if visits and duration else None

    base = period(0)
    return {s: None if not base or period(s) is None else 100 * (1 - period(s) / base) for s in speedups}


class Coz:
    def __init__(self, tree, folder):
        self.script, self.headers = find(tree)
        self.folder = folder
        self.compiler = shutil.which("cc")
        if not self.compiler:
            raise Missing("no C compiler (cc) to build the programs for Coz")

    def program(self, case):
        path = os.path.join(self.folder, case.program)
        if not os.path.exists(path):
            command = [
                self.compiler, "-O2", "-g", "-gdwarf-4", "-gno-variable-location-views", "-DTRUTH_COZ", "-isystem", self.headers,
                os.path.join(HERE, "programs", case.source), "-o", path, "-pthread", "-ldl",
            ]  # fmt: skip
            built = subprocess.run(command, capture_output=True, text=True, check=False)
            if built.returncode != 0:
                last = (re.findall(r".*error.*", built.stderr) or ["no reason given"])[0]
                raise Missing(f"{case.source} cannot be built for Coz: {last}")
        return path

    def measure(self, case, line, arguments, speedups, execute):
        """Effects in percent. Coz cannot be told which speedups to draw, so each gets a run of its own. `arguments` says how the
        program is started for so many seconds' share; `execute` runs a command."""
        program = self.program(case)
        sums = {}
        for percent in (0, *speedups):
            output = os.path.join(self.folder, "profile.coz")
            command = [self.script, "run", "-o", output, "--fixed-line", f"{case.source}:{line}", "--fixed-speedup", str(percent), "---"]
            execute([*command, program, *arguments])
            if not os.path.exists(output):
                raise Missing("Coz wrote no profile")
            for key, (duration, visits) in read(output).items():
                total = sums.setdefault(key, [0, 0])
                total[0] += duration
                total[1] += visits
            os.unlink(output)
        return effects(sums, speedups)
