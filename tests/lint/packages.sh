#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# What tools/install-packages does on each distribution, and what it says where it can do nothing: systems that are an os-release, a package manager that
# knows some names, and a compiler and a pkg-config that find what was installed.
# beside: others
set -uo pipefail
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd) || exit 1
scratch=$(mktemp -d) || exit 1
trap 'rm -rf -- "$scratch"' EXIT
cd "$scratch" || exit 1
status=0
lists=("$root/tools/packages.txt" "$root/tests/packages.txt")

mkdir tools fakes
for tool in bash cat dirname cut env grep head id mktemp printf rm sed sort tail touch tr awk mkdir chmod ln; do
	ln -s "$(command -v "$tool")" "tools/$tool"
done

# One fake for all: it acts by the name that it is called by, on the system in $SYSTEM. There, "knows" has the names that the package manager knows, "has" the
# needs that are met, with versions, and "asked" the words that it was called with.
# It is called some ten thousand times, so it starts no other program where it need not.
printf '#!%s\n' "$BASH" >fakes/fake
cat >>fakes/fake <<'EOF'
cd "$SYSTEM" || exit 1
me=${0##*/}
is_in() { # FILE LINE
	local all
	IFS= read -r -d '' all <"$1"
	[[ $'\n'$all == *$'\n'"$2"$'\n'* ]]
}
version() { # NAME
	local name version
	while read -r _ name version; do [ "$name" != "$1" ] || { printf '%s\n' "$version"; return; }; done <version
	echo 9.9
}
column() { case $me in apt*) echo 2 ;; dnf) echo 3 ;; zypper) echo 4 ;; pacman) echo 5 ;; esac; }
# The needs that a package brings are met from now on.
bring() { # PACKAGE
	printf '%s\n' "$1" >>installed
	awk -v c="$(column)" -v p="$1" '{ n = split($c, names, /[,&]/); for (i = 1; i <= n; i++) if (names[i] == p) { sub(/>=.*|[?]$/, "", $1); print $1 } }' $LISTS | while read -r need; do
		case $need in
		command:*) [ -e "bin/${need#*:}" ] || ln -s "$FAKES/fake" "bin/${need#*:}" ;;
		# As Ubuntu's: the one in PATH knows only the running kernel's.
		bpftool) 
			ln -sf "$FAKES/fake" bin/bpftool
			case $1 in
			bpftool | bpf) touch works ;;
			linux-tools-generic)
				mkdir -p lib/linux-tools/6.8.0-1-generic
				ln -sf "$FAKES/fake" lib/linux-tools/6.8.0-1-generic/bpftool
				;;
			esac
			;;
		esac
		printf '%s\n' "$need" >>has
	done
}
install() {
	local word
	for word in "$@"; do
		case $word in -*) ;; *) is_in knows "$word" || { echo "$me: no package $word"; exit 1; }; bring "$word" ;; esac
	done
}
case "$me $*" in
'apt-get -q update') printf 'refresh\n' >>asked; touch lists ;;
'apt-get -q -y --no-install-recommends install '*) shift 4; printf '%s\n' "$*" >>asked; install "$@" ;;
'dnf -q makecache' | 'zypper -n refresh' | 'pacman -Sy --noconfirm') printf 'refresh\n' >>asked ;;
'dnf -y install '* | 'zypper -n install '* | 'pacman -S --needed --noconfirm '*)
	while [[ $1 == -* || $1 == install ]]; do shift; done
	printf '%s\n' "$*" >>asked; install "$@" ;;
'apt-cache policy '*)
	[ -e lists ] || exit 0
	printf '%s:\n  Candidate: %s\n' "$2" "$(if is_in knows "$2"; then echo 1.0; else echo '(none)'; fi)"
	echo '        500 somewhere/main amd64 Packages' ;;
