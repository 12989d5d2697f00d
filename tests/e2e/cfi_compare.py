# SPDX-License-Identifier: BSD-2-Clause
"""Compares the rows of our reader with the frames that readelf interprets. Usage: cfi_compare.py CFI_ROWS FILE [LEAST-BYTES]. Prints one
line; exits 1 if the two tables differ anywhere."""
import re
import subprocess
import sys

NONE, RSP, RBP, PLT, SIGNAL, END, DRAP = range(7)
CFA = re.compile(r"(rsp|rbp)([+-]\d+)$")
SAVED = re.compile(r"c([+-]\d+)$")
FDE = re.compile(r"[0-9a-f]+ [0-9a-f]+ [0-9a-f]+ FDE cie=([0-9a-f]+) pc=([0-9a-f]+)\.\.([0-9a-f]+)")
CIE = re.compile(r"([0-9a-f]+) [0-9a-f]+ [0-9a-f]+ CIE \"([^\"]*)\"")
UNKNOWN = (NONE, 0, 0)


def rule(columns, fields, signal):
    """What a row can say of readelf's columns; an expression is None: a stub's, an aligned stack's, or one that rows do not know."""
    d = dict(zip(columns, fields))
    if signal:
        return (SIGNAL, 0, 0)
    if d.get("ra") == "u":
        return (END, 0, 0)
    if d.get("ra") != "c-8":
        return UNKNOWN
    slot = 0
    rbp = d.get("rbp", "u")
    if d["CFA"] == rbp == "exp":
        return None
    if rbp not in ("u", "s"):
        m = SAVED.match(rbp)
        if not m or int(m.group(1)) % 8 or not -128 <= int(m.group(1)) // 8 <= 127 or int(m.group(1)) == 0:
            return UNKNOWN
        slot = int(m.group(1)) // 8
    if d["CFA"] == "exp":
        return None
    m = CFA.match(d["CFA"])
    if not m or not -32768 <= int(m.group(2)) <= 32767:
        return UNKNOWN
    return (RSP if m.group(1) == "rsp" else RBP, int(m.group(2)), slot)


def entries(path):
    """(start, end, rows) of each FDE; rows are (pc, rule)."""
    readelf = subprocess.Popen(["readelf", "--debug-dump=frames-interp", "-W", path], stdout=subprocess.PIPE, text=True,
                               errors="replace", stderr=subprocess.DEVNULL)
    cies, current, columns, fde, signal = {}, None, [], None, False
    for line in readelf.stdout:
        head = line[:1]
        if line.startswith("   LOC"):
            columns = line.split()[1:]
        elif " FDE " in line:
            if fde:
                yield fde
            m = FDE.match(line)
            initial, signal = cies[m.group(1)]
            start = int(m.group(2), 16)
            fde = (start, int(m.group(3), 16), [(start, initial)])
            current = None
        elif " CIE " in line:
            if fde:
                yield fde
            fde = None
            m = CIE.match(line)
            current, signal = m.group(1), "S" in m.group(2)
            cies[current] = ((SIGNAL, 0, 0) if signal else UNKNOWN, signal)
        elif line[16:17] == " " and head in "0123456789abcdef":
            fields = re.sub(r" \(\w+\)", "", line).split()  # "r10 (r10)": one column
            row = rule(columns, fields[1:], signal)
            if current:
                cies[current] = (row, signal)
            elif fde:
                fde[2].append((int(fields[0], 16), row))
    if fde:
        yield fde
    readelf.wait()  # fails, too, where the separate debug information that a file names is not installed


def table(path):
    """One rule a pc, without holes, equal neighbours joined."""
    out = []
    last = None

    def put(pc, row):
        nonlocal last
        if out and out[-1][0] == pc:
            out.pop()
            last = out[-1][1] if out else None
        if not out or row != last:
            out.append((pc, row))
            last = row

    for start, end, rows in sorted((f for f in entries(path) if f[0]), key=lambda f: f[0]):
        for pc, row in rows:
            if start <= pc < end:
                put(pc, row)
        put(end, UNKNOWN)
    return out


def ours(tool, path):
    lines = subprocess.run([tool, path], capture_output=True, text=True, check=True).stdout.splitlines()
    rows = []
    for line in lines[1:]:
        pc, kind, offset, slot = line.split()
        kind = int(kind)
        # readelf does not say which expression it was.
        rows.append((int(pc, 16), (kind, int(offset), int(slot)) if kind not in (PLT, DRAP) else None))
    # Ours begins at the first byte of code.
    if rows and rows[0][1] == UNKNOWN:
        rows.pop(0)
    return lines[0][2:], rows


def frame_bytes(path):
    text = subprocess.run(["readelf", "-SW", path], capture_output=True, text=True, check=True).stdout
    m = re.search(r" \.eh_frame +\S+ +[0-9a-f]+ [0-9a-f]+ ([0-9a-f]+)", text)
    return int(m.group(1), 16) if m else 0


def main():
    tool, path = sys.argv[1:3]
    size = frame_bytes(path)
    if size < int(sys.argv[3] if len(sys.argv) > 3 else 1):
        return f"{path} has only {size} bytes of .eh_frame"
    expected = table(path)
    said, got = ours(tool, path)
    # An expression that rows do not know is no row in ours: join what that makes equal.
    known = {pc for pc, row in got if row is None}
    joined = []
    for pc, row in expected:
        row = UNKNOWN if row is None and pc not in known else row
        if not joined or joined[-1][1] != row:
            joined.append((pc, row))
    for want, have in zip(joined, got):
        if want != have:
            return f"{path}: readelf says {want[0]:x} {want[1]}, we {have[0]:x} {have[1]}"
    if len(joined) != len(got):
        return f"{path}: {len(joined)} rows by readelf, {len(got)} by us"
    if not got:
        return f"{path}: no rows"
    print(f"{path}: {size} bytes, {said}, {len(got)} equal readelf's")
    return 0


if __name__ == "__main__":
    sys.exit(main())
