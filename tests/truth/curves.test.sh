#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Profiles of programs whose answer is arithmetic. By default one case of each kind of program, briefly and with loose bars: enough
# to see that nothing is broken. FULL=1: every case at full length against the bars themselves, with both payers; takes a day.
# needs: root btf python3
set -uo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")" || exit 1
: "${COZBPF:?the path of cozbpf}" "${BUILD:?the build directory}"

export PYTHONDONTWRITEBYTECODE=1
options=()
if [ "${FULL:-0}" -eq 1 ]; then
	options+=(--bar strict --repeat 3 --seconds 60 --pay "sleep,hold,older")
	older=()
	calls=(--bar strict --repeat 3 --seconds 60 --pay "sleep,hold,older" --case "barrier-*" --case "pipeline-*" --case "lock-*-mutex-*"
		--case "pingpong-mutex-*" --case "pingpong-semaphore-*" --case "window-mutex-*" --case "window-semaphore-*")
else
	options+=(--bar loose --seconds 10)
	for case in 'barrier-20ms/*' 'independent-1/*' 'independent-2/*' 'pipeline-5ms/*' 'lock-inside-mutex-5ms/*' 'pingpong-mutex-5ms/*' \
		'pingpong-pipe-5ms/*' 'window-futex-5ms/*' 'workers-pingpong-pipe/a' 'programs/a' 'lock-taken-16/a' \
		'pool-permits-4/a' 'hits/*'; do
		options+=(--case "$case")
	done
	# As on a kernel without task work.
	older=(--bar loose --seconds 10 --pay older --case "barrier-20ms/*" --case "pipeline-5ms/a")
	calls=(--bar loose --seconds 8 --case "pipeline-5ms/a" --case "pingpong-semaphore-5ms/a")
fi

# Verdicts stand under their case's line, "NAME  (SOURCE:LINE, pay PAYER)"; the details go along as comments.
verdicts() { # OPTION...
	python3 truth.py --cozbpf "$COZBPF" --programs "$BUILD/tests/truth" "$@" | awk '
	/^[^ ].*, pay [a-z]+\)$/ { name = $1; pay = $NF; sub(/\)$/, "", pay) }
	/^    PASS:/ { print "ok " name " " pay; next }
	/^    FAIL:/ { sub(/^    FAIL: */, ""); print "not ok " name " " pay ": " $0; next }
	/^    SKIP:/ { sub(/^    SKIP: */, ""); print "skip " name " " pay ": " $0; next }
	{ print "# " $0 }'
	# A failed case has been said; another status means that it broke off.
	[ "${PIPESTATUS[0]}" -le 1 ]
}

verdicts "${options[@]}" || exit 1
[ ${#older[@]} -eq 0 ] || verdicts "${older[@]}" || exit 1
verdicts --sync pthread "${calls[@]}" | sed -E 's/^(ok|not ok|skip) /&--sync pthread: /'
exit "${PIPESTATUS[0]}"
