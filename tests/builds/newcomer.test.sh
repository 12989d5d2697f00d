#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The first command of the README on bare Debians, as the people who try it first: root without rights, as in plain docker; an ordinary user with sudo and one
# without; root. For the second, `tests/run`, see builds.test.sh and the table in README.md.
# needs: root btf debootstrap unshare setpriv
# shellcheck disable=SC2154 # what trees.sh sets
set -uo pipefail
# shellcheck source=tests/builds/trees.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/trees.sh"
status=0
docker_set=-all,+chown,+dac_override,+fowner,+fsetid,+kill,+setgid,+setuid,+setpcap,+net_bind_service,+net_raw,+sys_chroot,+mknod,+audit_write,+setfcap

# A fresh clone in the tree, of a user there.
clone() { # SUITE USER
	rm -rf -- "$trees/$1/cozbpf"
	mkdir "$trees/$1/cozbpf" || return
	tar -C "$SRC" --exclude='./build*' --exclude=./.git -cf - . | tar -C "$trees/$1/cozbpf" -xf - || return
	enter "$1" chown -R "$2" /cozbpf
}

# begin SUITE NAME USER COMMAND...: quickstart is run by COMMAND; `why` has what is wrong with how it ends, and the log is in $log.
begin() {
	local suite=$1 user=$3
	name="$2, $1"
	shift 3
	why='' log=$trees/$suite-newcomer.log
	clone "$suite" "$user" || why+=' nothing can be copied there;'
	enter "$suite" "$@" >"$log" 2>&1 </dev/null || why+=" status $?;"
}
shows() { # PATTERN
	grep -qE -- "$1" "$log" || why+=" no '$1';"
}
end() {
	if [ -z "$why" ]; then
		printf 'ok quickstart: %s\n' "$name"
	else
		printf 'not ok quickstart: %s: %s\n' "$name" "$why"
		tail -n 20 "$log" | sed 's/^/# /'
		status=1
	fi
}

for suite in bookworm trixie; do
	why=$(make_tree "$suite-newcomer" "$suite") || { printf 'not ok quickstart on %s: %s\n' "$suite" "$why"; status=1; continue; }
	tree=$suite-newcomer
	enter "$tree" sh -c 'id somebody >/dev/null 2>&1 || useradd somebody'
	# Nothing is installed yet.
	begin "$tree" 'plain docker' root env container=docker setpriv --bounding-set "$docker_set" /cozbpf/tools/quickstart
	shows 'nothing can be measured here: this container'
	shows '^shown from a recording'
	end
	begin "$tree" 'a user without sudo' somebody setpriv --reuid somebody --regid somebody --init-groups env HOME=/tmp /cozbpf/tools/quickstart
	shows '^shown from a recording'
	end
	enter "$tree" sh -c 'apt-get -q update && apt-get -qy install sudo && printf "somebody ALL=(ALL) NOPASSWD: ALL\nDefaults logfile=/cozbpf.sudo\n" >/etc/sudoers.d/somebody' >"$trees/$tree.log" 2>&1
	rm -f -- "$trees/$tree/cozbpf.sudo"
	begin "$tree" 'a user with sudo' somebody setpriv --reuid somebody --regid somebody --init-groups env HOME=/tmp /cozbpf/tools/quickstart 5
	shows "Progress point 'round'"
	[ "$(grep -c COMMAND= "$trees/$tree/cozbpf.sudo")" -eq 1 ] || why+=" sudo ran $(grep -c COMMAND= "$trees/$tree/cozbpf.sudo") times;"
	[ -z "$(find "$trees/$tree/cozbpf/build" -user root ! -name '*.jsonl' -print -quit)" ] || why+=' files of root in the build;'
	end
	begin "$tree" 'root' root /cozbpf/tools/quickstart 5
	shows "Progress point 'round'"
	end
done
exit "$status"
