#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The Debian package, installed by apt in bare trees of each Debian that we support, profiles an example there, and bash completes its options.
# needs: root git debootstrap unshare dpkg-buildpackage
# shellcheck disable=SC2154 # what trees.sh sets
set -uo pipefail
# shellcheck source=tests/builds/trees.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/trees.sh"
status=0
mkdir -p "$trees"

# A package is built on the Debian that it is for: libraries have other versions elsewhere. Prints its path.
build() { # SUITE
	local tree=$trees/$1
	if [ "$1" = "$own" ]; then
		"$SRC/tools/package" deb "$BUILD/package-$1" 2>"$trees/package-$1.log" | tail -n 1
		return
	fi
	make_tree "$1" "$1" >&2 || return
	rm -rf -- "$tree/cozbpf"
	git clone -q --no-hardlinks "$SRC" "$tree/cozbpf" || return
	{
		enter "$1" /cozbpf/tools/install-packages /cozbpf/tools/packages.txt /cozbpf/tools/debian/packages.txt && enter "$1" apt-get install -qy git
	} >"$trees/package-$1.log" 2>&1 || return
	enter "$1" /cozbpf/tools/package deb /cozbpf/package 2>>"$trees/package-$1.log" | tail -n 1 | sed "s|^|$tree|"
}

# What is done in the tree. All that is changed there is gone afterwards: the next time it is bare again.
# shellcheck disable=SC2016 # that shell's own variables
install_and_run='
set -e
over=/media
mount -t tmpfs tmpfs $over && mkdir $over/upper $over/work $over/new
mount -t overlay -o lowerdir=/,upperdir=$over/upper,workdir=$over/work overlay $over/new
for part in sys dev proc; do mount --rbind /$part $over/new/$part; done
mount -t tmpfs tmpfs $over/new/run
cd $over/new && mkdir -p .old && pivot_root . .old && cd /
export DEBIAN_FRONTEND=noninteractive
apt-get update -q
apt-get install -qy ./cozbpf/package.deb bash-completion
cozbpf --version
cozbpf run -q -o /tmp/profile.jsonl -p progress -d 3 -- /cozbpf/barrier 4
bash -c "source /usr/share/bash-completion/bash_completion; _completion_loader cozbpf || _comp_load cozbpf; complete -p cozbpf"
'
for suite in bookworm trixie; do
	package=$(build "$suite")
	why=$(make_tree "$suite-bare" "$suite")
	[ -s "$package" ] || why="no package is built (see $trees/package-$suite.log)"
	tree=$trees/$suite-bare
	if [ -z "$why" ]; then
		mkdir -p "$tree/cozbpf"
		cp "$package" "$tree/cozbpf/package.deb" && cp "$BUILD/examples/barrier" "$tree/cozbpf/barrier" || why='nothing can be copied there'
	fi
	[ -n "$why" ] || enter "$suite-bare" bash -c "$install_and_run" >"$tree.log" 2>&1 || why="see $tree.log"
	[ -n "$why" ] || grep -q "Progress point 'progress'" "$tree.log" || why="no report (see $tree.log)"
	if [ -z "$why" ]; then
		printf 'ok the package on %s\n' "$suite"
	else
		printf 'not ok the package on %s: %s\n' "$suite" "$why"
		status=1
	fi
done
exit "$status"
