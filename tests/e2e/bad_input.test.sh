#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# What goes wrong before a run says so in one line, with the right exit status, and leaves nothing behind: no file, no process.
# Needs a C compiler; COZBPF is the executable.
# beside: others, first
set -uo pipefail
: "${COZBPF:?the path of cozbpf}"

# Not under the repository: the user nobody must get at it.
tmp=$(mktemp -d "${TMPDIR:-/tmp}/cozbpf-bad.XXXXXX") || exit 1
trap 'rm -rf "$tmp"' EXIT
chmod 755 "$tmp"
mkdir "$tmp/bin" "$tmp/out"
cp -- "$COZBPF" "$tmp/bin/cozbpf" || exit 1
chmod 755 "$tmp/bin/cozbpf"
cozbpf=$tmp/bin/cozbpf
cd "$tmp/out" || exit 1

# The program says that it ran, and would stay if nobody took care of it.
cat >"$tmp/prog.c" <<'EOF'
#include <fcntl.h>
#include <unistd.h>

void finish_request(void);
__attribute__((noinline)) void finish_request(void)
{
	__asm__ volatile("");
}

int counter = 1;

/* Its only instruction but the last has five bytes. */
void jump_there(void);
__asm__(".text\n.type jump_there, @function\njump_there: mov $1, %eax\nret\n.size jump_there, .-jump_there\n");

int main(int argc, char **argv)
{
	if (argc > 1)
		(void)open(argv[1], O_CREAT | O_WRONLY, 0600);
	finish_request();
	sleep(5);
	return 0;
}
EOF
gcc -g -O1 -o "$tmp/bin/prog" "$tmp/prog.c" || exit 1
gcc -O1 -o "$tmp/bin/plain" "$tmp/prog.c" || exit 1
gcc -O1 -s -o "$tmp/bin/stripped" "$tmp/prog.c" || exit 1
# Not even call frame information. The C library's startup files bring some, which the linker would keep.
gcc -O1 -s -fno-asynchronous-unwind-tables -Wl,--no-eh-frame-hdr -o "$tmp/bin/nothing" "$tmp/prog.c" && objcopy -R .eh_frame "$tmp/bin/nothing" || exit 1
# libstdc++ has probes.
printf 'int main(int argc, char **) { if (argc > 9) throw 1; return 0; }\n' | g++ -g -x c++ -o "$tmp/bin/throws" - || exit 1
marker=$tmp/ran
prog=$tmp/bin/prog

# Processes of the test that still live: those whose command line names its directory.
left_behind() {
	# The pattern is no argument: grep has a command line, too.
	# shellcheck disable=SC2062 # which takes the first file for it
	grep -laF --file=- /proc/[0-9]*/cmdline 2>/dev/null <<<"$tmp/" | tr -dc '0-9\n'
}

# A process that was killed takes a moment to go.
wait_for_none() {
	local _
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		[ -n "$(left_behind)" ] || return 0
		sleep 0.1
	done
	return 1
}

# expect NAME STATUS PATTERN COMMAND...: one line on stderr that matches the extended regular expression, nothing on stdout, that
# exit status, no file in the working directory but those that were there, the program not started, no process left.
expect() {
	local name=$1 status=$2 pattern=$3 got lines before after why=
	shift 3
	before=$(find "$tmp/out" -type f -printf '%p %s %T@\n' | sort)
	timeout 60 "$@" >"$tmp/stdout" 2>"$tmp/stderr" </dev/null
	got=$?
	after=$(find "$tmp/out" -type f -printf '%p %s %T@\n' | sort)
	lines=$(wc -l <"$tmp/stderr")
	[ "$got" -eq "$status" ] || why+=" exit status $got, not $status;"
	[ "$lines" -eq 1 ] || why+=" $lines lines on stderr;"
	grep -qE '^cozbpf: ' "$tmp/stderr" || why+=" the line does not say who speaks;"
	grep -qE -- "$pattern" "$tmp/stderr" || why+=" no line matches '$pattern';"
	[ ! -s "$tmp/stdout" ] || why+=" output on stdout;"
	[ "$before" = "$after" ] || why+=" files changed;"
	[ ! -e "$marker" ] || why+=" the program was started;"
	wait_for_none || why+=" left behind: $(left_behind);"
	rm -f "$marker"
	if [ -z "$why" ]; then
		printf 'ok %s\n' "$name"
	else
		printf 'not ok %s:%s\n' "$name" "$why"
		sed 's/^/# /' "$tmp/stderr"
	fi
}

