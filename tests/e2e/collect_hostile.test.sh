#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# What users do to a collector: names and files without end, builds that are not theirs. And databases of others: epochs that hide, pipes that hang.
# needs: root btf python3 setpriv objcopy
# beside: others
# shellcheck disable=SC2154 # what helpers.sh sets
set -uo pipefail
# shellcheck source=tests/e2e/helpers.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/helpers.sh"
cd "$tmp" || exit 1

nobody() { # COMMAND...: as another user, in the background
	exec setpriv --reuid 65534 --regid 65534 --clear-groups "$@"
}

# rows DATABASE FIELD CONDITION: the values of a field (process, image, build_id, count) of rows for which a Python condition holds, one a line.
rows() {
	"$COZBPF" db export --to csv --db "$1" 2>>complaint | python3 -c 'import csv, sys
wanted = compile(sys.argv[2], "", "eval")
for row in csv.DictReader(sys.stdin):
    if eval(wanted, {}, row):
        print(row[sys.argv[1]])' "$2" "$3"
}

total() { # DATABASE
	rows "$1" count 'image != "[sampler]"' | awk '{ n += $1 } END { print n + 0 }'
}

# Several programs at once, which say by their names what they do.
cat >hostile.c <<'C'
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>
static uint64_t now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1000000000ULL + t.tv_nsec; }
/* A loop that ends after so many turns: mov %rdi,%rax; 1: dec %rax; jnz 1b; ret. */
static const unsigned char code[] = {0x48, 0x89, 0xf8, 0x48, 0xff, 0xc8, 0x75, 0xfb, 0xc3};
static void rename_always(void)
{
	char name[16];
	for (unsigned int i = 0;; i++) {
		snprintf(name, sizeof(name), "n%u", i);
		prctl(PR_SET_NAME, name);
		for (uint64_t end = now() + 100000; now() < end;)
			for (volatile int k = 0; k < 1000; k++)
				;
	}
}
static void make_files(void)
{
	prctl(PR_SET_NAME, "maker");
	for (;;) {
		int fd = memfd_create("x", MFD_CLOEXEC);
		void *at;
		if (write(fd, code, sizeof(code)) != sizeof(code))
			_exit(1);
		at = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
		((void (*)(uint64_t))at)(10000000);
		munmap(at, 4096);
		close(fd);
	}
}
int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "names") == 0)
		rename_always();
	if (argc > 1 && strcmp(argv[1], "files") == 0)
		make_files();
	return 1;
}
C
gcc -O2 hostile.c -o hostile || exit 1
cat >work.c <<'C'
#include <stdint.h>
__attribute__((noinline)) void WORK(void) { uint64_t x = 3; for (int i = 0; i < 100000; i++) __asm__ volatile(".rept 16\n\timul %0, %0\n\t.endr" : "+r"(x)); }
int main(void) { for (;;) WORK(); }
C
# Two builds with one build id, one of which is another user's.
mkdir theirs && chmod 755 .
gcc -O2 -DWORK=honest -Wl,--build-id=0x0123456789abcdef0123456789abcdef01234567 work.c -o honest || exit 1
gcc -O2 -DWORK=forged -Wl,--build-id=0x0123456789abcdef0123456789abcdef01234567 work.c -o theirs/forged || exit 1
chown -R 65534:65534 theirs

