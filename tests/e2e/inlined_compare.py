#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""inlined_compare.py OWNERS PROGRAM ADDR2LINE: OWNERS is what line_owners prints of PROGRAM. Compares the line of each address with the
first one out of /usr that the chain of inlined calls has by ADDR2LINE (binutils' or LLVM's), and the chains. Prints how many agree; fails
under 99 %."""

import os.path
import subprocess
import sys


def normal(line):
    name, _, number = line.split(" (discriminator")[0].rpartition(":")
    return f"{os.path.normpath(name)}:{number}"


def chains(program, tool, addresses):
    """Of each address its lines, innermost first."""
    asked = "\n".join(addresses) + "\n"
    out = subprocess.run([tool, "-i", "-a", "-e", program], input=asked, capture_output=True, text=True, check=True).stdout
    found, lines = [], []
    for line in out.splitlines():
        if line.startswith("0x"):
            lines = []
            found.append(lines)
        else:
            lines.append(normal(line))
    return found


def main(owners, program, tool):
    with open(owners, encoding="utf-8") as text:
        rows = [line.rstrip("\n").split("\t") for line in text]
    good = good_chains = n = inlined = foreign = 0
    wrong = []
    for (address, owner, *copies), chain in zip(rows, chains(program, tool, [row[0] for row in rows]), strict=True):
        if not chain or any(line.endswith(":?") or line.endswith(":0") for line in chain):
            continue
        ours = [line for line in chain if not line.startswith("/usr/")]
        n += 1
        foreign += chain[0].startswith("/usr/")
        inlined += len(chain) > 1
        good += bool(ours) and ours[0] == owner
        good_chains += copies == (chain if len(chain) > 1 else ["-"])
        if not ours or ours[0] != owner:
            wrong.append(f"{address}: {owner} is {chain}")
    print(f"{n} addresses, {inlined} inlined, {foreign} of them library code; lines agree on {good}, chains on {good_chains}")
    for line in wrong[:5]:
        print(line, file=sys.stderr)
    return 0 if n > 500 and foreign > 100 and good >= 0.99 * n and good_chains >= 0.98 * n else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