can_profile() {
	"$cozbpf" check >/dev/null 2>&1
}

expect "no such command of ours" 125 "unknown command 'rnu'; did you mean run" "$cozbpf" rnu
expect "a message that would steer the terminal" 125 "unknown command '\?31m\?'" "$cozbpf" $'\xc2\x9b31m\xe2\x80\xae'
expect "unknown option before a command" 125 "unknown option '--frob'" "$cozbpf" --frob
expect "unknown option" 125 "'--progess'; did you mean --progress" "$cozbpf" run --progess f -- "$prog" "$marker"
expect "unknown letter" 125 "unknown option '-Z'" "$cozbpf" run -Z -- "$prog" "$marker"
expect "option without value" 125 "'-p' needs a value" "$cozbpf" run -p
expect "malformed number" 125 "--duration 'soon': allowed" "$cozbpf" run -d soon -- "$prog" "$marker"
expect "malformed list" 125 "--speedups '5,x': allowed" "$cozbpf" run --speedups 5,x -- "$prog" "$marker"
expect "signal that is not real-time" 125 "--signal '27': allowed" "$cozbpf" run --signal 27 -- "$prog" "$marker"
expect "malformed point" 125 "'a.c:0'" "$cozbpf" run -p a.c:0 -- "$prog" "$marker"
expect "malformed kind of point" 125 "written syscall:NAME" "$cozbpf" run -p syscall: -- "$prog" "$marker"
expect "no command" 125 "no command" "$cozbpf" run -p finish_request --
expect "command not found" 127 "no-such-program" "$cozbpf" run -- no-such-program
expect "path not found" 127 "No such file" "$cozbpf" run -- "$tmp/bin/no-such-program"
expect "directory as command" 126 "directory" "$cozbpf" run -- "$tmp/bin"
printf 'hello\n' >"$tmp/bin/text"
expect "not executable" 126 "[Pp]ermission|not executable" "$cozbpf" run -- "$tmp/bin/text"

