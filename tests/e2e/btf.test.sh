#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Without type information of the kernel all commands that load programs say the same, in one line, and none advises another way.
# needs: root btf unshare
# beside: others
# shellcheck disable=SC2154 # what helpers.sh sets
set -uo pipefail
# shellcheck source=tests/e2e/helpers.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/helpers.sh"
cd "$tmp" || exit 1
reason='this kernel has no type information (/sys/kernel/btf/vmlinux)'
sleep 600 &
victim=$!

says_so() { # NAME WORD...
	local name=$1 why='' status
	shift
	# shellcheck disable=SC2016 # for the inner shell
	timeout -k 5 60 unshare --mount --propagation private sh -c 'mount -t tmpfs tmpfs /sys/kernel/btf && exec "$@"' sh "$COZBPF" "$@" >out 2>err </dev/null
	status=$?
	[ "$status" -eq 125 ] || why+=" status $status;"
	if [ "$1" = check ]; then
		grep -qF "A run is not possible: $reason." out || why+=' no such reason;'
		! grep -q pthread out || why+=' another way is advised;'
	else
		[ "$(wc -l <err)" -eq 1 ] || why+=" $(wc -l <err) lines;"
		grep -qF "cannot load the BPF programs: $reason; boot a kernel built with" err || why+=' not that line;'
	fi
	verdict "no types of the kernel: $name" "$why" err out
}

says_so check check
says_so run run -p progress -- "$programs/launch"
says_so 'run --sync pthread' run --sync pthread -p progress -- "$programs/launch"
says_so attach attach "$victim" -d 1
says_so 'attach --inject' attach "$victim" -d 1 --inject=auto
says_so system system --pid-tree "$victim" -d 1
says_so collect collect --db db -d 1s
says_so validate validate -l launch.c:1 -p progress -- "$programs/launch"
kill "$victim"
wait "$victim" 2>/dev/null
none_left || printf 'not ok no types of the kernel: left behind: %s\n' "$(left_behind)"