'dnf -q repoquery --whatprovides '*) is_in knows "$4" && printf '%s\n' "$4" ;;
'zypper -q -n search --provides --match-exact '*) is_in knows "$6" ;;
'pacman -Si '*) is_in knows "$2" ;;
'dpkg-query '* | 'rpm -q '* | 'pacman -Q '*) is_in installed "${*: -1}" && printf installed ;;
'pkg-config --exists '*) is_in has "library:$2" ;;
'pkg-config --modversion '*) version "$2" ;;
'cc -E -') read -r line; line=${line#*<}; is_in has "header:${line%>*}" ;;
'cc -x c - '*) read -r _; word=${*: -1}; is_in has "link:${word#-l}" ;;
'python3 -c '*) is_in has "python:${2#import }" ;;
'bpftool version') [[ $0 == *linux-tools* ]] || [ -e works ] ;;
'bpftool gen help') echo 'gen object OUTPUT INPUT' ;;
'sudo '*) printf 'sudo\n' >>asked; SYSTEM_ROOT=1 "$@" ;;
'id -u') if [ -e user ] && [ -z "${SYSTEM_ROOT:-}" ]; then echo 1000; else echo 0; fi ;;
*' --version') version "$me" ;;
*) exit 1 ;;
esac
EOF
chmod +x fakes/fake

fake() { # NAME...: programs of the system that is the working directory
	local name
	for name in "$@"; do ln -s ../../fakes/fake "bin/$name"; done
}

# system MANAGER ID [ID_LIKE]: a new one, whose package manager knows all that its column names.
system() {
	rm -rf system
	mkdir system system/bin
	printf 'ID=%s\nID_LIKE="%s"\nPRETTY_NAME="The %s"\n' "$2" "${3:-}" "$2" >system/release
	cd system || exit 1
	touch has installed version lists knows
	fake cc python3 id
	case $1 in
	apt) fake apt-get apt-cache dpkg-query ;;
	dnf | zypper) fake "$1" rpm ;;
	pacman) fake pacman ;;
	esac
	awk -v manager="$1" '/^# need/ { for (i = 1; i <= NF; i++) if ($i == manager) c = i - 1 } !/^#/ && c { print $c }' "${lists[@]}" |
		tr ',&' '\n\n' | sed '/^-$/d' | sort -u >knows
	cd ..
}

# An ordinary user; with sudo, or without.
as_user() { # sudo|none
	touch system/user
	[ "$1" != sudo ] || (cd system && fake sudo)
}

run() { # WORD...: tools/install-packages on the system; its status in $code
	code=0
	env -i PATH="$scratch/system/bin:$scratch/tools" SBIN='' BPFTOOLS="$scratch/system/lib" SYSTEM="$scratch/system" FAKES="$scratch/fakes" \
		LISTS="${lists[*]}" OS_RELEASE="$scratch/system/release" "$root/tools/install-packages" "$@" >out 2>err || code=$?
}

verdict() { # NAME WHY
	if [ -z "$2" ]; then
		printf 'ok %s\n' "$1"
	else
		printf 'not ok %s: %s\n' "$1" "$2"
		sed 's/^/# /' out err
		status=1
	fi
}

# asks NAME STATUS PATTERN...: it ends so, and what it asked the package manager matches; "!PATTERN": does not. "": was never asked.
asks() {
	local name=$1 why='' pattern
	[ "$code" -eq "$2" ] || why+=" status $code;"
	shift 2
	for pattern in "$@"; do
		case $pattern in
		'') [ ! -e system/asked ] || why+=" it was asked for: $(tr '\n' ';' <system/asked)" ;;
		'!'*) ! grep -qE -- "${pattern#!}" system/asked || why+=" '$pattern';" ;;
		*) grep -qE -- "$pattern" system/asked 2>/dev/null || why+=" no '$pattern';" ;;
		esac
	done
	verdict "$name" "$why"
}
says() { # NAME STATUS PATTERN...
	local name=$1 why='' pattern
	[ "$code" -eq "$2" ] || why+=" status $code;"
	shift 2
	for pattern in "$@"; do
		grep -qE -- "$pattern" err || why+=" no '$pattern';"
	done
	verdict "$name" "$why"
}

