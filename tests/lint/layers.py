# SPDX-License-Identifier: BSD-2-Clause
"""Who may include whom."""
import posixpath
import re

import tree

# What each package may include beside itself: a package, or one header of it.
ALLOWED = {
    "base": ["shared/waits.def"],
    # The layout of histograms is the kernel side's and the file format's.
    "profile": ["base", "shared/histogram.h", "shared/sums.def"],
    "analysis": ["profile", "base", "shared/histogram.h", "shared/sums.def"],
    "database": ["base"],
    "shares": ["database", "code", "dwarf", "elf", "base"],
    "report": ["shares/shares.h", "shares/code.h", "annotate", "dwarf/lines.h", "elf/object.h", "analysis", "profile", "sandbox/opener.h", "base", "shared/histogram.h", "shared/sums.def"],
    "export": ["shares/shares.h", "database", "profile", "base", "shared/sums.def"],
    "sandbox": ["base"],
    "elf": ["sandbox", "base", "shared/abi.h"],
    "annotate": ["elf", "sandbox/confine.h", "base"],
    "dwarf": ["elf", "base"],
    "decoder": ["dwarf", "elf", "sandbox", "base"],
    # The preload hands over the pages that the shim maps.
    "target": ["sandbox/opener.h", "base", "shared/shim_abi.h", "shared/shim_first.h", "shared/shim_launch.h"],
    "code": ["target", "dwarf", "elf", "base", "shared/abi.h"],
    "kernel": ["target", "elf", "base", "shared"],
    "counting": ["annotate", "kernel", "code/map.h", "target/syscalls.h", "elf", "base", "shared"],
    "calibration": ["base", "shared"],
    # Of experiments, the interface that the session implements.
    "points": ["experiment/backend.h", "kernel", "code", "dwarf", "elf", "base", "shared"],
    "session": ["points", "calibration", "kernel", "experiment/backend.h", "code", "target", "dwarf", "elf", "base", "shared", "shim/image.h"],
    "collect": ["database", "kernel/namespace.h", "kernel/programs.h", "kernel/refusal.h", "code/kernel_parts.h", "elf", "sandbox/opener.h", "base", "shared"],
    "experiment": ["profile", "base", "shared/abi.h", "shared/sums.def"],
    "options": ["experiment/backend.h", "profile", "target", "elf", "base", "shared"],
    "run": ["options", "report", "analysis", "session", "points", "counting", "kernel", "experiment", "profile", "code", "target", "decoder", "dwarf",
            "elf", "sandbox/opener.h", "base", "shared", "shim/image.h"],
    "cmd": ["run", "options", "collect", "counting", "report", "shares/shares.h", "annotate", "database", "export", "analysis", "session", "points", "kernel", "experiment", "profile", "code", "target", "decoder",
            "dwarf", "elf", "sandbox/opener.h", "base", "shared", "shim/image.h"],
    "shim": ["shared/raw_call.h", "shared/shim_abi.h", "shared/shim_first.h", "shared/shim_launch.h"],
    "shared": [],
    "bpf": ["shared"],
}

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:(["<])([^">\n]+)[">]|(\S+))', re.MULTILINE)
SOURCES = (".c", ".h", ".S", ".def")


def package(path):
    """The package of a path of the tree, or None where no rule applies (tests, tools, examples)."""
    parts = path.split("/")
    if parts[0] == "user" and len(parts) > 2:
        return parts[1]
    return parts[0] if parts[0] in ("bpf", "shared") else None


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
    bad = []
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
                if name.split("/")[0] in ALLOWED and quoted:
                    bad.append(f"{path}:{line}: {name} does not exist")
                continue
            other = package(target)
            short = target[len("user/"):] if target.startswith("user/") else target
            if other != own and other not in ALLOWED[own] and short not in ALLOWED[own]:
                bad.append(f"{path}:{line}: {own} must not include {name}")
    return bad


README = "user/README.md"


def readme_agrees(tree_):
    """The table of packages says the same, from the bottom to the top: so there can be no circle of packages."""
    if not tree_.has(README):
        return [f"{README} is missing"]
    bad, seen = [], ["shared"]
    for name, used in re.findall(r"^\| `(\w+)` \|.*\|([^|]*)\|$", tree_.text(README), re.MULTILINE):
        used = re.findall(r"`(\w+)`", used)
        allowed = {other.split("/")[0] for other in ALLOWED.get(name, [])}
        if set(used) != allowed:
            bad.append(f"{README}: {name} uses {', '.join(sorted(used))}; by tests/lint/layers.py {', '.join(sorted(allowed))}")
        bad += [f"{README}: {name} uses {other}, which must stand above it" for other in used if other not in seen]
        seen.append(name)
    return bad + [f"{README}: no row for {name}" for name in ALLOWED if name not in (*seen, "bpf")]


# Who knows of BPF.
BPF_SIDE = ("kernel", "counting", "points", "session", "collect")


def skeletons_in_bpf_side_only(tree_):
    return [f"{path}:{line}: {name}"
            for path in tree_.paths if path.endswith(SOURCES) and package(path) not in BPF_SIDE and not path.startswith("tests/")
            for line, _, name in includes(tree_, path) if name and name.endswith(".skel.h")]


def libdwarf_in_dwarf_only(tree_):
    """But for DWARF's numbers, which call frame information uses as well."""
    return [f"{path}:{line}: {name}"
            for path in tree_.paths if path.endswith(SOURCES) and package(path) != "dwarf" and not path.startswith("tests/")
            for line, _, name in includes(tree_, path)
            if name and (posixpath.basename(name) == "libdwarf.h" or posixpath.basename(name) == "dwarf.h" and package(path) != "elf")]


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
            for path in tree_.under("user/shim/", *SOURCES)
            for line, _, name in includes(tree_, path) if name and foreign.match(name)]

CHECKS = [layering, readme_agrees, skeletons_in_bpf_side_only, libdwarf_in_dwarf_only, libbpf_in_bpf_side_only, bpf_headers, shim_uses_libc_only]
