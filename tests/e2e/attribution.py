#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""attribution.py BENCH-DIRECTORY COZBPF DIRECTORY SECONDS: see attribution.test.sh."""

import os
import sys

SELECTED = ("clang -O2 -static", "gcc -O2 -gsplit-dwarf, dwp", "gcc -O2, stripped, debuglink")
ALSO_IN_FULL = ("gcc -O2 -flto", "gcc -O2, dwz, alternate file", "clang -O0")
LEAST_INSIDE, MOST_OFF = 97.0, 5.0


def complaint(attribution, variants, common, name, cozbpf, where, seconds):
    """(what is wrong or "", figures)"""
    try:
        built = variants.build(name, os.path.join(where, "build"), twin_too=False)
        found = attribution.measure_cozbpf(cozbpf, built, seconds, where)
    except (variants.NotBuilt, common.Failure) as e:
        return str(e), "no figures"
    off, part = found.off_times()
    figures = f"{found.inside():.2f} % of {found.total} samples in scope; {part} is off its share of the time by {off:.1f} points"
    return figures if found.inside() < LEAST_INSIDE or off > MOST_OFF or len(found.times) < 10 else "", figures


def main(bench, cozbpf, where, seconds):
    sys.dont_write_bytecode = True
    sys.path.insert(0, bench)
    import attribution
    import common
    import variants

    for i, name in enumerate(SELECTED + (ALSO_IN_FULL if os.environ.get("FULL") == "1" else ())):
        directory = os.path.join(where, str(i))
        os.makedirs(directory)
        wrong, figures = complaint(
            attribution, variants, common, name, cozbpf, directory, float(seconds)
        )
        print(f"not ok {name}: {wrong}" if wrong else f"ok {name}")
        print(f"# {figures}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
