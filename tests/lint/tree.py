# SPDX-License-Identifier: BSD-2-Clause
"""The files under check."""
import os
import re


class Tree:
    """Paths are relative to the root, with forward slashes."""

    def __init__(self, root, paths):
        self.root = os.path.abspath(root)
        self.paths = sorted(p for p in paths if os.path.isfile(os.path.join(self.root, p)))
        self._known = set(self.paths)

    def has(self, path):
        return path in self._known

    def under(self, folder, *suffixes):
        return [p for p in self.paths if p.startswith(folder) and (not suffixes or p.endswith(suffixes))]

    def data(self, path):
        with open(os.path.join(self.root, path), "rb") as f:
            return f.read()

    def text(self, path):
        return self.data(path).decode("utf-8", "replace")


def without_comments(text):
    """C text with its comments blanked; strings are kept, so that "//" in one is not taken for a comment."""
    pattern = r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|/\*.*?\*/|//[^\n]*'

    def blank(match):
        found = match.group(0)
        if found[0] in "\"'":
            return found
        return re.sub(r"[^\n]", " ", found)

    return re.sub(pattern, blank, text, flags=re.DOTALL)
