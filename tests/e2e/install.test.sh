#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# meson install: the program, its manual pages and completions, the licence, the README and the examples, and nothing else. Completions complete.
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
for page in "$SRC"/user/cli/man/cozbpf*.rst; do
	page=${page##*/}
	page=${page%.rst}
	grep -q '^\.TH' "$prefix/share/man/man${page##*.}/$page" || why+=" no manual page $page;"
done
for file in bash-completion/completions/cozbpf zsh/site-functions/_cozbpf fish/vendor_completions.d/cozbpf.fish; do
	[ -s "$prefix/share/$file" ] || why+=" no $file;"
done
unit=$prefix/lib/systemd/system/cozbpf-collect.service
grep -q '^ExecStart=/.*/bin/cozbpf collect$' "$unit" || why+=' no unit for collect, or another program in it;'
others=$(find . -type f ! -path "$unit" ! -path "$documents/*" ! -path "$prefix/bin/cozbpf" ! -path "$prefix/share/man/man?/cozbpf*" ! -path "$prefix/share/*/*ozbpf*")
[ -z "$others" ] || why+=" also there: $others;"
[ "$("$prefix/bin/cozbpf" --version 2>&1)" = "$("$COZBPF" --version 2>&1)" ] || why+=' the program does not run;'
verdict 'meson install' "$why" "$tmp/out"

# completed WORD...: what bash offers for the last of them, or for the one that $cursor says.
completed() {
	cursor=${cursor:-} bash -c 'PATH=$1:$PATH; source "$2"; shift 2; COMP_WORDS=("$@"); COMP_CWORD=${cursor:-$(($# - 1))}
		_cozbpf cozbpf "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"; printf "%s\n" "${COMPREPLY[@]}"' bash "${COZBPF%/*}" "$prefix/share/bash-completion/completions/cozbpf" "$@"
}
offers() { # NAME WANTED UNWANTED WORD...
	local name=$1 wanted=$2 unwanted=$3 why=''
	shift 3
	completed "$@" >"$tmp/offered" 2>"$tmp/out"
	grep -qxF -e "$wanted" "$tmp/offered" || why+=" it does not offer $wanted;"
	! grep -qxF -e "$unwanted" "$tmp/offered" || why+=" it offers $unwanted;"
	[ ! -s "$tmp/out" ] || why+=' it complains;'
	verdict "completion in bash: $name" "$why" "$tmp/out" "$tmp/offered"
}
offers 'commands' attach run cozbpf at
offers 'options of a command' --markdown --until-ci cozbpf report --
offers 'options of another command' --until-ci --nothing cozbpf run --u
offers 'words that an option takes' always yes cozbpf attach --inject a
cursor=3 offers 'functions of the program' progress work cozbpf run -p pro -- "$BUILD/examples/barrier"
offers 'processes' $$ nothing cozbpf attach ''
offers 'commands to be helped with' annotate --help cozbpf help an
offers 'what can be listed' points --source cozbpf list p
offers 'what a database is asked for' compact points cozbpf db c
offers 'options of what a database is asked for' --older-than --to cozbpf db compact --o
offers 'what to try' timer disk cozbpf run --what t
offers 'the next of what to try' disk,network disk,disk cozbpf run --what disk,n
offers 'a kind of wait' network disk cozbpf run --fixed-class n

why=''
cmp -s <("$COZBPF" help report) <("$COZBPF" report --help) || why+=' help of a command is not its --help;'
cmp -s <("$COZBPF" help) <("$COZBPF" --help) || why+=' help alone is not --help;'
"$COZBPF" help repot >"$tmp/out" 2>&1 && why+=' another word is taken;'
grep -q 'did you mean report' "$tmp/out" || why+=' nothing is proposed;'
"$COZBPF" help | grep -q 'cozbpf list .*points' || why+=' list points is not in the overview;'
verdict 'help' "$why" "$tmp/out"
