#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Each compiler and optimisation, on the Debian that this runs on and on the others that we support: those in trees made by debootstrap, which
# are kept in build/trees. A tree is entered in a mount namespace of its own, so that no mount of ours is ever under the build directory.
# needs: root debootstrap unshare gcc clang
set -uo pipefail
: "${SRC:?the source directory}" "${BUILD:?the build directory}"
trees=$BUILD/trees
# shellcheck source=/dev/null
own=$(source /etc/os-release && printf '%s' "${VERSION_CODENAME:-}")
status=0

# The mirror that this machine takes its own packages from.
mirror() {
	apt-get indextargets --format '$(SITE) $(CODENAME)' 'Created-By: Packages' | sed -n "s/ $own\$//p" | head -n 1
}

make_tree() { # SUITE
	local site
	[ ! -e "$trees/$1/etc/complete" ] || return 0
	site=$(mirror)
	[ -n "$site" ] || { echo 'apt names no mirror of this distribution'; return 1; }
	rm -rf -- "${trees:?}/$1"
	mkdir -p "$trees"
	debootstrap --variant=minbase "$1" "$trees/$1" "$site" >"$trees/$1.log" 2>&1 || { echo "debootstrap failed ($trees/$1.log)"; return 1; }
	touch "$trees/$1/etc/complete"
}

# Runs in a namespace of its own; what it mounts goes with it. The tree becomes the root of that namespace: the kernel refuses user namespaces, which
# tests of privileges need, below a chroot.
# shellcheck disable=SC2016 # that shell's own variables
inside='
tree=$1
shift
mount --bind "$tree" "$tree" && cd "$tree" && mount -t proc proc proc && mount --rbind /sys sys && mount --rbind /dev dev &&
mount -t tmpfs -o mode=755 tmpfs run && cp -L /etc/resolv.conf etc/resolv.conf && mkdir -p .old && pivot_root . .old && umount -l /.old && cd / &&
exec env -i HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"'
enter() { # SUITE COMMAND...
	local suite=$1
	shift
	unshare --mount --propagation private bash -c "$inside" enter "$trees/$suite" "$@"
}

other() { # SUITE
	local why tree=$trees/$1
	why=$(make_tree "$1") || { printf 'not ok builds on %s: %s\n' "$1" "$why"; return 1; }
	rm -rf -- "$tree/cozbpf"
	mkdir "$tree/cozbpf" || return 1
	tar -C "$SRC" --exclude='./build*' --exclude=./.git -cf - . | tar -C "$tree/cozbpf" -xf - || return 1
	# The first command of the README, with what it installs alone.
	if ! enter "$1" /cozbpf/tools/quickstart 5 >"$tree.log" 2>&1; then
		printf 'not ok quickstart on %s: see %s\n' "$1" "$tree.log"
		return 1
	fi
	printf 'ok quickstart on %s\n' "$1"
	if ! enter "$1" /cozbpf/tools/install-packages /cozbpf/tools/packages.txt /cozbpf/tests/packages.txt >"$tree.log" 2>&1; then
		printf 'not ok builds on %s: packages are missing (%s)\n' "$1" "$tree.log"
		return 1
	fi
	enter "$1" /cozbpf/tests/builds/matrix.sh /builds
}

bash "$SRC/tests/builds/matrix.sh" "$BUILD/builds" || status=1
for suite in bookworm trixie; do
	[ "$suite" = "$own" ] || other "$suite" || status=1
done
exit "$status"
