#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# tools/quickstart: what it says and shows where BPF programs may not be loaded, that sudo is asked once, and that a program with capabilities takes no root.
# It runs in a tree that is built already, with a meson that notes who calls it; tests/builds has the real thing.
# needs: root btf setpriv unshare setcap getcap
# beside: others
# shellcheck disable=SC2154 # what helpers.sh sets
set -uo pipefail
# shellcheck source=tests/e2e/helpers.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/helpers.sh"
user=65534
user_words=(setpriv --reuid "$user" --regid "$user" --clear-groups)
# What docker run leaves to root: neither CAP_SYS_ADMIN nor CAP_BPF.
docker_set=-all,+chown,+dac_override,+fowner,+fsetid,+kill,+setgid,+setuid,+setpcap,+net_bind_service,+net_raw,+sys_chroot,+mknod,+audit_write,+setfcap
docker_words=(env container=docker setpriv --bounding-set "$docker_set")

mkdir "$tmp/bin"
printf '#!/bin/sh\n[ "$1" = --version ] && echo 9.9 || echo "meson by $(id -u)" >>%s/called\n' "$tmp" >"$tmp/bin/meson"
chmod +x "$tmp/bin/meson"
: >"$tmp/called" && chmod 666 "$tmp/called"
PATH=$tmp/bin:$PATH

# A fresh tree, of OWNER.
tree() { # OWNER
	rm -rf "$tmp/tree"
	mkdir -p "$tmp/tree/build/user" "$tmp/tree/build/examples" "$tmp/tree/tests/data"
	cp -r "$SRC/tools" "$tmp/tree/tools"
	cp "$SRC/tests/data/barrier.jsonl" "$tmp/tree/tests/data"
	cp "$COZBPF" "$tmp/tree/build/user"
	cp "$BUILD/examples/barrier" "$tmp/tree/build/examples"
	touch "$tmp/tree/build/build.ninja"
	chown -R "$1" "$tmp/tree"
	: >"$tmp/called"
}

quickstart() { # COMMAND... -- ARGUMENT...: in $tmp/tree; its status in $status
	local -a command=()
	while [ "$1" != -- ]; do
		command+=("$1")
		shift
	done
	shift
	status=0
	(cd "$tmp/tree" && timeout 120 "${command[@]}" ./tools/quickstart "$@") >"$tmp/out" 2>"$tmp/err" </dev/null || status=$?
}

# It ends well, and says at once, before it builds, and at the end, what is missing and what gives it.
recorded() { # NAME WHAT HOW COMMAND...
	local name=$1 what=$2 how=$3 why=''
	shift 3
	quickstart "$@" --
	[ "$status" -eq 0 ] || why+=" status $status;"
	[ "$(sed -n '1p' "$tmp/err" | grep -cE "$what")" -eq 1 ] || why+=' the first line does not say what is missing;'
	[ "$(sed -n '2p' "$tmp/err" | grep -cE "$how")" -eq 1 ] || why+=' the second line does not say what gives it;'
	tail -n 1 "$tmp/out" | grep -q '^shown from a recording: .*another machine' || why+=' the last line does not say that it is a recording;'
	tail -n 3 "$tmp/out" | grep -qE "$what" || why+=' the end does not say what is missing;'
	tail -n 3 "$tmp/out" | grep -qE "$how" || why+=' the end does not say what gives it;'
	grep -q "Progress point 'round'" "$tmp/out" || why+=' no report;'
	grep -q '^of: .*(a recording: not measured here)' "$tmp/out" || why+=' the report does not say that it is a recording;'
	grep -q 'a recording: not measured here' "$tmp/tree/build/recording.html" || why+=' no page, or one that does not say what it is;'
	[ ! -e "$tmp/tree/build/barrier.jsonl" ] || why+=' it has a profile;'
	verdict "$name" "$why" "$tmp/err" "$tmp/out"
}
measured() { # NAME: the run before
	local why=''
	[ "$status" -eq 0 ] || why+=" status $status;"
	grep -q "Progress point 'round'" "$tmp/err" || why+=' no report;'
	[ -s "$tmp/tree/build/barrier.jsonl" ] || why+=' no profile;'
	! grep -q 'recording' "$tmp/out" "$tmp/err" || why+=' it speaks of a recording;'
	verdict "$1" "$why" "$tmp/err" "$tmp/out"
}

