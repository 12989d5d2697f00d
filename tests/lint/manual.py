# SPDX-License-Identifier: BSD-2-Clause
"""Compares the manual pages with what they describe. Usage: manual.py ROOT COZBPF. Prints "ok NAME" or "not ok NAME: WHY"."""
import os
import re
import subprocess
import sys

import tree

COMMANDS = ("run", "attach", "system", "report", "diff", "merge", "export", "validate", "check", "list", "collect", "top", "annotate")


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def page(folder, name):
    """The text of a page, with what it includes."""
    text = read(os.path.join(folder, name))
    return re.sub(r"^\.\. include:: (\S+)$", lambda m: read(os.path.join(folder, m[1])), text, flags=re.MULTILINE)


def described(text):
    """The options of a page: the terms of its lists that begin with a dash."""
    terms = [line for line in text.splitlines() if line.startswith("-") and not set(line) <= {"-"} and not line.startswith("- ")]
    return {word for line in terms for word in re.findall(r"(?:^|, )(--?[a-z][a-z-]*)", line)}


def printed(cozbpf, command):
    """The options of a command's --help."""
    text = subprocess.run([cozbpf, command, "--help"], stdout=subprocess.PIPE, check=True, text=True).stdout
    return {word for line in text.splitlines() for word in re.findall(r"^ {2,6}(-[a-z])(?=, --)", line) + re.findall(r"^ {2,6}(?:-[a-z], )?(--[a-z-]+)", line)}


def keys(fields):
    """The keys of the records."""
    code = tree.without_comments(fields)
    code = re.sub(r"^#.*(?:\\\n.*)*$", "", code, flags=re.MULTILINE)
    return set(re.findall(r"\b[XSPL]\((\w+),", code)) | set(re.findall(r"\bFIELD\(\w+, (\w+),", code))


def sums(text):
    return set(re.findall(r"^SUM\(\w+, (\w+),", text, re.MULTILINE))


def defined(text):
    """The terms of a page's definition lists."""
    lines = text.splitlines()
    terms = [a for a, b in zip(lines, lines[1:]) if re.fullmatch(r"[a-z][a-z0-9_]*(, [a-z][a-z0-9_]*)*", a) and b.startswith("    ")]
    return {word for line in terms for word in line.split(", ")}


def differences(here, there, what):
    return [f"{word} is {what[0]}" for word in sorted(here - there)] + [f"{word} is {what[1]}" for word in sorted(there - here)]


def builds(path):
    done = subprocess.run(["rst2man", "--halt=2", "--report=2", path, os.devnull], stderr=subprocess.PIPE, check=False, text=True)
    return [line for line in done.stderr.splitlines() if line.strip()] or ([f"exit status {done.returncode}"] if done.returncode else [])


def main():
    root, cozbpf = sys.argv[1:]
    folder = os.path.join(root, "user/cli/man")
    found = {}
    for name in sorted(os.listdir(folder)):
        if re.search(r"\.[0-9]\.rst$", name):
            found[f"{name} builds"] = builds(os.path.join(folder, name))
    for command in COMMANDS:
        found[f"options of {command}"] = differences(
            printed(cozbpf, command), described(page(folder, f"cozbpf-{command}.1.rst")), ("not in the manual", "not in --help")
        )
    found["keys of profiles"] = differences(
        keys(read(os.path.join(root, "user/profile/fields.c"))) | sums(read(os.path.join(root, "shared/sums.def"))) | {"histogram128"},
        defined(page(folder, "cozbpf-profile.5.rst")),
        ("not in the manual", "not in user/profile/fields.c and shared/sums.def"),
    )
    for name, violations in found.items():
        for detail in violations:
            print(f"not ok {name}: {detail}")
        if not violations:
            print(f"ok {name}")
    return any(found.values())


if __name__ == "__main__":
    sys.exit(main())
