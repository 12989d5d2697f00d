#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# What a build takes without tests; and that programs of packages that come after a build directory was set up, as it is by tools/quickstart, are built by
# what tests/run does when packages have changed. tests/lint/packages.sh has what is installed.
# needs: meson
# beside: others
# shellcheck disable=SC2154 # what helpers.sh sets
set -uo pipefail
# shellcheck source=tests/e2e/helpers.sh
source "$SRC/tests/e2e/helpers.sh"

# A newcomer's build: no packages of the tests, no warning that is an error, and each thing that is found is said once.
why=
meson setup "$tmp/plain" "$SRC" >"$tmp/log" 2>&1 || why+=' meson setup fails;'
! grep -q 'cmocka' "$tmp/log" || why+=' it looks for cmocka;'
! grep -q -- '-Werror' "$tmp/plain/build.ninja" || why+=' warnings are errors;'
[ "$(grep -ci 'dependency threads' "$tmp/log")" -eq 1 ] || why+=" threads are found $(grep -ci 'dependency threads' "$tmp/log") times;"
[ "$(grep -c '^build tests/' "$tmp/plain/build.ninja")" -eq 0 ] || why+=' there are tests in it;'
grep -q '^build examples/barrier:' "$tmp/plain/build.ninja" || why+=' no examples;'
verdict 'a build without tests' "$why" "$tmp/log"

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
CC=$tmp/cc meson setup "$tmp/build" "$SRC" -Dtests=true >"$tmp/log" 2>&1 || why+=' meson setup fails;'
! grep -q coz_macros "$tmp/build/build.ninja" || why+=' the header was found at once;'
rm "$tmp/without"
{
	meson configure "$tmp/build" --clearcache && meson setup --reconfigure "$tmp/build" "$SRC" -Dtests=true
} >>"$tmp/log" 2>&1 || why+=' it cannot be set up again;'
grep -q coz_macros "$tmp/build/build.ninja" || why+=' the header is not found later;'
verdict 'programs of packages that come later' "$why" "$tmp/log"
