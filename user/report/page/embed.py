#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""embed.py CSS JS HEADER: makes a C header of a page's style and script, with the hashes by which its security policy names them."""

import base64
import hashlib
import sys


def embed(name, path):
    with open(path, "rb") as f:
        data = f.read()
    if b"</" in data:
        sys.exit(f"{path}: '</' would end the element that it stands in")
    digest = base64.b64encode(hashlib.sha256(data).digest()).decode()
    rows = [", ".join(str(b) for b in data[i : i + 32]) for i in range(0, len(data), 32)]
    return f'#define {name.upper()}_HASH "sha256-{digest}"\nstatic const char {name}[] = {{\n' + ",\n".join(rows) + ", 0};\n"


css, script, header = sys.argv[1:]
with open(header, "w", encoding="ascii") as out:
    out.write("/* Made by embed.py. */\n#pragma once\n\n" + embed("page_css", css) + embed("page_js", script))