: >log
: >complaint
"$COZBPF" collect --db db --rate 5000 --max-size 32M 2>>log &
job=$!
await_line log 'collect: 5000 samples a second' 10
nobody ./hostile names &
names=$!
nobody ./hostile files &
files=$!
nobody theirs/forged &
forged=$!
./honest &
honest=$!
sleep 5
# Each is a writing.
kill -HUP "$job"
sleep 4
reader=$(pgrep -x coz-build-ids -P "$(pgrep -d , -P "$job")")
grep -q 'Seccomp:.*2' "/proc/${reader:-0}/status" && grep -q 'Uid:.*65534' "/proc/${reader:-0}/status" && why='' || why=" no confined process reads build ids ($reader);"
verdict 'files are read by a process without rights' "$why"
peak=$(sed -n 's/VmHWM:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$job/status")
kill "$names" "$files" "$forged" "$honest"
kill -TERM "$job"
wait "$job" && why='' || why=" status $?;"
[ "${peak:-999999}" -lt 100000 ] || why+=" $peak KiB at its peak;"
n=$(rows db process 'image.endswith("/hostile")' | sort -u | wc -l)
[ "$n" -ge 1 ] && [ "$n" -le 1024 ] || why+=" $n processes;"
# On a machine that is busy there can be fewer.
[ "$n" -lt 1024 ] || rows db process 'image.endswith("/hostile")' | found -x '\[other\]' || why+=' the rest is nowhere;'
rows db process 'image.endswith("/honest")' | found -x honest || why+=' an honest one is not there;'
verdict 'a process that has many names' "$why" log complaint

why=''
n=$(find db -name '*-u65534*.counts' | wc -l)
[ "$n" -ge 1 ] && [ "$n" -le 20 ] || why+=" $n files of a user;"
rows db process 'image == "[other]"' | found -x maker || why+=' the rest is nowhere;'
verdict 'a process that has many files' "$why" complaint

why=''
[ "$(rows db image 'build_id.startswith("0123456789abcdef")' | sort -u | wc -l)" -eq 2 ] || why+=' one image of two;'
[ "$(rows db image 'process == "forged" and build_id.startswith("0123456789abcdef")' | sort -u)" = "$tmp/theirs/forged" ] || why+=' samples of another file;'
"$COZBPF" top --db db --json --top 0 2>>complaint >top.json || why+=" status $?;"
why+=$(
	python3 - <<'P'
import json
for row in json.load(open("top.json", encoding="utf-8"))["shares"]["rows"]:
    name = row["image"].rsplit("/", 1)[-1]
    if row["function"] in ("honest", "forged") and name != row["function"]:
        print(f" {row['function']} in {name};")
P
)
grep -q '"forged"' top.json && grep -q '"honest"' top.json || why+=' a function is missing;'
verdict 'a build id that is not its own' "$why" complaint

# Root looks at what is a user's with this user's rights: a link to a program that only root can read.
why=''
cp theirs/forged secret && chown 0:0 secret && chmod 700 secret
ln -sf "$tmp/secret" theirs/forged
"$COZBPF" top --db db --json --top 0 2>>complaint >top.json || why+=" status $?;"
! grep -q '"function": *"forged"' top.json || why+=' it was read;'
verdict "a link to what only root can read" "$why" complaint

# Paths and names in which there are ends of lines are apart.
mkdir lines
gcc -O2 -DWORK=work -Wl,--build-id=0x0a work.c -o lines/p && gcc -O2 -DWORK=work -Wl,--build-id=0x0b work.c -o lines/q || exit 1
objcopy --redefine-sym work=$'q\nf' lines/p
objcopy --redefine-sym work=f lines/q
mv lines/q lines/p$'\nq'
lines/p &
first=$!
other=lines/p$'\nq'
"$other" &
second=$!
"$COZBPF" collect --db lines.db --rate 500 -d 2s 2>>log
kill "$first" "$second"
"$COZBPF" top --db lines.db --json --top 0 2>>complaint >top.json
why=$(
	python3 - <<'P'
import json
names = {row["function"] for row in json.load(open("top.json", encoding="utf-8"))["shares"]["rows"]}
if not {"q\nf", "f"} <= names:
    print(f" {sorted(names)[:20]}")
P
)
verdict 'names with ends of lines' "$why" complaint

# A pipe in an epoch is not waited for, an epoch of 136 years hides nothing.
why=''
before=$(total db)
epoch=$(basename "$(find db -mindepth 1 -type d | head -n 1)")
mkfifo "db/$epoch/x.jsonl"
: >complaint
timeout 20 "$COZBPF" report --db db >out 2>complaint
[ $? -eq 125 ] || why+=' it waits;'
grep -q "x.jsonl' is left out: it is no regular file" complaint || why+=' the pipe is not named;'
mkdir "db/${epoch%%-*}-4294967296"
: >complaint
[ "$(total db)" -eq "$before" ] && [ "$before" -gt 0 ] || why+=' samples are hidden;'
grep -q 'it is no epoch' complaint || why+=' the epoch is not named;'
verdict 'things that do not belong there' "$why" complaint

printf 'cozbpf database 1\n' >db/cozbpf-database
bad 'a database of another version' 'written by another version of cozbpf' top --db db
bad 'the same, to be written to' 'written by another version of cozbpf' collect --db db
none_left && why='' || why='a process'
verdict 'nothing is left behind' "$why"
