#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The Debian package: lintian finds no error, it takes no compiler to run, and what it installs is what meson installs.
# needs: root git dpkg-buildpackage lintian
# tier: full
# shellcheck disable=SC2154 # what helpers.sh sets
set -uo pipefail
# shellcheck source=tests/e2e/helpers.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/helpers.sh"

why=
package=$("$SRC/tools/package" deb "$tmp/package" 2>"$tmp/complaint" | tail -n 1)
[ -s "$package" ] || why+=' none was built;'
verdict 'a package is built' "$why" "$tmp/complaint"
[ -z "$why" ] || exit 1
lintian "$package" >"$tmp/out" 2>&1
! grep '^E:' "$tmp/out" >"$tmp/errors" && why='' || why=" $(wc -l <"$tmp/errors") errors;"
verdict 'lintian' "$why" "$tmp/out"
depends=$(dpkg-deb -f "$package" Depends)
! grep -qE 'gcc|clang|llvm|-dev|python|meson' <<<"$depends" && why='' || why=" $depends;"
verdict 'no compiler among what it needs to run' "$why"
why=
mkdir "$tmp/control"
dpkg-deb -e "$package" "$tmp/control" || why+=' it cannot be unpacked;'
! grep -hE 'deb-systemd-helper enable|deb-systemd-invoke .*start|systemctl .*(enable|start)' "$tmp"/control/p* "$tmp"/control/*inst 2>/dev/null >"$tmp/out" || why+=' it is started;'
grep -q 'dh_installsystemd --no-enable --no-start' "$SRC/tools/debian/rules" || why+=' newer tools would start it;'
verdict 'nothing is started by installing' "$why" "$tmp/out"
why=
dpkg-deb -x "$package" "$tmp/root" || why+=' it cannot be unpacked;'
[ "$("$tmp/root/usr/bin/cozbpf" --version)" = "$("$COZBPF" --version)" ] || why+=' another version;'
for file in share/man/man1/cozbpf-run.1.gz share/bash-completion/completions/cozbpf share/zsh/site-functions/_cozbpf share/doc/cozbpf/README.md share/doc/cozbpf/copyright; do
	[ -s "$tmp/root/usr/$file" ] || [ -s "$tmp/root/usr/$file.gz" ] || why+=" no $file;"
done
"$tmp/root/usr/bin/cozbpf" run --keep-root -q -o "$tmp/profile.jsonl" -p progress -d 2 -- "$BUILD/examples/barrier" 3 >"$tmp/out" 2>"$tmp/complaint" </dev/null || why+=' it does not run;'
grep -q "Progress point 'progress'" "$tmp/complaint" || why+=' it reports nothing;'
verdict 'what the package has' "$why" "$tmp/complaint" "$tmp/out"
