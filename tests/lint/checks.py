# SPDX-License-Identifier: BSD-2-Clause
"""Runs the checks that need more than a shell. Usage: checks.py ROOT, with the paths on standard input, one a line. A check is a
function from the tree to a list of violations; its name is what is printed."""
import sys

import counters
import layers
import rules
import texts
import tree


def main():
    files = tree.Tree(sys.argv[1], sys.stdin.read().splitlines())
    bad = False
    for check in layers.CHECKS + texts.CHECKS + counters.CHECKS + rules.CHECKS:
        violations = check(files)
        if not violations:
            print(f"ok {check.__name__}")
        for detail in violations:
            print(f"not ok {check.__name__}: {detail}")
            bad = True
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
