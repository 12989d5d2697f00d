# SPDX-License-Identifier: BSD-2-Clause
"""The outcomes that BPF code counts: each has one name, and is counted somewhere."""
import re

import tree

DEFINITIONS = "shared/counters.def"


def names(tree_):
    if not tree_.has(DEFINITIONS):
        return []
    text = tree.without_comments(tree_.text(DEFINITIONS))
    return re.findall(r"^\s*COUNTER\(\s*(\w+)\s*,", text, re.MULTILINE)


def counters_defined(tree_):
    return [] if names(tree_) else [f"{DEFINITIONS}: no COUNTER(name, text)"]


def counters_unique(tree_):
    found = names(tree_)
    return [f"{name} is defined twice" for name in sorted({n for n in found if found.count(n) > 1})]


def counters_used(tree_):
    code = "\n".join(tree.without_comments(tree_.text(p)) for p in tree_.under("bpf/", ".c", ".h"))
    used = set(re.findall(r"\bCOUNTER_(\w+)\b", code))
    return [f"{name} is counted nowhere in bpf/" for name in names(tree_) if name not in used]

CHECKS = [counters_defined, counters_unique, counters_used]
