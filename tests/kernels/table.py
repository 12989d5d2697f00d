# SPDX-License-Identifier: BSD-2-Clause
"""Makes the table kernel x feature from guests' results: table.py [--write FILE], with lines "NAME|PACKAGE|RESULT" on standard input. Prints it,
or, with --write, also puts it into FILE between the lines that say where."""
import re
import sys

BEGIN, END = "<!-- kernels: made by tests/run kernels --write-table -->", "<!-- kernels: end -->"
VERDICT = re.compile(r"@@ (ok|refused|failed) ([^:\n]*)(?:: *(.*))?")


def results(path):
    """What each feature came to, in the guest's order: (state, detail) by name."""
    with open(path, encoding="utf-8", errors="replace") as lines:
        found = (VERDICT.fullmatch(line.rstrip("\n")) for line in lines)
        return {m[2]: (m[1], m[3] or "") for m in found if m}


def version_of(package):
    return re.sub(r"^linux-(?:image|binary)-|-(?:cloud|rt)-amd64$", "", package)


def table(kernels):
    features = list(dict.fromkeys(name for _, _, found in kernels for name in found))
    notes = []

    def cell(found, name):
        if name not in found:
            return ""
        state, detail = found[name]
        if state != "refused":
            return {"ok": "ok", "failed": "FAILED"}[state]
        if detail not in notes:
            notes.append(detail)
        return f"no ({notes.index(detail) + 1})"

    rows = [["", *(name for name, _, _ in kernels)], ["---"] * (len(kernels) + 1)]
    rows += [["package's version", *(version_of(package) for _, package, _ in kernels)]]
    rows += [[name, *(cell(found, name) for _, _, found in kernels)] for name in features]
    text = "".join(f"| {' | '.join(row)} |\n" for row in rows)
    return text + "".join(f"\n({number}) {note}\n" for number, note in enumerate(notes, 1))


def write(path, text):
    with open(path, encoding="utf-8") as file:
        before, found, rest = file.read().partition(BEGIN + "\n")
    _, ended, after = rest.partition(END + "\n")
    if not found or not ended:
        sys.exit(f"{path}: the lines are missing between which the table stands: {BEGIN} and {END}")
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"{before}{BEGIN}\n{text}{END}\n{after}")


def main():
    kernels = {}
    for line in sys.stdin:
        name, package, path = line.rstrip("\n").split("|")
        kernels.setdefault((name, package), {}).update(results(path))
    text = table([(name, package, found) for (name, package), found in kernels.items()])
    print(text, end="")
    if sys.argv[1:2] == ["--write"]:
        write(sys.argv[2], text)


if __name__ == "__main__":
    main()
