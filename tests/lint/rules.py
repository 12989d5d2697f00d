# SPDX-License-Identifier: BSD-2-Clause
"""The rules of the ledger: comments cite them by number, and the page that states them names the functions that do them."""
import re

import tree

PAGE = "bpf/README.md"
CODE = (".c", ".h", ".def")


def tables(text):
    """Each table of a page: its rows, the head first, as lists of cells."""
    for block in re.findall(r"(?:^\|.*\n)+", text + "\n", re.MULTILINE):
        yield [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in block.splitlines()]


def listed(page):
    """The rules, and the functions of all tables that have a column for them."""
    rules, functions = set(), set()
    for rows in tables(page):
        for row in rows[2:]:
            if rows[0][0] == "rule":
                rules.add(row[0])
            if "function" in rows[0]:
                functions |= set(re.findall(r"`(\w+)`", row[rows[0].index("function")]))
    return rules, functions


def page_of(tree_):
    return listed(tree_.text(PAGE)) if tree_.has(PAGE) else (set(), set())


def rules_listed(tree_):
    rules, _ = page_of(tree_)
    violations = [] if rules else [f"{PAGE}: no table with a column 'rule'"]
    for path in tree_.under("", *CODE):
        for number, (line, code) in enumerate(zip(tree_.text(path).splitlines(), tree.without_comments(tree_.text(path)).splitlines()), 1):
            # A comment is blank in the code.
            cited = {m[0] for m in re.finditer(r"\bR\d+\b", line) if code[m.start() : m.end()].isspace()}
            violations += [f"{path}:{number}: {rule} is not in the table of {PAGE}" for rule in sorted(cited - rules)]
    return violations


def rules_functions(tree_):
    _, functions = page_of(tree_)
    code = "\n".join(tree.without_comments(tree_.text(p)) for p in tree_.under("bpf/", *CODE))
    return [f"{PAGE}: there is no function {name} in bpf/" for name in sorted(functions) if not re.search(rf"\b{name}\b", code)]


CHECKS = [rules_listed, rules_functions]
