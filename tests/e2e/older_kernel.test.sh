#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# With the newer kernel features switched off threads pay through the shim, from their own ticks. FULL=1: points and macros count then as well.
# needs: root btf python3
# beside: others
# shellcheck disable=SC2154 # what helpers.sh sets
set -uo pipefail
export SWITCHED_OFF=task_work,send_signal_task,uprobe_multi
directory=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd) || exit 1

status=0
for name in points coz_macros; do
	[ "${FULL:-0}" -eq 1 ] || continue
	PAYERS="sleep" bash "$directory/$name.test.sh" | sed -E 's/^(ok|not ok|skip) /&with an older kernel: /' || status=1
done

# What cannot be is said.
# shellcheck source=tests/e2e/helpers.sh
source "$directory/helpers.sh"
why=''
profiled --pay hold -p progress -- "$programs/launch"
[ "$?" -eq 125 ] || why+=' hold is not refused;'
grep -q '^cozbpf: .*--pay hold needs BPF task work.*--pay spin' "$tmp/err" || why+=' the line does not name the reason and the remedy;'
profiled -p progress -- "$programs/launch" || why+=' auto fails;'
holds 'runs[0]["pay"] == "spin" and "task work" in runs[0]["fallback"] and "[disk]" in runs[0]["fallback"]' || why+=' the file does not name the fallback;'
profiled --what on-cpu -p progress -- "$programs/launch" || why+=' on-cpu fails;'
holds '"[disk]" not in runs[0]["fallback"]' || why+=' waits that nobody asked for are missed;'
verdict 'with an older kernel: the payer' "$why" "$tmp/err"
exit $status
