#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# meson install: the program, its manual pages, the licence, the README and the examples, and nothing else.
# needs: meson rst2man
# beside: others
# shellcheck disable=SC2154 # what helpers.sh sets
set -uo pipefail
# shellcheck source=tests/e2e/helpers.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/helpers.sh"

why=
DESTDIR=$tmp/root meson install -C "$BUILD" --no-rebuild >"$tmp/out" 2>&1 || why+=' meson install fails;'
cd "$tmp/root" || exit 1
prefix=$(dirname "$(find . -path '*/bin')")
documents=$prefix/share/doc/cozbpf
cmp -s "$documents/LICENSE" "$SRC/LICENSE" || why+=' no licence;'
cmp -s "$documents/README.md" "$SRC/README.md" || why+=' no README;'
for file in "$SRC"/examples/*; do
	[ "${file##*/}" = meson.build ] || cmp -s "$documents/examples/${file##*/}" "$file" || why+=" no examples/${file##*/};"
done
for page in "$SRC"/user/cmd/man/cozbpf*.rst; do
	page=${page##*/}
	page=${page%.rst}
	grep -q '^\.TH' "$prefix/share/man/man${page##*.}/$page" || why+=" no manual page $page;"
done
others=$(find . -type f ! -path "$documents/*" ! -path "$prefix/bin/cozbpf" ! -path "$prefix/share/man/man?/cozbpf*")
[ -z "$others" ] || why+=" also there: $others;"
[ "$("$prefix/bin/cozbpf" --version 2>&1)" = "$("$COZBPF" --version 2>&1)" ] || why+=' the program does not run;'
verdict 'meson install' "$why" "$tmp/out"
