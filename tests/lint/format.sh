#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# All C is as clang-format 14 writes it with our .clang-format (other versions write some of it otherwise). To format:
#   tests/lint/format.sh --write
# Left alone is what has lines that tests name: examples, and the programs of e2e and truth.
# needs: package:clang-format-14
# beside: others
set -uo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." || exit 1

sources() {
	find user bpf shared tests/unit tests/bpf tests/fuzz tools -type f -name '*.[ch]' -print0 | sort -z
}

if [ "${1:-}" = --write ]; then
	sources | xargs -0 clang-format-14 -i
	exit
fi
found=$(sources | xargs -0 clang-format-14 --dry-run 2>&1 | sed -n 's/^\([^:]*:[0-9]*\):.*/\1/p' | head -n 20)
if [ -z "$found" ]; then
	echo 'ok formatted'
	exit 0
fi
sed 's|$|: not as clang-format writes it (tests/lint/format.sh --write)|; s|^|not ok formatted: |' <<<"$found"
exit 1
