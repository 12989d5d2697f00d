#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# A program behaves as it does without in all that the default way is tried with, also where waits are followed by its calls.
# needs: root btf python3
# beside: others
# tier: full
set -uo pipefail
directory=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd) || exit 1

export SYNC=pthread
PAYERS="sleep" bash "$directory/transparency.test.sh" | sed -E 's/^(ok|not ok|skip) /&--sync pthread: /'
exit "${PIPESTATUS[0]}"
