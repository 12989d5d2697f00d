#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Percentiles of programs whose latencies are arithmetic: briefly and with a loose bar, or with FULL=1 against the bar itself.
# needs: root btf python3
set -uo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")" || exit 1
: "${COZBPF:?the path of cozbpf}" "${BUILD:?the build directory}"
export PYTHONDONTWRITEBYTECODE=1

if [ "${FULL:-0}" -eq 1 ]; then
	for pay in hold sleep; do
		python3 latency.py "$COZBPF" "$BUILD/tests/truth" 20 5 25,50,75 "$pay" "" 3 | sed "/^\(not \)\?ok /s/ latency / latency $pay /" || exit 1
	done
	exit
fi
for case in classes/a queue/a; do
	python3 latency.py "$COZBPF" "$BUILD/tests/truth" 8 10 50 auto "$case" || exit 1
done
