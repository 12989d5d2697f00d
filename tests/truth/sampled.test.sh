#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# sampled:FILE:LINE and sampled:FUNCTION say what the exact point says: one case briefly, or with FULL=1 all of them against the bar, 3 points.
# needs: root btf python3
# tier: full
set -uo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")" || exit 1
: "${COZBPF:?the path of cozbpf}" "${BUILD:?the build directory}"
export PYTHONDONTWRITEBYTECODE=1

if [ "${FULL:-0}" -eq 1 ]; then
	exec python3 sampled.py "$COZBPF" "$BUILD/tests/truth" 30 3 3
fi
exec python3 sampled.py "$COZBPF" "$BUILD/tests/truth" 8 10 1 pingpong-mutex-5ms/a
