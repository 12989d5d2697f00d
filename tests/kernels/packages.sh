# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
# What the kernel tests take from Debian's mirror: kernels and, where the machine's own is too old, QEMU. Sourced. Everything is unpacked in
# $cache and kept; nothing is installed. The mirror is that of the machine's own apt configuration.
: "${cache:?the directory for what is kept}"

# The last line is the reason, of which the callers make a skip or a failure.
reason_file=$cache/reason
no_packages() {
	printf '%s\n' "$*" >"$reason_file"
	return 1
}

# apt-get or apt-cache with lists of our own, beside the machine's: NAME is that of the sources. PROGRAM ARGUMENT...
apt_of() { # NAME PROGRAM ARGUMENT...
	local root=$cache/apt program=$2 name=$1
	shift 2
	"$program" -q -o Dir::State="$root/$name" -o Dir::State::Status=/var/lib/dpkg/status -o Dir::Cache="$root/$name" \
		-o Dir::Etc::SourceList="$root/$name.list" -o Dir::Etc::SourceParts="$root/none" -o Dir::Etc::PreferencesParts="$root/none" \
		-o APT::Sandbox::User=root -o Acquire::Retries=3 "$@" </dev/null
}

# Lists of the packages of some of Debian's suites, read once a day at most.
lists() { # NAME SUITE...
	local name=$1 site suite root=$cache/apt unread='^E:|^W: (Failed to fetch|Some index files)'
	shift
	[ -z "$(find "$root/$name.list" -mmin -1440 2>/dev/null)" ] || return 0
	command -v apt-get >/dev/null || no_packages 'no apt-get' || return
	# shellcheck disable=SC2016 # apt's own variable
	site=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' 'Origin: Debian' 2>/dev/null | head -n 1)
	[ -n "$site" ] || no_packages "apt's configuration names no mirror of Debian" || return
	mkdir -p "$root/$name/lists/partial" "$root/$name/archives/partial" "$root/none"
	for suite; do
		printf 'deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] %s %s main\n' "$site" "$suite"
	done >"$root/$name.list"
	if ! apt_of "$name" apt-get update >"$root/update.log" 2>&1 || grep -qE "$unread" "$root/update.log"; then
		rm -f "$root/$name.list"
		no_packages "the mirror of Debian cannot be read: $(grep -E "$unread" "$root/update.log" | head -n 1)"
	fi
}

# Unpacks one package: into DIRECTORY.
unpacked() { # NAME PACKAGE DIRECTORY
	local name=$1 package=$2 directory=$3 deb
	mkdir -p "$cache/download" "$directory"
	(cd "$cache/download" && apt_of "$name" apt-get download "$package") >"$cache/download.log" 2>&1 ||
		no_packages "$package cannot be had: $(grep '^E:' "$cache/download.log" | head -n 1)" || return
	deb=$(find "$cache/download" -name "${package%%/*}_*.deb")
	dpkg-deb -x "$deb" "$directory" || no_packages "$deb cannot be unpacked" || return
	rm -rf "$cache/download"
}

# The newest package of that flavour of a version; from 7.3 on the kernel itself is in a package of another name,
# which the first depends on.
newest_package() { # NAME VERSION FLAVOUR
	local kind
	for kind in image binary; do
		apt_of "$1" apt-cache search -n "^linux-$kind-${2//./\\.}([.+-][^-]*|\\.0-[0-9]+)?-$3\$" | cut -d ' ' -f 1
	done | sort -s -t - -k 3V | tail -n 1
}

# A bootable kernel, in $cache/kernels/VERSION-FLAVOUR; there "package" names it. Unstable suites only where the others lack it.
fetch_kernel() { # VERSION FLAVOUR
	local directory=$cache/kernels/$1-$2 package='' name
	[ ! -e "$directory/package" ] || return 0
	for name in stable unstable; do
		case $name in
		stable) lists "$name" bookworm trixie trixie-backports || return ;;
		unstable) lists "$name" forky sid experimental || return ;;
		esac
		package=$(newest_package "$name" "$1" "$2")
		[ -z "$package" ] || break
	done
	[ -n "$package" ] || no_packages "no suite of the mirror has a Linux $1 of the flavour $2" || return
	rm -rf "$directory" "$directory.new"
	unpacked "$name" "$package" "$directory.new/tree" || return
	mv "$(find "$directory.new/tree" -name 'vmlinuz*' -type f)" "$directory.new/vmlinuz" || return
	rm -rf "$directory.new/tree"
	printf '%s\n' "$package" >"$directory.new/package"
	mv "$directory.new" "$directory"
}

# QEMU 7.2, which is Debian 12's, lets guests with cmpxchg16b panic. Sets qemu (a command) and qemu_version.
find_qemu() {
	local own=$cache/qemu suite deb
	local -a suites
	if qemu_version=$(qemu-system-x86_64 --version 2>/dev/null | sed -n 's/^QEMU emulator version \([0-9.]*\).*/\1/p') &&
		[ "${qemu_version%%.*}" -ge 8 ] 2>/dev/null; then
		qemu=(qemu-system-x86_64)
		return
	fi
	if [ ! -e "$own/whole" ]; then
		# shellcheck source=/dev/null
		suite=$(. /etc/os-release && printf '%s' "${VERSION_CODENAME:-}")
		suites=("$suite")
		[ "$suite" != bookworm ] || suites+=(bookworm-backports)
		lists qemu "${suites[@]}" || return
		rm -rf "$own"
		apt_of qemu apt-get -y -d -o Debug::NoLocking=1 --no-install-recommends -t "${suites[-1]}" install qemu-system-x86 >"$cache/download.log" 2>&1 ||
			no_packages "QEMU cannot be had: $(grep '^E:' "$cache/download.log" | head -n 1)" || return
		for deb in "$cache"/apt/qemu/archives/*.deb; do
			dpkg-deb -x "$deb" "$own" || no_packages "$deb cannot be unpacked" || return
		done
		rm -rf "$cache"/apt/qemu/archives
		touch "$own/whole"
	fi
	qemu=(env "LD_LIBRARY_PATH=$own/usr/lib/x86_64-linux-gnu:$own/lib/x86_64-linux-gnu" "$own/usr/bin/qemu-system-x86_64" -L "$own/usr/share/qemu"
		-L "$own/usr/share/seabios")
	qemu_version=$("${qemu[@]}" --version | sed -n 's/^QEMU emulator version \([0-9.]*\).*/\1/p')
	[ -n "$qemu_version" ] || no_packages "QEMU does not start"
}
