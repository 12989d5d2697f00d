#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# --slopes-only says of all lines of a program at once what a little of each is worth: a case of each rule briefly, or with FULL=1 all of them.
# needs: root btf python3
set -uo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")" || exit 1
: "${COZBPF:?the path of cozbpf}" "${BUILD:?the build directory}"
export PYTHONDONTWRITEBYTECODE=1

if [ "${FULL:-0}" -eq 1 ]; then
	exec python3 slopes.py "$COZBPF" "$BUILD/tests/truth" 10 5 2 3
fi
status=0
# Reads 60 to 68 for 55 where the clocks of the CPUs are not in step.
python3 slopes.py "$COZBPF" "$BUILD/tests/truth" 5 4 4 3 shortlived-2ms || status=1
python3 slopes.py "$COZBPF" "$BUILD/tests/truth" 4 12 6 3 independent-2 independent-8 pipeline-5ms lock-inside-mutex-5ms pingpong-pipe-5ms \
	window-futex-5ms pingpong-aio-5ms programs pool-permits-4 pool-cpus-8 || status=1
exit "$status"