# Whole distributions. What was asked for once is all there the second time.
whole() { # NAME MANAGER ID [ID_LIKE]
	system "$2" "$3" "${4:-}"
	run "${lists[0]}"
	asks "$1: what building takes is installed" 0 refresh '\bclang\b'
	rm system/asked
	run "${lists[0]}"
	asks "$1: nothing is missing then" 0 ''
	run "${lists[@]}"
	asks "$1: what the tests take" 0 '\bshellcheck\b|ShellCheck'
}
whole Debian apt debian
whole Fedora dnf fedora
whole 'a relative of Fedora' dnf rocky 'rhel centos fedora'
whole Arch pacman arch

system apt ubuntu debian
sed -i '/^bpftool$/d; /^chromium$/d; /^linux-perf$/d' system/knows
run "${lists[0]}"
asks 'Ubuntu: bpftool is in linux-tools' 0 'linux-tools-common linux-tools-generic' '!\bbpftool\b'
[ "$(env -i PATH="$scratch/system/bin:$scratch/tools" SBIN='' SYSTEM="$scratch/system" BPFTOOLS="$scratch/system/lib" "$root/tools/find-bpftool")" \
	= "$scratch/system/lib/linux-tools/6.8.0-1-generic/bpftool" ] && why='' || why=' it is not found'
verdict 'Ubuntu: the bpftool of another kernel is used' "$why"

system apt ubuntu debian
printf 'version libbpf 0.5.0\nversion meson 0.61.2\n' >system/version
run "${lists[0]}"
says 'an old Ubuntu: what is too old is named' 125 '^  Meson 1\.0 or later \(here is 0\.61\.2\)' '^  libbpf 1\.1 or later \(here is 0\.5\.0\)' 'The ubuntu has no package'
[ "$(grep -c '^  ' err)" -eq 2 ] && why='' || why=' other things, too'
verdict 'an old Ubuntu: and nothing else' "$why"

system zypper opensuse-tumbleweed 'opensuse suse'
run "${lists[0]}"
says 'openSUSE: what has no package is named' 125 '^  Zydis$' 'meson setup build'
asks 'openSUSE: the rest is installed' 125 libbpf-devel

# Where no package manager is known.
system none alpine
run "${lists[0]}"
says 'an unknown distribution: what is needed' 125 '^  Clang' '^  libbpf 1\.1 or later' 'meson setup build'
grep -q 'apt-get' err && why=' it speaks of apt' || why=''
verdict 'an unknown distribution: no other one is spoken of' "$why"
system none void
awk '!/^#/ { sub(/>=.*/, "", $1); print $1 }' "${lists[0]}" >system/has
(cd system && fake gcc meson ninja pkg-config clang protoc-c bpftool)
touch system/works
run "${lists[0]}"
says 'an unknown distribution that has everything' 0
system apt debian
rm system/bin/apt-get
run "${lists[0]}"
says 'a Debian without apt-get' 125 'no package manager'

# What is looked for is the thing, not the package.
system apt debian
printf 'command:git  git  git  git  git  Git\npackage?  extra  -  -  -  Extra\n' >list
(cd system && fake git)
run list
asks 'a command that no package brought' 0 ''
echo extra >>system/knows
run list
asks 'a package that some releases have' 0 '^extra$'
rm system/lists system/asked
echo extra >system/knows
rm system/installed && touch system/installed
run list
asks 'lists are fetched first' 0 refresh '^extra$'
rm system/asked system/lists
: >system/knows
rm system/installed && touch system/installed
run list
asks 'lists tell that there is none' 0 refresh '!extra'
run --absent list
[ "$(cat out)" = extra ] && why='' || why=" $(cat out)"
verdict 'packages that the distribution lacks are named' "$why"

# An ordinary user.
system apt debian
as_user sudo
run "${lists[0]}"
asks 'with sudo' 0 refresh '\bclang\b'
[ "$(grep -c '^sudo$' system/asked)" -eq 1 ] && why='' || why=" $(grep -c '^sudo$' system/asked) times"
verdict 'sudo is called once' "$why"
system apt debian
as_user none
run "${lists[0]}"
says 'without sudo: one line to copy' 125 'as root: apt-get -q update && apt-get .*install .*\bclang\b.*\bmeson\b'
[ "$(wc -l <err)" -eq 1 ] && why='' || why=" $(wc -l <err) lines"
verdict 'without sudo: no more than that' "$why"
exit "$status"
