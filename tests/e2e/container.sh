#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# container.sh DIRECTORY CAPABILITIES COMMAND...: COMMAND in what containers have: a root directory that is an overlay over this one, with a layer of
# its own, and mount, network, UTS, IPC and control group namespaces. CAPABILITIES: what root is left with, separated by commas; all: everything.
# The PID namespace is the caller's, whose /proc is mounted. DIRECTORY is the same one inside; what is in it is shared.
set -eu
if [ "$1" != --inside ]; then
	exec unshare --mount --net --uts --ipc --cgroup --propagation unchanged "$0" --inside "$@"
fi
shared=$2
capabilities=$3
shift 3
# A root directory need not be a mount.
mount --make-rprivate / 2>/dev/null || mount --make-rprivate /proc
mkdir -p "$shared/layers"
mount -t tmpfs tmpfs "$shared/layers"
mkdir "$shared/layers/upper" "$shared/layers/work" "$shared/layers/root"
root=$shared/layers/root
mount -t overlay overlay -o "lowerdir=/,upperdir=$shared/layers/upper,workdir=$shared/layers/work" "$root"
for directory in "$SRC" "$BUILD"; do
	[ "$(stat -c %d "$directory")" = "$(stat -c %d /)" ] || mount --rbind "$directory" "$root$directory"
done
mount --bind "$shared" "$root$shared"
mount -t proc proc "$root/proc"
mount -t sysfs -o ro sysfs "$root/sys"
mount -t cgroup2 -o ro cgroup2 "$root/sys/fs/cgroup" || true
mount --rbind /dev "$root/dev"
cd "$root"
mkdir .outside
pivot_root . .outside
cd "$shared"
umount -l /.outside
[ "$capabilities" = all ] || set -- setpriv --bounding-set "-all,+${capabilities//,/,+}" --inh-caps -all "$@"
exec "$@"
