# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
# The first process of a guest, sourced by /init: what an init does that the tests need, then the tests, then power off. What they say goes to
# the second serial port, the kernel's messages are on the first.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 PYTHONDONTWRITEBYTECODE=1
mount -t devtmpfs dev /dev
mkdir -p /dev/pts /dev/shm
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t securityfs securityfs /sys/kernel/security
mount -t tracefs tracefs /sys/kernel/tracing
mount -t cgroup2 cgroup /sys/fs/cgroup
mount -t bpf bpf /sys/fs/bpf
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /dev/shm
mount -t devpts devpts /dev/pts
ln -s /proc/self/fd /dev/fd
chmod 1777 /tmp /dev/shm
hostname guest
stty -F /dev/ttyS1 raw -echo
cd / || exit
read -r command_line </proc/cmdline
what=${command_line##*cozbpf.tests=}
setsid bash "$SRC/tests/kernels/guest.sh" "${what%% *}" </dev/null >/dev/ttyS1 2>&1
printf '@@ end\n' >/dev/ttyS1
sync
# No program is needed for this, and none may come after it.
echo o >/proc/sysrq-trigger
sleep 1000
