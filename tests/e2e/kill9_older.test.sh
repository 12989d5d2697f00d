#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# cozbpf is killed where the newer kernel features are missing: threads that pay through the shim go on as well.
# needs: root btf python3
# tier: full
set -uo pipefail
directory=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd) || exit 1

export SWITCHED_OFF=task_work,send_signal_task,uprobe_multi
PAYERS="sleep" bash "$directory/kill9.test.sh" | sed -E 's/^(ok|not ok|skip) /&with an older kernel: /'
exit "${PIPESTATUS[0]}"
