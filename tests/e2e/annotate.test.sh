#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The instructions of functions: of a database and of a profile, with what lines are worth; as text, JSON and HTML.
# needs: root btf python3 package:llvm chromium
# shellcheck disable=SC2154 # what helpers.sh sets
set -uo pipefail
# shellcheck source=tests/e2e/helpers.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/helpers.sh"
cd "$tmp" || exit 1
chmod 711 . # sources are read with the rights of nobody

cat >causes.c <<'C'
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#define N (8u << 20)
static uint32_t *next;
static volatile uint64_t sink, divisor = 7;
static volatile uint32_t word;
__attribute__((noinline)) static void chase(void)
{
	uint32_t at = 0;

	for (int i = 0; i < 100000; i++)
		at = next[at]; /* line 13 */
	sink = at;
}
__attribute__((noinline)) static void divide(void)
{
	uint64_t x = ~0ull;

	for (int i = 0; i < 1000000; i++)
		x = x / divisor + (1ull << 60); /* line 21 */
	sink = x;
}
__attribute__((noinline)) static void lock(void)
{
	for (int i = 0; i < 1000000; i++)
		__atomic_fetch_add(&word, 1, __ATOMIC_SEQ_CST); /* line 27 */
}
__attribute__((noinline)) static void fill(char *to, size_t n)
{
	memset(to, (int)sink, n); /* line 31: of the library */
	sink = (uint64_t)to[n - 1];
}
__attribute__((noinline)) void progress(void)
{
	__asm__ volatile("");
}
int main(void)
{
	static char room[1 << 20];

	next = malloc(N * sizeof(*next));
	for (uint32_t i = 0; i < N; i++) /* each once, in an order that no prefetcher follows */
		next[i] = (i * 1664525u + 1013904223u) % N;
	for (;;) {
		chase();
		divide();
		lock();
		for (int i = 0; i < 20; i++)
			fill(room, sizeof(room));
		progress();
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
for case in 'chase 13 data cache' 'divide 21 divider' 'lock 27 lock'; do
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
"$COZBPF" annotate --db db --width 80 causes.c:13 >out 2>complaint || why+=" status $?;"
grep -qE '^chase in .*/causes: [0-9]+ of [0-9]+ samples' out || why+=' no head;'
grep -qE 'causes.c:13 +at = next\[at\];' out || why+=' no source;'
grep -qE '^ +[0-9]+ +[0-9.]+ % +[0-9.]+ +[0-9a-f]+  [a-z]' out || why+=' no instruction;'
grep -q 'may wait for: ' out || why+=' no cause;'
grep -qE '^Samples (are|were found) at the instruction' out || why+=' it is not said where samples are;'
[ "$(awk '{ if (length($0) > n) n = length($0) } END { print n }' out)" -le 80 ] || why+=' wider than 80 columns;'
[ ! -s complaint ] || why+=' a complaint;'
verdict 'source and instructions' "$why" complaint out

# A profile of the same program: which lines are worth it, and time in the library at the call.
timeout -k 5 60 "$COZBPF" run -q --no-report -o profile -p progress -d 8 --keep-root -- ./causes >log 2>&1
"$COZBPF" report --json profile >report.json 2>>log
why=''
"$COZBPF" annotate --json chase profile >out.json 2>complaint || why+=" status $?;"
"$COZBPF" annotate --json --all fill profile >fill.json 2>>complaint || why+=" status $?;"
why+=$(
	python3 - <<'P'
import json
of, fill, report = (json.load(open(name, encoding="utf-8")) for name in ("out.json", "fill.json", "report.json"))
rows = [x for b in of["blocks"] for x in b["instructions"]]
tried = [x for x in report["points"][0]["lines"] if x["experiments"]]
lines = {int(x["selected"].rpartition(":")[2]): x for x in tried}
shown = [x for x in rows if "effects" in x]
# As the report's columns do, it leaves out what no experiment came near.
def same_effects(x):
    pairs = [(e["change"]["effect"], c["effect"]) for e, c in zip(x["effects"], lines[x["line"]]["curve"]["at"])]
    return any(told is not None for told, _ in pairs) and all(told in (None, known) for told, known in pairs)
# At the load or at what comes after it in the loop.
if of["point"] != "progress" or not shown or any(x["line"] not in (12, 13) for x in shown):
    print(f" point {of['point']}, effects at {[x['line'] for x in shown]};")
elif not all(same_effects(x) for x in shown):
    print(f" effects {shown[0]['effects']} for {lines[shown[0]['line']]['curve']['at']};")
if of["samples"] < 100 or sum(x["samples"] for x in rows) < 0.98 * of["samples"]:
    print(f" {of['samples']} samples, {sum(x['samples'] for x in rows)} at instructions;")
rows = [x for b in fill["blocks"] for x in b["instructions"]]
called = sum(x.get("called", 0) for x in rows if x["code"].startswith("call") and x["line"] == 31)
if fill["samples"] < 20 or called < 0.9 * fill["samples"]:
    print(f" {called} of {fill['samples']} samples at the call;")
P
)
verdict 'of a profile' "$why" complaint out.json fill.json log

why=''
"$COZBPF" annotate chase --width 80 profile --html page.html >out 2>complaint || why+=" status $?;"
grep -qE '^ +worth .* % if [0-9]+ % faster \((helps|no effect|undecided)' out || why+=' not what the line is worth;'
python3 -c 'import sys; sys.exit(any(len(line.rstrip("\n")) > 80 for line in open("out", encoding="utf-8")))' || why+=' wider than 80 columns;'
# As if all speedups had been small: the report has no column for any.
python3 - <<'P'
import json
with open("profile", encoding="utf-8") as profile, open("small", "w", encoding="utf-8") as small:
    for record in map(json.loads, profile):
        if "speedup" in record:
            record["speedup"] /= 10
        print(json.dumps(record), file=small)
P
"$COZBPF" annotate chase small >out3 2>>complaint || why+=" status $?;"
grep -qE '^ +worth -?[0-9.]+ .* % if [0-9]+ % faster' out3 && ! grep -q 'worth - ' out3 || why+=' not what a little is worth;'
"$COZBPF" annotate --width 80 fill profile >out2 2>>complaint || why+=" status $?;"
grep -qE '^ +[0-9]+ +[0-9.]+ % +in what it calls$' out2 || why+=' not what it calls;'
why+=$(
	PYTHONPATH=$SRC/tools python3 - page.html <<'P'
import sys
from browser import Browser
text = open(sys.argv[1], encoding="utf-8").read()
if not text.startswith("<!doctype html>") or text.count("<script") != 1 or " style=" in text or " on" + "click" in text:
    print(" not a page like the report's;")
with Browser() as b:
    b.open(sys.argv[1])
    rows = b.value("document.querySelectorAll('table.code tr[id]').length")
    worth = b.value("document.querySelectorAll('table.code tr.source div').length")
    if rows < 5 or not worth:
        print(f" {rows} instructions, {worth} lines with an effect;")
    if b.complaints or len(b.requests) > 1:
        print(f" {b.complaints} {b.requests};")
P
)
verdict 'text and a page' "$why" complaint out out2

# Code that is not what compilers write: an instruction in another one, data, a jump that cannot be followed, a function without an end in sight.
cat >odd.s <<'S'
	.text
	.type odd, @function
	.globl odd
odd:	mov $100000, %edi
	.byte 0xeb, 0xff, 0xc0 /* jumps to its second byte: inc %eax */
	dec %edi
	jnz odd + 5
	lea 2f(%rip), %rax
	jmp *%rax
	.fill 64, 1, 0x06
2:	ret
	.size odd, . - odd
	.type long, @function
	.globl long
long:	.rept 700000
	add $1, %eax
	.endr
	ret
	.size long, . - long
	.globl progress
	.type progress, @function
progress: ret
	.size progress, . - progress
	.globl main
	.type main, @function
main:	call odd
	call long
	call progress
	jmp main
	.size main, . - main
	.section .note.GNU-stack, "", @progbits
S
gcc -g odd.s -o odd || exit 1
./odd &
job=$!
timeout -k 5 60 "$COZBPF" collect --db odd-db --rate 2000 -d 3s 2>log || exit 1
kill "$job"
why=''
timeout 60 "$COZBPF" annotate --db odd-db odd >out 2>complaint || why+=" odd: status $?;"
grep -qE '^Left out: .* 64 bytes that are no instruction' out || why+=' data are not told;'
tr '\n' ' ' <out | grep -qE '1 jump to where nobody knows, 1 into the middle' || why+=' jumps are not told;'
timeout 60 "$COZBPF" annotate --db odd-db --html long.html long >out2 2>>complaint || why+=" long: status $?;"
grep -qE '^Left out: [1-9][0-9]* bytes beyond the first' out2 || why+=' its length is not told;'
grep -qE '\.\.\. [0-9]+ instructions$' out2 || why+=' all instructions are there;'
[ "$(wc -c <long.html)" -lt 4000000 ] || why+=" a page of $(wc -c <long.html) bytes;"
verdict 'odd code' "$why" complaint out

refuses() { # PATTERN ARGUMENT...
	local pattern=$1
	shift
	"$COZBPF" annotate "$@" >out 2>complaint && why+=" $*: not refused;"
	[ "$(wc -l <complaint)" -eq 1 ] && grep -qE -- "$pattern" complaint || why+=" $*: $(head -n 1 complaint);"
}
why=''
refuses "has a function 'chose'; did you mean 'chase'" --db db --image causes chose
refuses "no samples in 'main'|has 'main'" --db db --image causes --process nobody main
refuses "has 'causes.c:1000'" --db db causes.c:1000
refuses 'name a function' --db db --all
refuses 'choose in a database' --db db chase profile
refuses 'choose in a database' --since 1h chase profile
refuses "cannot open 'nowhere'" chase nowhere
refuses 'is not a profile' chase causes.c
sed '/"addresses"/d' profile >older
refuses 'no samples by instruction' chase older
refuses "has a function 'chose'; did you mean 'chase'" chose profile
refuses "not such a report" --html causes.c chase profile
refuses "no database|cannot" --db /nowhere chase
verdict 'bad input' "$why"
