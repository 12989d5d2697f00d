#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Three programs that wait for one another.
here=$(dirname "$0")
"$here/stage-producer" "$@" | "$here/stage-filter" "$@" | "$here/stage-consumer" "$@"
