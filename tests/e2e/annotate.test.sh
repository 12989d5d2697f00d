#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The instructions of functions that wait for something that is known.
# needs: root btf python3 package:llvm
# shellcheck disable=SC2154 # what helpers.sh sets
set -uo pipefail
# shellcheck source=tests/e2e/helpers.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/helpers.sh"
cd "$tmp" || exit 1

cat >causes.c <<'C'
#include <stdint.h>
#include <stdlib.h>
#define N (8u << 20)
static uint32_t *next;
static volatile uint64_t sink, divisor = 7;
static volatile uint32_t word;
__attribute__((noinline)) static void chase(void)
{
	uint32_t at = 0;

	for (int i = 0; i < 100000; i++)
		at = next[at]; /* line 12 */
	sink = at;
}
__attribute__((noinline)) static void divide(void)
{
	uint64_t x = ~0ull;

	for (int i = 0; i < 1000000; i++)
		x = x / divisor + (1ull << 60); /* line 20 */
	sink = x;
}
__attribute__((noinline)) static void lock(void)
{
	for (int i = 0; i < 1000000; i++)
		__atomic_fetch_add(&word, 1, __ATOMIC_SEQ_CST); /* line 26 */
}
int main(void)
{
	next = malloc(N * sizeof(*next));
	for (uint32_t i = 0; i < N; i++) /* each once, in an order that no prefetcher follows */
		next[i] = (i * 1664525u + 1013904223u) % N;
	for (;;) {
		chase();
		divide();
		lock();
	}
}
C
gcc -O1 -g causes.c -o causes || exit 1
./causes &
job=$!
sleep 0.5
timeout -k 5 60 "$COZBPF" collect --db db --rate 2000 -d 4s 2>log || exit 1
kill "$job"

# The two instructions with the most samples: CPUs differ in which of two neighbours a sample finds.
why=''
for case in 'chase 12 data cache' 'divide 20 divider' 'lock 26 lock'; do
	read -r function line cause <<<"$case"
	"$COZBPF" annotate --db db --image causes --json "$function" >out.json 2>complaint || why+=" $function: status $?;"
	why+=$(
		python3 - "$line" "$cause" <<'P'
import json, sys
of = json.load(open("out.json", encoding="utf-8"))
rows = [x for b in of["blocks"] for x in b["instructions"]]
found = sum(x["samples"] for x in rows)
most = sorted(rows, key=lambda x: -x["samples"])[:2]
# Or at the one after it.
near = most + [rows[i - 1] for i, x in enumerate(rows) if i and x in most]
if of["samples"] < 50 or found < 0.98 * of["samples"]:
    print(f" {of['function']}: {found} of {of['samples']} samples;")
if not any(x.get("line") == int(sys.argv[1]) and x["file"].endswith("/causes.c") for x in near):
    print(f" {of['function']}: {[x.get('line') for x in near]};")
if not any(sys.argv[2] in x["possible"] for x in most):
    print(f" {of['function']}: {most};")
if of["skid"] not in ("none", "next", None) or not of["model"] or not any(x.get("cycles") for x in rows):
    print(f" {of['function']}: no cycles;")
P
	)
done
verdict 'causes are among those that are possible' "$why" complaint out.json

why=''
"$COZBPF" annotate --db db --width 80 causes.c:12 >out 2>complaint || why+=" status $?;"
grep -qE '^chase in .*/causes: [0-9]+ of [0-9]+ samples' out || why+=' no head;'
grep -qE 'causes.c:12 +at = next\[at\];' out || why+=' no source;'
grep -qE '^ +[0-9]+ +[0-9.]+ % +[0-9.]+ +[0-9a-f]+  [a-z]' out || why+=' no instruction;'
grep -q 'may wait for: ' out || why+=' no cause;'
grep -q '^- Samples are at the instruction' out || why+=' it is not said where samples are;'
[ "$(awk '{ if (length($0) > n) n = length($0) } END { print n }' out)" -le 80 ] || why+=' wider than 80 columns;'
[ ! -s complaint ] || why+=' a complaint;'
verdict 'source and instructions' "$why" complaint out

refuses() { # PATTERN ARGUMENT...
	local pattern=$1
	shift
	"$COZBPF" annotate --db db "$@" >out 2>complaint && why+=" $*: not refused;"
	[ "$(wc -l <complaint)" -eq 1 ] && grep -qE -- "$pattern" complaint || why+=" $*: $(head -n 1 complaint);"
}
why=''
refuses "has a function 'chose'; did you mean 'chase'" --image causes chose
refuses "no samples in 'main'|has 'main'" --image causes --process nobody main
refuses "has 'causes.c:1000'" causes.c:1000
refuses 'name a function' --all
refuses 'several words' chase divide
refuses "no database|cannot" --db /nowhere chase
verdict 'bad input' "$why"
