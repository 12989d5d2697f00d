#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Boots Debian's kernels under QEMU, with the build and a bare tree in memory, and tries in each what guest.sh lists. Prints a line per kernel
# and feature, and a table of all in the end. What is done is kept in $BUILD/kernels: packages, and the results of this very build, so that a
# run that was broken off goes on. From tests/run:
#   KERNELS  versions to boot; empty: all that are listed below
#   QUICK    1: check, loading and one short run, at each kernel's default preemption only
#   TABLE    1: put the table into README.md here as well
# Guests are emulated, and their clock counts instructions (2 ns each, 1 ns for the bpf tests, which measure): how busy this machine is makes no
# difference to them, and idle time takes none. So KVM is not used, also where there is one.
# needs: cpio python3
set -uo pipefail
: "${SRC:?}" "${BUILD:?}" "${COZBPF:?}"
here=$SRC/tests/kernels
cache=$BUILD/kernels
mkdir -p "$cache/results" || exit 1
# shellcheck source=tests/kernels/packages.sh
source "$here/packages.sh"
# shellcheck source=tests/kernels/image.sh
source "$here/image.sh"

versions=(6.1 6.12 6.17 6.18 6.19 7.0 7.1 7.2 7.3)
newest=7.3

# Guests, NAME|VERSION|FLAVOUR|CPUS|CPU|KERNEL'S OPTIONS|WHAT: the last is guest.sh's argument. Several with one NAME are one column.
configurations() {
	local version
	for version in ${KERNELS:-${versions[*]}}; do
		if [ "${QUICK:-0}" -eq 1 ]; then
			printf '%s|%s|cloud-amd64|2|max||quick\n' "$version" "$version"
			[ "$version" != "$newest" ] || refused "$version"
			continue
		fi
		printf '%s|%s|cloud-amd64|2|max||features\n' "$version" "$version"
		printf '%s|%s|cloud-amd64|2|max||bpf\n' "$version" "$version"
		real_time "$version"
		[ "$version" = "$newest" ] || continue
		# Its own preemption mode is lazy.
		printf '%s, preempt=full|%s|cloud-amd64|2|max|preempt=full|options\n' "$version" "$version"
		printf '%s, 16 CPUs|%s|cloud-amd64|16|max||quick\n' "$version" "$version"
		refused "$version"
	done
}

refused() { # VERSION
	printf '%s, no cmpxchg16b|%s|cloud-amd64|2|max,-cx16||refused\n' "$1" "$1"
	printf '%s, lockdown|%s|cloud-amd64|2|max|lockdown=confidentiality|refused\n' "$1" "$1"
}

# From 6.19 on BPF programs get no memory in an interrupt there.
real_time() { # VERSION
	case $1 in
	6.18) printf '%s, real-time|%s|rt-amd64|2|max||quick\n' "$1" "$1" ;;
	6.19 | "$newest") printf '%s, real-time|%s|rt-amd64|2|max||refused\n' "$1" "$1" ;;
	esac
}

# How long a guest may say nothing, in seconds: the longest is the load test, on a machine with other work.
patience=1800

# Runs a guest to its end, or until it says nothing any more.
boot() { # VERSION FLAVOUR CPUS CPU OPTIONS WHAT RESULT
	local pid age shift=1
	[ "$6" != bpf ] || shift=0
	"${qemu[@]}" -accel tcg -icount shift=$shift,sleep=off -rtc clock=vm -M q35 -nodefaults -no-user-config -no-reboot -display none -vga none \
		-m $((1536 + 64 * $3)) -smp "$3" -cpu "$4" -kernel "$cache/kernels/$1-$2/vmlinuz" -initrd "$cache/image" \
		-append "console=ttyS0 panic=-1 $5 cozbpf.tests=$6" -serial "file:$7.console" -serial "file:$7.new" </dev/null >"$7.qemu" 2>&1 &
	pid=$!
	# A job of its own, which is ended with this one.
	trap 'kill "$pid" 2>/dev/null' EXIT
	while kill -0 "$pid" 2>/dev/null; do
		sleep 1
		age=$(($(date +%s) - $(stat -c %Y "$7.new" 2>/dev/null || date +%s)))
		[ "$age" -lt "$patience" ] || kill -KILL "$pid"
	done
	wait "$pid"
	trap - EXIT
}

# What was begun and has no verdict took the guest down, or kept it.
settle() { # RESULT
	local begun
	begun=$(awk '/^@@ begin / { n = substr($0, 10) } /^@@ (ok|refused|failed) / { n = "" } END { print n }' "$1.new" 2>/dev/null)
	if ! grep -qx '@@ end' "$1.new" 2>/dev/null; then
		printf '@@ failed %s: the guest ended in it, or said nothing for %s s\n' "${begun:-boot}" "$patience"
		tail -n 40 "$1.console" "$1.qemu" 2>/dev/null | tr -d '\r' | sed 's/^/# /'
	fi >>"$1.new"
	mv "$1.new" "$1"
}

# One configuration, unless its results are there already and good.
configuration() { # RESULT VERSION FLAVOUR CPUS CPU OPTIONS WHAT
	local result=$1
	shift
	if [ -e "$result" ] && ! grep -q '^@@ failed ' "$result"; then
		return
	fi
	rm -f "$result" "$result".*
	boot "$@" "$result"
	settle "$result"
}

skip_all() { # REASON
	while IFS='|' read -r name _; do printf 'skip %s: %s\n' "$name" "$1"; done < <(configurations | cut -d '|' -f 1 | uniq)
	exit 0
}

[ "$(uname -m)" = x86_64 ] || skip_all 'this machine is no x86-64'
find_qemu || skip_all "$(cat "$reason_file")"
make_image || exit 1
build=$image_digest-$qemu_version

lines=()
jobs_at_once=$(nproc)
memory_kb=$(awk '/^MemAvailable:/ { print $2 }' /proc/meminfo)
[ $((memory_kb / 3000000)) -ge "$jobs_at_once" ] || jobs_at_once=$((memory_kb / 3000000))
[ "$jobs_at_once" -ge 1 ] || jobs_at_once=1
pids=()
trap 'kill "${pids[@]}" 2>/dev/null' INT TERM HUP
while IFS='|' read -r name version flavour cpus cpu options what; do
	if ! fetch_kernel "$version" "$flavour"; then
		printf 'skip %s: %s\n' "$name" "$(cat "$reason_file")"
		continue
	fi
	package=$(cat "$cache/kernels/$version-$flavour/package")
	result=$cache/results/$build/$what-${name//[ ,]/_}-$package
	mkdir -p "${result%/*}"
	lines+=("$name|$package|$result")
	while [ "$(jobs -rp | wc -l)" -ge "$jobs_at_once" ]; do wait -n; done
	configuration "$result" "$version" "$flavour" "$cpus" "$cpu" "$options" "$what" &
	pids+=($!)
done < <(configurations)
wait

status=0
for line in "${lines[@]}"; do
	IFS='|' read -r name _ result <<<"$line"
	sed -nE "s/^@@ ok (.*)/ok $name: \1/p; s/^@@ refused (.*)/ok $name: \1 (refused)/p; s/^@@ failed (.*)/not ok $name: \1/p; /^# /p" "$result"
	! grep -q '^@@ failed ' "$result" || status=1
done
into=()
[ "${TABLE:-0}" -eq 0 ] || into=(--write "$here/README.md")
[ ${#lines[@]} -gt 0 ] || exit 0
printf '%s\n' "${lines[@]}" | python3 "$here/table.py" "${into[@]}" || status=1
exit $status
