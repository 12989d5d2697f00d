#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# A program's debug information names whatever it likes as its source. What is shown of it is what the invoking user can read, or
# anybody if that is root, whoever owns the program; and regular files alone.
# needs: root btf python3
# beside: others
# shellcheck disable=SC2154 # what helpers.sh sets
set -uo pipefail
# shellcheck source=tests/e2e/helpers.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/helpers.sh"
cd "$tmp" || exit 1
chmod 711 .

# Program NAME, whose functions seem to come from the file NAME.txt of DIRECTORY.
make_program() { # NAME [DIRECTORY]
	cat >"$1.c" <<C
#include <stdint.h>
static volatile uint64_t sink;
__attribute__((noinline)) void progress(void) { __asm__ volatile(""); }
# 3 "${2:-$tmp}/$1.txt"
__attribute__((noinline)) static void hot(void) { for (int i = 0; i < 100000; i++) { sink += (uint64_t)i; } }
# 9 "$tmp/$1.c"
int main(void) { for (;;) { hot(); progress(); } }
C
	gcc -O1 -g -o "$1" "$1.c"
}

for name in root own public pipe; do
	make_program "$name" || exit 1
	[ "$name" = pipe ] || for i in 1 2 3 4 5; do echo "text-of-$name $i"; done >"$name.txt"
done
chmod 600 root.txt own.txt
chmod 644 public.txt
chown 1:1 own.txt
mkfifo -m 666 pipe.txt
# The program is another user's at times: that is not whose rights count.
chown 1:1 own

# What anybody could read, below a directory of root's where a process of root's is at work.
mkdir -m 700 secret
mkdir -m 755 secret/open
for i in 1 2 3 4 5; do echo "text-of-link $i"; done >secret/open/link.txt
chmod 644 secret/open/link.txt
(cd secret/open && exec sleep 600) &
at_work=$!
disown
make_program link "/proc/$at_work/cwd" || exit 1

# All ways to show the source of NAME, as SUDO (nothing: root itself): what was shown of the file.
shown() { # NAME [UID]
	local as=(env -u SUDO_UID -u SUDO_GID)
	[ $# -eq 1 ] || as=(env "SUDO_UID=$2" "SUDO_GID=$2")
	rm -f profile page-*
	timeout -k 5 20 "${as[@]}" "$COZBPF" run -q --keep-root --with-source --html "$tmp/page-run" -o profile -p progress --experiment 20 -d 2 -- "./$1" >out 2>err
	timeout -k 5 20 "${as[@]}" "$COZBPF" annotate --html page-annotate hot profile >text 2>>err || echo "annotate: $?" >>wrong
	# What the run has kept is not what the report is to find.
	sed 's/, *"source": *"[^"]*"//' profile >bare
	! grep -q 'text-of' bare || echo 'not bare' >>wrong
	timeout -k 5 20 "${as[@]}" "$COZBPF" report --with-source --html page-report bare >out 2>>err || echo "report: $?" >>wrong
	grep -q "$1.txt:3" text && grep -q "$1.txt:3" page-report || echo 'no line' >>wrong
	for file in profile page-run page-report page-annotate text; do
		grep -q "text-of-$1" "$file" && printf '%s ' "$file"
	done
}
everywhere='profile page-run page-report page-annotate text '

expect() { # NAME EXPECTED NAME [UID]
	local name=$1 expected=$2 why='' found
	shift 2
	: >wrong
	found=$(shown "$@")
	[ "$found" = "$expected" ] || why+=" '$found' show it, not '$expected';"
	[ ! -s wrong ] || why+=" $(tr '\n' ';' <wrong)"
	verdict "$name" "$why" err
}
expect 'what only root can read is not shown by root' '' root
expect 'nor what only the program'\''s owner can read' '' own
expect 'what anybody can read is' "$everywhere" public
expect 'a user sees what only that user can read' "$everywhere" own 1
expect 'and nothing of root' '' root 1
expect 'a pipe is not opened' '' pipe
expect 'nor what only a link of another process'\''s leads to' '' link
expect 'not for a user either' '' link 1
