#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# What tools/rights says of systems that are a few files: which right is missing, and what gives it.
# beside: others
set -uo pipefail
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd) || exit 1
scratch=$(mktemp -d) || exit 1
trap 'rm -rf -- "$scratch"' EXIT
cd "$scratch" || exit 1
status=0
all=000001ffffffffff docker=00000000a80425fb three=000000c000080000 none=0000000000000000

# A machine where all is well, for root.
machine() { # UID CAPABILITIES
	rm -rf system
	mkdir -p system/proc/self/ns system/proc/sys/kernel system/sys/kernel/btf system/sys/kernel/security system/etc
	printf 'Name:\tx\nUid:\t%s\t%s\t%s\t%s\nCapEff:\t%s\n' "$1" "$1" "$1" "$1" "$2" >system/proc/self/status
	ln -s 'user:[4026531837]' system/proc/self/ns/user
	touch system/sys/kernel/btf/vmlinux
	echo '[none] integrity confidentiality' >system/sys/kernel/security/lockdown
	echo 2 >system/proc/sys/kernel/perf_event_paranoid
	printf 'ID=debian\nVERSION_ID="13"\n' >system/etc/os-release
}

expect() { # NAME WHAT HOW: "": nothing is missing
	local why='' code=0
	env -u container -u KUBERNETES_SERVICE_HOST ROOT_OF_SYSTEM="$scratch/system" "$root/tools/rights" >out 2>err || code=$?
	[ ! -s err ] || why+=' it complains;'
	if [ -z "$2" ]; then
		[ "$code" -eq 0 ] && [ ! -s out ] || why+=" status $code;"
	else
		[ "$code" -eq 1 ] || why+=" status $code;"
		[ "$(wc -l <out)" -eq 2 ] || why+=' not two lines;'
		sed -n 1p out | grep -qF -- "$2" || why+=" no '$2';"
		sed -n 2p out | grep -qF -- "$3" || why+=" no '$3';"
	fi
	if [ -z "$why" ]; then echo "ok $1"; else
		echo "not ok $1: $why"
		sed 's/^/# /' out err
		status=1
	fi
}

machine 0 $all
expect 'root' ''
machine 1000 $none
expect 'an ordinary user' 'this user may not' 'as root: tools/quickstart'
machine 1000 $three
expect 'a user with capabilities' ''
echo 3 >system/proc/sys/kernel/perf_event_paranoid
expect 'capabilities where the kernel asks for more' 'perf_event_paranoid is 3' 'sysctl -w kernel.perf_event_paranoid=2'
machine 0 $all
echo 4 >system/proc/sys/kernel/perf_event_paranoid
expect 'root where the kernel asks for more' ''
machine 0 $docker
expect 'root without capabilities' 'root has no right' 'if this is a container, on the host'
touch system/.dockerenv
expect 'plain docker' 'this container has no right' 'docker run --rm -it --privileged -v "$PWD":/src -w /src debian:13 tools/quickstart'
machine 0 $all
touch system/.dockerenv
expect 'docker run --privileged' ''
rm system/proc/self/ns/user
ln -s 'user:[4026532000]' system/proc/self/ns/user
expect 'a rootless container' 'user namespace' 'as root of the machine'
machine 0 $all
rm system/sys/kernel/btf/vmlinux
expect 'a kernel without type information' 'no type information' 'CONFIG_DEBUG_INFO_BTF=y'
rm -r system/sys/kernel
expect 'no sysfs' 'sysfs is not mounted' 'mount -t sysfs'
machine 0 $all
echo 'none integrity [confidentiality]' >system/sys/kernel/security/lockdown
expect 'lockdown' 'locked down (confidentiality)' 'lockdown=integrity'
exit "$status"
