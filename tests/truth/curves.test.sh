#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Profiles of programs whose answer is arithmetic. By default one case of each way of waiting, briefly, with short experiments and loose bars: enough
# to see that nothing is broken. FULL=1: every case at full length against the bars themselves, with three payers; takes nine hours.
# needs: root btf python3
set -uo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")" || exit 1
: "${COZBPF:?the path of cozbpf}" "${BUILD:?the build directory}"

export PYTHONDONTWRITEBYTECODE=1
if [ "${FULL:-0}" -eq 1 ]; then
	together=(--together --wakes --bar strict --seconds 50 --pay "sleep,hold,older")
	apart=()
	older=()
	calls=(--together --wakes --bar strict --seconds 50 --pay "sleep,hold,older" --case "barrier-*" --case "pipeline-*" --case "lock-*-mutex-*"
		--case "pingpong-mutex-*" --case "pingpong-semaphore-*" --case "window-mutex-*" --case "window-semaphore-*")
else
	together=(--together --bar loose --seconds 4 --case 'barrier-20ms/*' --case 'phases-2s/*')
	apart=(--estimate reported --bar loose --seconds 3.5)
	# What differs by who waits for whom alone, slopes.test.sh tries in a third of the time.
	for case in 'pingpong-pipe-5ms/a' 'lock-inside-mutex-5ms/a' 'independent-2/a' 'bystander-5ms/a' 'fetch-timer-6ms/b' 'alone-pipe/b' 'mixture/a' \
		'pingpong-pty-5ms/a'; do
		apart+=(--case "$case")
	done
	# As on a kernel without task work.
	older=(--estimate reported --bar loose --seconds 3.5 --pay older --case "independent-8/a")
	calls=(--estimate reported --bar loose --seconds 3.5 --case "pingpong-semaphore-5ms/a")
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

verdicts "${together[@]}" || exit 1
[ ${#apart[@]} -eq 0 ] || verdicts "${apart[@]}" || exit 1
[ ${#older[@]} -eq 0 ] || verdicts "${older[@]}" || exit 1
verdicts --sync pthread "${calls[@]}" | sed -E 's/^(ok|not ok|skip) /&--sync pthread: /'
exit "${PIPESTATUS[0]}"
