# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
# Trees of distributions, made by debootstrap and kept in build/trees; sourced. A tree is entered in a mount namespace of its own, so that no mount of
# ours is ever under the build directory.
: "${SRC:?the source directory}" "${BUILD:?the build directory}"
trees=$BUILD/trees
# shellcheck source=/dev/null
own=$(source /etc/os-release && printf '%s' "${VERSION_CODENAME:-}")

# The mirror that this machine takes its own packages from.
mirror() {
	apt-get indextargets --format '$(SITE) $(CODENAME)' 'Created-By: Packages' | sed -n "s/ $own\$//p" | head -n 1
}

# With no more than the packages that every Debian has.
make_tree() { # NAME SUITE
	local site
	[ ! -e "$trees/$1/etc/complete" ] || return 0
	site=$(mirror)
	[ -n "$site" ] || { echo 'apt names no mirror of this distribution'; return 1; }
	rm -rf -- "${trees:?}/$1"
	mkdir -p "$trees"
	debootstrap --variant=minbase "$2" "$trees/$1" "$site" >"$trees/$1.log" 2>&1 || { echo "debootstrap failed ($trees/$1.log)"; return 1; }
	# A mirror that stands still has lists that are out of date, and this machine's own setting says whether that matters.
	apt-config dump | grep '^Acquire::Check-Valid-Until' >"$trees/$1/etc/apt/apt.conf.d/90valid"
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
enter() { # NAME COMMAND...
	local name=$1
	shift
	unshare --mount --propagation private bash -c "$inside" enter "$trees/$name" "$@"
}
