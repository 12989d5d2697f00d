#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Who can read what is written: as the umask says, and nobody else where others cannot read what it was made of.
# beside: others
# shellcheck disable=SC2154 # what helpers.sh sets
set -uo pipefail
# shellcheck source=tests/e2e/helpers.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/helpers.sh"
cd "$tmp" || exit 1

cp "$SRC/tests/data/exact.jsonl" public.jsonl && chmod 644 public.jsonl
cp public.jsonl private.jsonl && chmod 600 private.jsonl
"$COZBPF" db compact --db private-db >/dev/null || exit 1
cp -r private-db public-db && chmod -R a+rX public-db

# Each way to write a file, of profiles and databases that are called @1.
write_all() { # KIND
	local kind=$1
	"$COZBPF" report --html "$kind-report" "$kind.jsonl"
	"$COZBPF" report --html "$kind-report-2" public.jsonl "$kind.jsonl"
	"$COZBPF" diff --html "$kind-diff" public.jsonl "$kind.jsonl"
	"$COZBPF" merge -o "$kind-merge" public.jsonl "$kind.jsonl"
	"$COZBPF" export --to trace -o "$kind-export-trace" "$kind.jsonl"
	for form in csv json; do "$COZBPF" db export --to "$form" -o "$kind-db-export-$form" --db "$kind-db"; done
	"$COZBPF" top --html "$kind-top" --db "$kind-db"
}

modes() { # NAME KIND UMASK MODE
	local name=$1 why='' n=0
	(umask "$3" && write_all "$2") >out 2>err || why+=' a command failed;'
	for file in "$2"-*; do
		[ -f "$file" ] || continue
		n=$((n + 1))
		[ "$(stat -c %a "$file")" = "$4" ] || why+=" $file has $(stat -c %a "$file");"
	done
	[ "$n" -eq 8 ] || why+=" $n files;"
	verdict "$name" "$why" err
	[ "$keep" ] || rm -rf "$2"-{report,report-2,diff,merge,export-*,db-export-*,top}
}

keep=''
modes 'the umask counts' public 077 600
modes 'a umask for a group counts' public 027 640
modes 'what others cannot read stays so' private 000 600
keep=1
modes 'what others can read they can' public 022 644

# A page that its owner has closed is not opened again.
chmod 600 public-report
"$COZBPF" report --html public-report public.jsonl >out 2>err && why='' || why=" status $?;"
[ "$(stat -c %a public-report)" = 600 ] || why+=" it has $(stat -c %a public-report);"
verdict 'what was closed stays closed' "$why" err
