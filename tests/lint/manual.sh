#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The manual pages: they build without a warning, and name the options and keys that there are, no more and no fewer.
# needs: rst2man
# beside: others
set -uo pipefail
: "${SRC:?the source directory}" "${COZBPF:?the executable}"
exec python3 "$SRC/tests/lint/manual.py" "$SRC" "$COZBPF"