# An ELF header for 32-bit ARM, and one for 64-bit ARM: e_ident, type 2, machine 40 and 183, version 1, the rest zero.
{
	printf '\177ELF\001\001\001\000\000\000\000\000\000\000\000\000\002\000\050\000\001\000\000\000'
	head -c 28 /dev/zero
} >"$tmp/bin/arm"
{
	printf '\177ELF\002\001\001\000\000\000\000\000\000\000\000\000\002\000\267\000\001\000\000\000'
	head -c 40 /dev/zero
} >"$tmp/bin/arm64"
head -c 100 "$prog" >"$tmp/bin/cut"
printf '\177ELF' >"$tmp/bin/magic"
: >"$tmp/bin/empty"
chmod 755 "$tmp"/bin/*
expect "list: foreign executable" 125 "$tmp/bin/arm64" "$cozbpf" list functions "$tmp/bin/arm64"
expect "list: no debug information" 125 "-g" "$cozbpf" list lines "$tmp/bin/plain"
expect "list: no such process" 125 "no command and no process 99999999" "$cozbpf" list lines 99999999
expect "list: no points" 125 "nothing matches" "$cozbpf" list points "$prog" nothing_like_it
expect "report: no file" 125 "no-such-file" "$cozbpf" report no-such-file
expect "report: not a profile" 125 "text" "$cozbpf" report "$tmp/bin/text"
expect "report: directory" 125 "directory" "$cozbpf" report "$tmp"

if [ "$(id -u)" -eq 0 ]; then
	chmod 777 "$tmp/out"
	as_nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups env -u SUDO_UID -u SUDO_GID)
	expect "no privileges" 125 "CAP_|root|sudo" "${as_nobody[@]}" "$cozbpf" run -p finish_request -- "$prog" "$marker"
	chmod 755 "$tmp/out"
elif can_profile; then
	printf 'skip no privileges: this user has them\n'
else
	expect "no privileges" 125 "CAP_|root|sudo" "$cozbpf" run -p finish_request -- "$prog" "$marker"
fi

if ! can_profile; then
	printf 'skip executables, points, debug information and output: needs rights\n'
	exit 0
fi

expect "32-bit executable" 125 "$tmp/bin/arm" "$cozbpf" run -- "$tmp/bin/arm"
expect "foreign executable" 125 "$tmp/bin/arm64" "$cozbpf" run -- "$tmp/bin/arm64"
expect "cut executable" 125 "$tmp/bin/cut" "$cozbpf" run -- "$tmp/bin/cut"
expect "magic number only" 125 "$tmp/bin/magic" "$cozbpf" run -- "$tmp/bin/magic"
expect "empty executable" 125 "$tmp/bin/empty" "$cozbpf" run -- "$tmp/bin/empty"
if [ "$(id -u)" -eq 0 ]; then
	# Root may read anything, unless it gives that right up.
	chmod 111 "$tmp/bin/plain"
	expect "unreadable executable" 125 "$tmp/bin/plain.*([Dd]enied|read)" setpriv --bounding-set=-dac_override,-dac_read_search \
		"$cozbpf" run -p finish_request -- "$tmp/bin/plain" "$marker"
	chmod 755 "$tmp/bin/plain"
fi

expect "point with near names" 125 "finish_requst.*finish_request" "$cozbpf" run -p finish_requst -- "$prog" "$marker"
expect "point in unknown binary" 125 "libnone" "$cozbpf" run -p libnone.so:f -- "$prog" "$marker"
expect "point in an unknown library by its path" 125 "libnone" "$cozbpf" run -p "$tmp/libnone.so:f" -- "$prog" "$marker"
expect "data as a point" 125 "counter is data in .*prog, not a function" "$cozbpf" run -p counter -- "$prog" "$marker"
expect "middle of an instruction" 125 "offset 1 is in the middle of an instruction; the nearest (is|are) jump_there\+0" \
	"$cozbpf" run -p prog:jump_there+1 -- "$prog" "$marker"
expect "offset behind the function" 125 "offset 1000 is outside of jump_there" "$cozbpf" run -p prog:jump_there+1000 -- "$prog" "$marker"
expect "point in a stripped binary" 125 "stripped has no symbols" "$cozbpf" run -b 'libc.so*' -p finish_request -- "$tmp/bin/stripped" "$marker"
expect "no USDT probes" 125 "prog has no USDT probes" "$cozbpf" run -p usdt:prog:request -- "$prog" "$marker"
expect "USDT provider with a near name" 125 "no USDT probe libstcxx:thrw.*did you mean libstdcxx:throw" \
	"$cozbpf" run -p "usdt:libstdc++.so.6:libstcxx:thrw" -- "$tmp/bin/throws" "$marker"
expect "unknown system call" 125 "no system call epol_wait; did you mean epoll_wait" "$cozbpf" run -p syscall:epol_wait -- "$prog" "$marker"
expect "system call that never returns" 125 "exit_group never returns" "$cozbpf" run -p syscall:exit_group%return -- "$prog" "$marker"
expect "unknown tracepoint" 125 "no tracepoint sched:sched_swich; did you mean sched:sched_switch" \
	"$cozbpf" run -p tracepoint:sched:sched_swich -- "$prog" "$marker"
expect "tracepoint of another category" 125 "no tracepoint irq:sched_switch; did you mean sched:sched_switch" \
	"$cozbpf" run -p tracepoint:irq:sched_switch -- "$prog" "$marker"
expect "samples of a line without code" 125 "prog.c:1[^0-9].*nearest" "$cozbpf" run -p sampled:prog.c:1 -- "$prog" "$marker"
expect "samples of a function with near names" 125 "finish_requst.*did you mean finish_request" \
	"$cozbpf" run -p sampled:finish_requst -- "$prog" "$marker"
expect "samples of a library's function with near names" 125 "no function qsrt in .*libc.so.6; did you mean qsort" \
	"$cozbpf" run -p sampled:libc.so.6:qsrt -- "$prog" "$marker"
expect "samples of data" 125 "counter is data in .*prog, not a function" "$cozbpf" run -p sampled:counter -- "$prog" "$marker"
expect "samples in a stripped binary" 125 "stripped has no symbols" \
	"$cozbpf" run -b 'libc.so*' -p sampled:finish_request -- "$tmp/bin/stripped" "$marker"
expect "function that only chooses another one" 125 "memcpy of .*libc.so.6 is an indirect function" \
	"$cozbpf" run -p sampled:libc.so.6:memcpy -- "$prog" "$marker"
expect "probe on a function that only chooses another one" 125 "memcpy of .*libc.so.6 is an indirect function" \
	"$cozbpf" run -p libc.so.6:memcpy -- "$prog" "$marker"
expect "samples of lines by function" 125 "nothing is known of lines here; .*sampled:FUNCTION" \
	"$cozbpf" run --granularity function -p sampled:prog.c:7 -- "$prog" "$marker"
expect "samples out of scope" 125 "samples are counted in scope alone" "$cozbpf" run -b 'libc.so*' -p sampled:prog.c:20 -- "$prog" "$marker"
expect "line without code" 125 "prog.c:1[^0-9].*(nearest|near|line)" "$cozbpf" run -p prog.c:1 -- "$prog" "$marker"
expect "file that is not there" 125 "prg.c" "$cozbpf" run -p prg.c:7 -- "$prog" "$marker"
expect "fixed line without code" 125 "prog.c:1" "$cozbpf" run -p finish_request --fixed-line prog.c:1 -- "$prog" "$marker"
expect "no debug information" 125 "-g.*--granularity function" \
	"$cozbpf" run --granularity line -p finish_request -- "$tmp/bin/plain" "$marker"
expect "neither lines nor functions" 125 "nothing: neither line information nor function symbols; .*strip" \
	"$cozbpf" run -- "$tmp/bin/nothing" "$marker"
expect "no functions" 125 "nothing: no function symbols; .*strip" "$cozbpf" run --granularity function -- "$tmp/bin/nothing" "$marker"

expect "output in a missing directory" 125 "no-such-dir" \
	"$cozbpf" run -p finish_request -o no-such-dir/profile -- "$prog" "$marker"
expect "output is a directory" 125 "$tmp" "$cozbpf" run -p finish_request -o "$tmp" -- "$prog" "$marker"
expect "output is a device" 125 "/dev/full" "$cozbpf" run -p finish_request -o /dev/full -- "$prog" "$marker"
printf 'dear diary\n' >diary
expect "output is no profile" 125 "diary" "$cozbpf" run -p finish_request -o diary -- "$prog" "$marker"
ln -s "$tmp/elsewhere" link
expect "output is a link" 125 "link" "$cozbpf" run -p finish_request -o link -- "$prog" "$marker"
if [ -e "$tmp/elsewhere" ]; then
	printf 'not ok link was followed\n'
else
	printf 'ok link was not followed\n'
fi
printf 'startup\ttime=1\n' >text
expect "output has the other format" 125 "text" "$cozbpf" run -p finish_request -o text -- "$prog" "$marker"
