#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# BINARY:FUNCTION with a BINARY that is written as a shell would take it: relative, by a link, of a program that a wrapper starts, or libtool, or the
# dynamic linker. And what is said of one that is not loaded.
# needs: root btf python3
# beside: others
# shellcheck disable=SC2154 # what helpers.sh sets
set -uo pipefail
# shellcheck source=tests/e2e/helpers.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/helpers.sh"
cd "$tmp" || exit 1

cat >passes.c <<'C'
#include <stdlib.h>
#include <unistd.h>
__attribute__((noipa)) void point(void)
{
	__asm__ volatile("");
}
int main(int argc, char **argv)
{
	for (long i = argc > 1 ? atol(argv[1]) : 1000; i > 0; i--) {
		usleep(1000);
		point();
	}
	return 0;
}
C
mkdir -p folder .libs
gcc -O2 -g passes.c -o passes || exit 1
cp passes folder/passes
cp passes .libs/lt-tool
cp passes .libs/other
ln -s passes link
# shellcheck disable=SC2016 # for the script to expand
printf '#!/bin/sh\nexec "$(dirname "$0")/.libs/lt-tool" "$@"\n' >tool
# shellcheck disable=SC2016
printf '#!/bin/sh\n"$(dirname "$0")/.libs/other" "$@"\n' >other
printf '#!/bin/sh\nsleep 0.1\n./passes\n' >script
chmod +x tool other script
linker=$(readelf -l passes | sed -n 's/.*interpreter: \(.*\)]/\1/p')

passed() { # POINT COMMAND...
	local point=$1
	shift
	profiled --experiment 100 -p "it=$point" -- "$@" || why+=' it failed;'
	holds "visits('it') > 10" || why+=" $(ask "visits('it')") visits;"
	[ ! -s err ] || why+=' it complains;'
}

while read -r point command; do
	why=''
	# shellcheck disable=SC2086 # several words
	tried passed "$point" $command
	verdict "$point: $command" "$why" err
done <<LIST
./passes:point ./passes
folder/../link:point ./passes
passes:point ./passes
./passes:point timeout 30 ./passes
./passes:point env A=b ./passes
./passes:point ./script
./tool:point ./tool
tool:point ./tool
./other:point ./other
./passes:point $linker --inhibit-cache ./passes
point $linker ./passes
point timeout 30 $linker ./passes
LIST

./passes 100000 &
target=$!
attached() {
	rm -f -- "$profile"
	timeout -k 5 "$limit" "$COZBPF" attach "$target" -q --no-report -o "$profile" --experiment 100 -d 1 -p it=./passes:point 2>err || why+=' it failed;'
	holds "visits('it') > 10" || why+=" $(ask "visits('it')") visits;"
}
why=''
tried attached
verdict 'attach' "$why" err
kill "$target"

# One that is never loaded: said while the program runs, and at its end; and what has its name.
"$COZBPF" run --keep-root -q --no-report -o "$profile" -p folder/passes:point -- timeout 30 ./passes 5000 2>err &
job=$!
await_line err 'folder/passes yet; what is loaded is .*/passes$' 15 && why='' || why=' it is not said soon;'
kill -0 "$job" || why+=' but at the end;'
wait "$job"
grep -q 'has loaded folder/passes; what is loaded is' err || why+=' not at the end;'
[ "$(wc -l <err)" -eq 2 ] || why+=" $(wc -l <err) lines;"
verdict 'another file of that name is none' "$why" err

# A wrapper that takes its time is no reason to give up.
printf '#!/bin/sh\nsleep 3\n./passes\n' >slow
chmod +x slow
why=''
profiled --experiment 100 -p it=./passes:point -- ./slow || why+=' it failed;'
holds "visits('it') > 10" || why+=" $(ask "visits('it')") visits;"
[ "$(wc -l <err)" -eq 1 ] || why+=" $(wc -l <err) lines;"
grep -q 'has loaded ./passes yet$' err || why+=' it does not say yet;'
verdict 'a wrapper that takes its time' "$why" err

# A user can give a file any name in a namespace. Who maps it by the path that leads to it here gives it its name for everybody.
cp passes forged
unshare --user --map-root-user --mount sh -c 'mount --bind passes forged && exec ./forged 100000' 2>complaint &
forger=$!
./passes 100000 &
target=$!
executed() { [[ $(readlink "/proc/$forger/exe") == */forged ]]; }
for _ in {1..50}; do
	executed && break
	sleep 0.1
done
if executed; then
	named() {
		rm -f -- "$profile"
		timeout -k 5 "$limit" "$COZBPF" attach "$forger,$target" -q --no-report -o "$profile" --slopes-only -d 1 -b passes -p it=point 2>err || why+=' it failed;'
		grep -q '"seen":[1-9]' "$profile" || why+=' no visits;'
	}
	why=''
	tried named
	verdict 'a name by a mount of a user is not that for all' "$why" err
else
	printf 'skip a name by a mount of a user is not that for all: %s\n' "$(head -n 1 complaint)"
fi
kill "$forger" "$target"
