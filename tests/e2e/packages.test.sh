#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Which packages tools/install-packages installs where a distribution lacks one; and that programs of packages that come after a build
# directory was set up, as it is by tools/quickstart, are built by what tests/run does when packages have changed.
# needs: meson
# beside: others
# shellcheck disable=SC2154 # what helpers.sh sets
set -uo pipefail
# shellcheck source=tests/e2e/helpers.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/helpers.sh"

# A system in which gcc is installed; the distribution has the packages in the file "has", and its lists are here if the file "lists" is.
mkdir "$tmp/bin" && cd "$tmp" || exit 1
cat >bin/dpkg-query <<'EOF'
#!/usr/bin/env bash
[ "${*: -1}" != gcc ] || printf installed
EOF
cat >bin/apt-cache <<'EOF'
#!/usr/bin/env bash
cd "${0%/*}/.." || exit 1
[ -e lists ] || exit 0
printf '%s:\n  Candidate: %s\n' "$2" "$(if [ "$2" = gcc ] || grep -qx "$2" has; then echo 1.0; else echo '(none)'; fi)"
echo '        500 somewhere/main amd64 Packages'
EOF
cat >bin/apt-get <<'EOF'
#!/usr/bin/env bash
cd "${0%/*}/.." || exit 1
printf '%s\n' "$*" >>asked
if [ "$2" = update ]; then touch lists; fi
EOF
printf '#!/bin/sh\nexec "$@"\n' >bin/sudo
chmod +x bin/*

# installs NAME LISTS HAS EXPECTED WORD...: of the list WORD..., apt-get is to install EXPECTED; "": apt-get is not called; "none": only for lists.
installs() {
	local name=$1 lists=$2 has=$3 expected=$4 why='' asked
	shift 4
	rm -f lists asked
	[ "$lists" = no ] || touch lists
	printf '%s\n' "$has" >has
	printf '%s\n' "$@" >list
	PATH=$tmp/bin:$PATH "$SRC/tools/install-packages" list >out 2>err || why+=' it fails;'
	asked=$(sed -n 's/.*--no-install-recommends install //p' asked 2>/dev/null)
	case $expected in
	'') [ ! -e asked ] || why+=" apt-get was called: $(cat asked);" ;;
	none) [ -e asked ] && [ -z "$asked" ] || why+=" installed: $asked;" ;;
	*) [ "$asked" = "$expected" ] || why+=" installed: $asked;" ;;
	esac
	verdict "$name" "$why" out err
}
installs 'nothing is missing' yes '' '' gcc
installs 'a package that the distribution lacks is left out' yes '' '' gcc 'coz-profiler optional'
installs 'a package that the distribution has is installed' yes coz-profiler coz-profiler gcc 'coz-profiler optional'
installs 'lists are fetched first' no coz-profiler 'dwz coz-profiler' dwz 'coz-profiler optional'
installs 'lists tell that there is none' no '' none 'coz-profiler optional'
installs 'a package that must be there is asked for' yes '' dwz dwz

absent() { # LISTS HAS: what the list "coz-profiler optional" lacks
	rm -f lists
	[ "$1" = no ] || touch lists
	printf '%s\n' "$2" >has
	printf 'coz-profiler optional\ndwz\n' >list
	PATH=$tmp/bin:$PATH "$SRC/tools/install-packages" --absent list
}
why=
[ "$(absent yes '')" = coz-profiler ] || why+=' it is not named;'
[ -z "$(absent yes coz-profiler)" ] || why+=' one that the distribution has is named;'
[ -z "$(absent no '')" ] || why+=' one is named without lists;'
verdict 'packages that the distribution lacks are named' "$why"

# A compiler that does not find coz.h as long as the file "without" is there.
cat >"$tmp/cc" <<'EOF'
#!/usr/bin/env bash
if [ -e "${0%/*}/without" ]; then
	for word in "$@"; do
		if [[ $word == *coz.h* ]] || { [[ $word == *.c ]] && grep -qs 'coz\.h' "$word"; }; then
			echo "coz.h: no such file" >&2
			exit 1
		fi
	done
fi
exec cc "$@"
EOF
chmod +x "$tmp/cc"
has=no
! printf '#include <coz.h>\n' | cc -E - >/dev/null 2>&1 || has=yes
if [ "$has" = no ]; then
	echo 'skip programs of packages that come later: needs package:coz-profiler'
	exit 0
fi

touch "$tmp/without"
why=
CC=$tmp/cc meson setup "$tmp/build" "$SRC" >"$tmp/log" 2>&1 || why+=' meson setup fails;'
! grep -q coz_macros "$tmp/build/build.ninja" || why+=' the header was found at once;'
rm "$tmp/without"
{
	meson configure "$tmp/build" --clearcache && meson setup --reconfigure "$tmp/build" "$SRC"
} >>"$tmp/log" 2>&1 || why+=' it cannot be set up again;'
grep -q coz_macros "$tmp/build/build.ninja" || why+=' the header is not found later;'
verdict 'programs of packages that come later' "$why" "$tmp/log"
