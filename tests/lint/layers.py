# SPDX-License-Identifier: BSD-2-Clause
"""Who may include whom."""
import posixpath
import re

import tree

# Rooms, from the bottom to the top: a room uses only rooms below it.
ROOMS = (
    "shared", "base", "target", "program", "profile", "analysis", "annotate", "kernel", "points",
    "experiment", "collect", "report", "cli",
)

# What each folder may include beside its own headers: a folder, or one header of it.
ALLOWED = {
    "base": ["shared/waits.def"],
    "base/sandbox": ["base"],
    # The preload hands over the pages that the shim maps.
    "target": [
        "base/sandbox/opener.h", "base", "shared/shim_abi.h", "shared/shim_first.h",
        "shared/shim_launch.h",
    ],
    "target/shim": [
        "shared/raw_call.h", "shared/shim_abi.h", "shared/shim_first.h", "shared/shim_launch.h",
    ],
    "program/elf": ["base/sandbox", "base", "shared/abi.h"],
    "program/dwarf": ["program/elf", "base"],
    "program/decoder": ["program/dwarf", "program/elf", "base/sandbox", "base"],
    "program/code": ["target", "program/dwarf", "program/elf", "base", "shared/abi.h"],
    # The layout of histograms is the kernel side's and the file format's.
    "profile": ["base", "shared/histogram.h", "shared/sums.def"],
    "analysis": ["profile", "base", "shared/histogram.h", "shared/sums.def"],
    "annotate": ["program/elf", "base/sandbox/confine.h", "base"],
    "kernel": ["target", "program/elf", "base", "shared", "profile"],
    "kernel/counting": [
        "annotate", "kernel", "program/code/map.h", "target/syscalls.h", "program/elf", "base",
        "shared",
    ],
    "kernel/calibration": ["base", "shared"],
    "points": [
        "kernel", "program/code", "program/dwarf", "program/elf", "base",
        "shared",
    ],
    "experiment": ["kernel/backend.h", "profile", "base", "shared/abi.h", "shared/sums.def"],
    "experiment/session": [
        "points", "kernel/calibration", "kernel",
        "program/code", "target", "program/dwarf", "program/elf", "base", "shared",
        "target/shim/image.h",
    ],
    "collect/database": ["base"],
    "collect/shares": ["collect/database", "program/code", "program/dwarf", "program/elf", "base"],
    "collect": [
        "collect/database", "kernel/namespace.h", "kernel/programs.h", "kernel/refusal.h",
        "program/code/kernel_parts.h", "program/elf", "base/sandbox/opener.h", "base", "shared",
    ],
    "report": [
        "collect/shares/shares.h", "collect/shares/code.h", "annotate", "program/dwarf/lines.h",
        "program/elf/object.h", "analysis", "profile", "base/sandbox/opener.h", "base",
        "shared/histogram.h", "shared/sums.def",
    ],
    "report/export": [
        "collect/shares/shares.h", "collect/database", "profile", "base", "shared/sums.def",
    ],
    "cli/options": [
        "points/point_spec.h", "kernel/backend.h", "profile", "target", "program/elf", "base",
        "shared",
    ],
    "cli/run": [
        "cli/options", "report", "analysis", "experiment/session", "points", "kernel/counting",
        "kernel", "experiment", "profile", "program/code", "target", "program/decoder",
        "program/dwarf", "program/elf", "base/sandbox/opener.h", "base", "shared",
        "target/shim/image.h",
    ],
    "cli/cmd": [
        "cli/run", "cli/options", "collect", "kernel/counting", "report",
        "collect/shares/shares.h", "annotate", "collect/database", "report/export", "analysis",
        "experiment/session", "points", "kernel", "experiment", "profile", "program/code",
        "target", "program/decoder", "program/dwarf", "program/elf", "base/sandbox/opener.h",
        "base", "shared", "target/shim/image.h",
    ],
    "shared": [],
    "bpf": ["shared"],
}

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:(["<])([^">\n]+)[">]|(\S+))', re.MULTILINE)
SOURCES = (".c", ".h", ".S", ".def")


def package(path):
    """The folder with a rule that a path is in; its room where there is none; None outside of them
    (tests, tools, examples)."""
    parts = path.split("/")
    if parts[0] != "user" or len(parts) < 3:
        return parts[0] if parts[0] in ("bpf", "shared") else None
    inner = "/".join(parts[1:3])
    return inner if inner in ALLOWED else parts[1]


def folders_in_order():
    """Folders whose rule lets them use one that does not stand above it in ALLOWED, which goes from
    the bottom to the top, room by room: so there is no circle, within a room neither."""
    order = ["shared", *(f for f in ALLOWED if f not in ("shared", "bpf"))]
    bad = []
    for height, own in enumerate(order):
        for other in ALLOWED[own]:
            folder = other if other in ALLOWED else posixpath.dirname(other)
            if folder not in order[:height]:
                bad.append(f"tests/lint/layers.py: {own} must not use {other}: it is not below it")
    rooms = [f.split("/")[0] for f in order]
    if list(dict.fromkeys(rooms)) != list(ROOMS) or rooms != sorted(rooms, key=ROOMS.index):
        bad.append("tests/lint/layers.py: folders are not in the order of their rooms")
    return bad


def includes(tree_, path):
    """(line number, quoted, name) of each include; a computed one has no name."""
    text = tree.without_comments(tree_.text(path))
    for match in INCLUDE.finditer(text):
        yield text.count("\n", 0, match.start()) + 1, match.group(1) == '"', match.group(2)


def resolve(tree_, path, quoted, name):
    """The included file of the tree, as the compiler would find it, or None."""
    folders = ([posixpath.dirname(path)] if quoted else []) + ["", "user"]
    for folder in folders:
        candidate = posixpath.normpath(posixpath.join(folder, name))
        if tree_.has(candidate):
            return candidate
    return None


def ruled_files(tree_):
    return [p for p in tree_.paths if p.endswith(SOURCES) and package(p)]


def layering(tree_):
    bad = folders_in_order()
    for path in ruled_files(tree_):
        own = package(path)
        if own not in ALLOWED:
            bad.append(f"{path}: package {own} has no rule in tests/lint/layers.py")
            continue
        for line, quoted, name in includes(tree_, path):
            if name is None:
                # Assembly includes what the build made, to embed it.
                if not path.endswith(".S"):
                    bad.append(f"{path}:{line}: computed include")
                continue
            target = resolve(tree_, path, quoted, name)
            if target is None:
                # Not in the tree: a system header, one made by the build, or a package's that is missing.
                if name.split("/")[0] in ROOMS and quoted:
                    bad.append(f"{path}:{line}: {name} does not exist")
                continue
            other = package(target)
            short = target[len("user/"):] if target.startswith("user/") else target
            if other != own and other not in ALLOWED[own] and short not in ALLOWED[own]:
                bad.append(f"{path}:{line}: {own} must not include {name}")
    return bad


README = "user/README.md"


def readme_agrees(tree_):
    """The page's table has a row for each folder, in the same order."""
    if not tree_.has(README):
        return [f"{README} is missing"]
    rows = re.findall(r"^\| `([a-z/]+)/` \|", tree_.text(README), re.MULTILINE)
    folders = [f for f in ALLOWED if f not in ("shared", "bpf")]
    bad = [f"{README}: no row for {f}/" for f in folders if f not in rows]
    bad += [f"{README}: {f}/ has no rule in tests/lint/layers.py" for f in rows if f not in folders]
    if not bad and rows != folders:
        bad.append(f"{README}: folders are not in the order of tests/lint/layers.py")
    return bad


# Who knows of BPF.
BPF_SIDE = ("kernel", "kernel/counting", "points", "experiment/session", "collect")


def skeletons_in_bpf_side_only(tree_):
    return [f"{path}:{line}: {name}"
            for path in tree_.paths if path.endswith(SOURCES) and package(path) not in BPF_SIDE and not path.startswith("tests/")
            for line, _, name in includes(tree_, path) if name and name.endswith(".skel.h")]


def libdwarf_in_dwarf_only(tree_):
    """But for DWARF's numbers, which call frame information uses as well."""
    return [f"{path}:{line}: {name}"
            for path in tree_.paths if path.endswith(SOURCES) and package(path) != "program/dwarf" and not path.startswith("tests/")
            for line, _, name in includes(tree_, path)
            if name and (posixpath.basename(name) == "libdwarf.h" or posixpath.basename(name) == "dwarf.h" and package(path) != "program/elf")]


def libbpf_in_bpf_side_only(tree_):
    """The kernel side has its own rule."""
    return [f"{path}:{line}: {name}"
            for path in tree_.paths
            if path.endswith(SOURCES) and package(path) not in (*BPF_SIDE, "bpf") and not path.startswith("tests/")
            for line, quoted, name in includes(tree_, path)
            if name and name.startswith("bpf/") and not resolve(tree_, path, quoted, name)]


def bpf_headers(tree_):
    """BPF programs have no libc; of libbpf only the headers for the kernel side."""
    kernel_side = re.compile(r"bpf/bpf_(helpers|helper_defs|tracing|core_read|endian)\.h|std(bool|def|arg)\.h")
    return [f"{path}:{line}: {name}"
            for path in tree_.under("bpf/", *SOURCES)
            for line, quoted, name in includes(tree_, path)
            if name and not resolve(tree_, path, quoted, name) and not kernel_side.fullmatch(name)]


def shim_uses_libc_only(tree_):
    foreign = re.compile(r"(bpf|libdwarf|json-c|libsmartcols)/|(libelf|gelf|libdwarf|dwarf|uthash|libdeflate|zlib|cmocka|demangle)\.h")
    return [f"{path}:{line}: {name}"
            for path in tree_.under("user/target/shim/", *SOURCES)
            for line, _, name in includes(tree_, path) if name and foreign.match(name)]

CHECKS = [layering, readme_agrees, skeletons_in_bpf_side_only, libdwarf_in_dwarf_only, libbpf_in_bpf_side_only, bpf_headers, shim_uses_libc_only]
