# SPDX-License-Identifier: BSD-2-Clause
"""What every file must or must not contain. The patterns are written so that they do not match themselves."""
import os
import re

MAX_README = 130
MAX_LINES = 600
TOP_LEVEL = {"meson.build", "bpf", "user", "shared", "tools", "tests", "examples", "README.md"}
TOP_LEVEL_EXTRA = {"CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "meson_options.txt"}
C_FILES = (".c", ".h")

MARKER = re.compile(r"\b(?:T[O]DO|F[I]XME|X[X]X)\b")
# Where people and build services keep their checkouts; "x" and "user" are nobody, and /proc/PID/root/tmp is a path in a test.
HOME = re.compile(r"(?<![\w%}>)\]*.])/(?:(?:home|Users)/(?!(?:x|user)/)|root/(?!tmp/)|work/|mnt/|builds?/)[\w.]")
HOST = re.compile(r"(?i)\b(?:https?|ftp)://[^\s/\"'<>]*(?:pypi|pythonhosted|npmjs|crates\.io|golang\.org|"
                  r"(?:deb|ftp|security|snapshot|archive|packages|cdn)[\w.-]*\.(?:debian\.org|ubuntu\.com)|"
                  r"mirror|artifact|nexus|registry|proxy)")
MADE = re.compile(r"(?:^|/)vmlinux\.h$|\.skel\.h$|\.(?:o|a|so|pyc)$|\.so\.\d")


def text_files(tree_):
    for path in tree_.paths:
        data = tree_.data(path)
        if b"\0" not in data:
            yield path, data.decode("utf-8", "replace")


def matches(tree_, pattern):
    return [f"{path}:{number}: {match.group(0)}"
            for path, text in text_files(tree_)
            for number, line in enumerate(text.splitlines(), 1)
            for match in [pattern.search(line)] if match]


def spdx(tree_):
    bad = []
    for path in tree_.paths:
        if path.endswith(C_FILES):
            first = tree_.text(path).split("\n", 1)[0]
            if "SPDX-License-Identifier:" not in first or "BSD-2-Clause" not in first:
                bad.append(f"{path}: the first line has no SPDX-License-Identifier with BSD-2-Clause")
    return bad


def file_length(tree_):
    bad = []
    for path in tree_.paths:
        if path.endswith(C_FILES):
            lines = tree_.text(path).count("\n")
            if lines > MAX_LINES:
                bad.append(f"{path}: {lines} lines, at most {MAX_LINES}")
    return bad


def readme_length(tree_):
    """What a newcomer reads to its end; all else has pages of its own."""
    lines = tree_.text("README.md").count("\n") if tree_.has("README.md") else 0
    return [f"README.md: {lines} lines, at most {MAX_README}"] if lines > MAX_README else []


def top_level(tree_):
    seen = {path.split("/", 1)[0] for path in tree_.paths}
    bad = [f"{name} does not belong there" for name in sorted(seen - TOP_LEVEL - TOP_LEVEL_EXTRA) if not name.startswith(".")]
    return bad + [f"{name} is missing" for name in sorted(TOP_LEVEL - seen)]


def build_paths(tree_):
    bad = matches(tree_, HOME)
    # This checkout's own path too, unless it is so short that it can be a word.
    if tree_.root.count("/") > 1:
        bad += matches(tree_, re.compile(re.escape(tree_.root) + r"(?!\w)"))
    return bad


def package_hosts(tree_):
    return matches(tree_, HOST)


def markers(tree_):
    return matches(tree_, MARKER)


def generated_files(tree_):
    return [path for path in tree_.paths if MADE.search(path)]


def binaries(tree_):
    return [path for path in tree_.paths if b"\0" in tree_.data(path)]


def links(tree_):
    """A link can lead out of the tree, and the checks read what it leads to."""
    return [path for path in tree_.paths if os.path.islink(os.path.join(tree_.root, path))]

CHECKS = [spdx, file_length, readme_length, top_level, build_paths, package_hosts, markers, generated_files, binaries, links]
