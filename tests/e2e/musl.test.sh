#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Programs of another C library, and programs of the one that start programs of the other: they behave as without cozbpf. The library that is
# preloaded is linked with glibc.
# needs: root btf gcc musl-gcc
# beside: others
# shellcheck disable=SC2154 # what helpers.sh sets
set -uo pipefail
# shellcheck source=tests/e2e/helpers.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/helpers.sh"
cd "$tmp" || exit 1
limit=30

behaves() { # NAME PROGRAM [ARGUMENT] -- OPTION...
	local name=$1 command=() expected status why=''
	shift
	while [ "$1" != -- ]; do
		command+=("$1")
		shift
	done
	shift
	"${command[@]}" >native 2>&1
	expected=$?
	[ "$expected" -eq 7 ] || why+=" without cozbpf it ends with $expected;"
	profiled "$@" --fixed-speedup 50 --experiment 100 --cool-off 0 -- "${command[@]}"
	status=$?
	[ "$status" -eq "$expected" ] || why+=" status $status, not $expected;"
	diff native out >difference || why+=' its output differs;'
	verdict "$name" "$why" difference err
}

gcc -O1 -g -pthread -o glibc "$here/programs/starts_of_libc.c" && musl-gcc -O1 -g -o musl "$here/programs/starts_of_libc.c" &&
	musl-gcc -O1 -g -fpie -pie -o musl_pie "$here/programs/starts_of_libc.c" || exit 1
for sync in sched pthread; do
	behaves "glibc, which starts musl, --sync $sync" ./glibc ./musl -- --sync "$sync"
	behaves "musl, which starts glibc, --sync $sync" ./musl ./glibc -- --sync "$sync"
	behaves "musl, position-independent, --sync $sync" ./musl_pie -- --sync "$sync"
done
behaves 'musl, started by its loader' /lib/ld-musl-x86_64.so.1 ./musl_pie --
none_left || verdict 'nothing is left behind' "$(left_behind)"
