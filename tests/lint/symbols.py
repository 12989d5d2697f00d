# SPDX-License-Identifier: BSD-2-Clause
"""What the libraries of a build call of each other, against the rules for includes: a declaration
that was copied, or passed on by a header, hides an arrow from those.

usage: symbols.py BUILD, which has user/FOLDER/libNAME.a. Prints "ok" or "not ok" for each folder."""
import glob
import os
import subprocess
import sys

from layers import ALLOWED


def symbols(library):
    """Names that the library defines for others, and those that it needs."""
    defined, needed = set(), set()
    out = subprocess.run(["nm", "-g", library], capture_output=True, text=True, check=True).stdout
    for line in out.splitlines():
        kind, _, name = line[17:].partition(" ")
        if kind in ("U", "w"):
            needed.add(name)
        elif kind and kind in "TDBRVWC":
            defined.add(name)
    return defined, needed


def main(build):
    libraries = {}
    for path in sorted(glob.glob(f"{build}/user/**/lib*.a", recursive=True)):
        folder = os.path.relpath(os.path.dirname(path), f"{build}/user")
        # The shim's images are programs of their own, which are embedded; generated code is no folder's.
        if not path.endswith(("_image.a", "_images.a", "_proto.a")):
            libraries[folder] = symbols(path)
    owners = {name: folder for folder, (defined, _) in libraries.items() for name in defined}
    bad = not libraries
    for folder, (_, needed) in libraries.items():
        allowed = {a if a in ALLOWED else os.path.dirname(a) for a in ALLOWED.get(folder, [])}
        wrong = [
            f"{owners[name]} ({name})"
            for name in sorted(needed)
            if owners.get(name, folder) not in allowed | {folder}
        ]
        print(f"not ok symbols of {folder}: it must not use {', '.join(wrong)}" if wrong
              else f"ok symbols of {folder}")
        bad = bad or bool(wrong)
    if not libraries:
        print(f"not ok symbols: no libraries in {build}/user")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