tree 0
recorded 'plain docker' 'this container has no right to load BPF programs' 'docker run --rm -it --privileged -v "\$PWD":/src' "${docker_words[@]}"
recorded 'plain docker, with processes and mounts of its own' 'this container has no right' 'docker run .*--privileged' \
	unshare --mount --pid --fork --mount-proc sh -c 'mount -o remount,ro,bind /sys && exec "$@"' sh "${docker_words[@]}"
recorded 'no type information' '/sys/kernel/btf/vmlinux' 'CONFIG_DEBUG_INFO_BTF=y' unshare --mount sh -c 'mount -t tmpfs none /sys/kernel/btf && exec "$@"' sh
recorded 'no sysfs' 'sysfs is not mounted' 'mount -t sysfs' unshare --mount sh -c 'mount -t tmpfs none /sys && exec "$@"' sh
if unshare --user --map-root-user true 2>/dev/null; then
	recorded 'a user namespace' 'user namespace' 'docker run .*--privileged' unshare --user --map-root-user
else
	printf 'skip quickstart: a user namespace: the kernel allows none\n'
fi
tree "$user"
# (Or as a container's ordinary user, if these tests run in a container.)
recorded 'an ordinary user without sudo' 'this (user may not|container has no right to) load BPF programs' 'as root: tools/quickstart; .*setcap|docker run' \
	env -u container "${user_words[@]}"

quickstart unshare --mount sh -c 'mount -o remount,ro,bind /sys && exec "$@"' sh -- 1
measured 'read-only sysfs is no obstacle'

# A sudo that only notes that it was called, as which words; what it would do is below.
printf '#!/bin/sh\nprintf "%%s\\n" "sudo $*" >>%s/called\n' "$tmp" >"$tmp/bin/sudo"
chmod +x "$tmp/bin/sudo"
tree "$user"
quickstart "${user_words[@]}" -- 1
[ "$(cat "$tmp/called")" = "sudo ./tools/quickstart 1" ] && why='' || why=" called: $(cat "$tmp/called")"
verdict 'all is done in one call of sudo' "$why" "$tmp/err"
printf '#!/bin/sh\nexit 1\n' >"$tmp/bin/sudo"
quickstart "${user_words[@]}" -- 1
[ "$status" -eq 0 ] && tail -n 1 "$tmp/out" | grep -q '^shown from a recording' && why='' || why=" status $status"
verdict 'a sudo that refuses' "$why" "$tmp/err"
rm "$tmp/bin/sudo"

tree "$user"
quickstart env SUDO_UID="$user" SUDO_GID="$user" -- 1
measured 'by sudo'
why=
[ "$(sort -u "$tmp/called")" = "meson by $user" ] || why+=" meson was called: $(sort -u "$tmp/called");"
grep -q 'tools/quickstart --setcap, which is: chmod go= .*sudo setcap' "$tmp/err" || why+=' capabilities are not offered;'
verdict 'by sudo: the build is the user'\''s' "$why" "$tmp/err"

if [[ $COZBPF = *-asan/* ]]; then
	echo 'skip quickstart: capabilities for the program: one that has them takes no options for its sanitizers from the environment'
else
	tree "$user"
	quickstart env SUDO_UID="$user" SUDO_GID="$user" -- --setcap 1
	measured 'by sudo, with capabilities for the program'
	[ "$(stat -c %u "$tmp/tree/build/barrier.jsonl")" = "$user" ] && why='' || why=' the profile is not the user'\''s'
	[ "$(stat -c %a "$tmp/tree/build/user/cozbpf")" = 700 ] || why+=' others can, too;'
	verdict 'with capabilities: the user runs it' "$why" "$tmp/err"
	printf '#!/bin/sh\nprintf "%%s\\n" "sudo $*" >>%s/called\n' "$tmp" >"$tmp/bin/sudo"
	chmod +x "$tmp/bin/sudo"
	: >"$tmp/called"
	quickstart "${user_words[@]}" -- 1
	measured 'with capabilities, later'
	! grep -q sudo "$tmp/called" && why='' || why=' sudo was called'
	verdict 'with capabilities: no sudo any more' "$why" "$tmp/called"
fi
none_left || printf 'not ok quickstart: left behind: %s\n' "$(left_behind)"
