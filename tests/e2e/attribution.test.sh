#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# A program with its work in libraries, built in the ways in which programs are built: every sample has a line of the program's own, and its
# parts have the shares of samples that they have of the time. Few seconds, so loose.
# needs: root btf python3
# beside: others
# shellcheck disable=SC2154 # what helpers.sh sets
set -uo pipefail
# shellcheck source=tests/e2e/helpers.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/helpers.sh"

python3 "$here/attribution.py" "$here/programs" "$COZBPF" "$tmp" "$(lasting 2.5)"
