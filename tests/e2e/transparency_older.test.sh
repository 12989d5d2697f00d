#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# A program behaves as it does without in all that the default way is tried with, also where the newer kernel features are missing: threads pay
# through the shim, from their own ticks.
# needs: root btf python3
# beside: others
# tier: full
set -uo pipefail
directory=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd) || exit 1

export SWITCHED_OFF=task_work,send_signal_task,uprobe_multi
PAYERS="sleep" bash "$directory/transparency.test.sh" | sed -E 's/^(ok|not ok|skip) /&with an older kernel: /'
exit "${PIPESTATUS[0]}"
