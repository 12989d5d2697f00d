# SPDX-License-Identifier: BSD-2-Clause
"""Makes the table kernel x feature from guests' results: table.py [--write FILE], with lines "NAME|PACKAGE|RESULT" on standard input. Prints it,
or, with --write, also puts it into FILE between the lines that say where. Columns that stand there and were not tried now stay."""
import datetime
import os
import re
import sys

BEGIN, END = "<!-- kernels: made by tests/run kernels --write-table -->", "<!-- kernels: end -->"
VERDICT = re.compile(r"@@ (ok|refused|failed) ([^:\n]*)(?:: *(.*))?")
PACKAGE, TRIED = "package's version", "tried"


def version_of(package):
    return re.sub(r"^linux-(?:image|binary)-|-(?:cloud|rt)-amd64$", "", package)


def column_of(package, paths):
    """The cells of a column, in the guest's order; a refusal is its reason in a tuple of one."""
    day = datetime.date.fromtimestamp(max(os.path.getmtime(path) for path in paths))
    column = {PACKAGE: version_of(package), TRIED: f"{day:%Y-%m}"}
    for path in paths:
        with open(path, encoding="utf-8", errors="replace") as lines:
            found = [m for m in (VERDICT.fullmatch(line.rstrip("\n")) for line in lines) if m]
        for m in found:
            column[m[2]] = {"ok": "ok", "failed": "FAILED"}.get(m[1], (m[3] or "",))
    return column


def columns_of(text):
    """Those of a table that was written before, by name."""
    notes = {m[1]: (m[2],) for m in re.finditer(r"^\((\d+)\) (.*)$", text, re.MULTILINE)}
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("|")]
    if not rows:
        return {}
    columns = {name: {} for name in rows[0][1:]}
    for feature, *cells in rows[2:]:
        for name, cell in zip(columns, cells):
            refused = re.fullmatch(r"no \((\d+)\)", cell)
            if cell:
                columns[name][feature] = notes[refused[1]] if refused else cell
    return columns


def in_order(columns):
    """The features of all columns, each after the one that stands before it in its column."""
    features = []
    for column in columns:
        at = 0
        for name in column:
            if name not in features:
                features.insert(at, name)
            at = features.index(name) + 1
    return features


def version(name):
    return [int(part) for part in re.match(r"[\d.]+", name)[0].split(".")]


def table(columns):
    columns = dict(sorted(columns.items(), key=lambda item: version(item[0])))
    notes = []

    def cell(value):
        if not isinstance(value, tuple):
            return value
        if value not in notes:
            notes.append(value)
        return f"no ({notes.index(value) + 1})"

    rows = [["", *columns], ["---"] * (len(columns) + 1)]
    rows += [[name, *(cell(column.get(name, "")) for column in columns.values())] for name in in_order(columns.values())]
    text = "".join(f"| {' | '.join(row)} |\n" for row in rows)
    return text + "".join(f"\n({number}) {note}\n" for number, (note,) in enumerate(notes, 1))


def write(path, columns):
    with open(path, encoding="utf-8") as file:
        before, found, rest = file.read().partition(BEGIN + "\n")
    old, ended, after = rest.partition(END + "\n")
    if not found or not ended:
        sys.exit(f"{path}: the lines are missing between which the table stands: {BEGIN} and {END}")
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"{before}{BEGIN}\n{table({**columns_of(old), **columns})}{END}\n{after}")


def main():
    guests = {}
    for line in sys.stdin:
        name, package, path = line.rstrip("\n").split("|")
        guests.setdefault((name, package), []).append(path)
    columns = {name: column_of(package, paths) for (name, package), paths in guests.items()}
    print(table(columns), end="")
    if sys.argv[1:2] == ["--write"]:
        write(sys.argv[2], columns)


if __name__ == "__main__":
    main()
