#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Prints the value of a Python expression over a profile: tests/e2e/ask.py PROFILE EXPRESSION. Names in it: runs (the
cozbpf keys of each startup record), experiments (their keys, and "points": records by name), runtime (ns, of the last run), sampled (samples
with a location, of the last run), logs (runtime records), slopes (their records), unattributed (those without), too_deep (of these, with call chains too long), samples (count by location), total(key), visits(name, key="delta"). Waits are left out: whether
threads wait for a CPU is the machine's matter. A profile that does not parse is a failure."""

import json
import os
import re
import sys

TYPES = {"startup", "experiment", "throughput-point", "latency-point", "runtime", "samples", "elsewhere", "addresses", "slopes"}


with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "shared", "waits.def"), encoding="utf-8") as kinds:
    WAIT = re.compile(r"(.* )?\[({})\]".format("|".join(re.findall(r'^WAIT\(\w+, "(\w+)"\)', kinds.read(), re.M))))


def read(path):
    runs, experiments, logs, slopes, samples = [], [], [], [], {}
    sampled = unattributed = too_deep = 0
    with open(path, encoding="utf-8") as lines:
        text = lines.read()
    if text and not text.endswith("\n"):
        raise ValueError("the last line is not whole")
    for line in text.splitlines():
        record = json.loads(line)
        kind = record["type"]
        if kind not in TYPES:
            raise ValueError(f"unknown record {kind!r}")
        if kind == "startup":
            runs.append(record.get("cozbpf", {}))
        elif kind == "experiment":
            experiment = {**record, "points": {}}
            experiments.append(experiment)
        elif kind.endswith("-point"):
            experiment["points"][record["name"]] = record
        elif kind == "runtime":
            logs.append(record)
            sampled = record.get("samples", 0)
            unattributed = record.get("unattributed", 0)
            too_deep = record.get("too_deep", 0)
        elif kind == "slopes":
            slopes.append(record)
        elif kind == "samples" and not WAIT.fullmatch(record["location"]):
            samples[record["location"]] = samples.get(record["location"], 0) + record["count"]
    return runs, experiments, logs, slopes, sampled, unattributed, too_deep, samples


def main(path, expression):
    runs, experiments, logs, slopes, sampled, unattributed, too_deep, samples = read(path)
    names = {
        "runs": runs,
        "experiments": [x for x in experiments if not WAIT.fullmatch(str(x.get("selected")))],
        "runtime": logs[-1]["time"] if logs else 0,
        "runtimes": [log["time"] for log in logs],
        "logs": logs,
        "slopes": slopes,
        "sampled": sampled,
        "unattributed": unattributed,
        "too_deep": too_deep,
        "samples": samples,
        "total": lambda key: sum(x.get(key, 0) for x in experiments),
        "visits": lambda name, key="delta": sum(x["points"].get(name, {}).get(key, 0) for x in experiments),
    }
    print(eval(expression, names))  # the tests' own expressions


if __name__ == "__main__":
    main(*sys.argv[1:])
