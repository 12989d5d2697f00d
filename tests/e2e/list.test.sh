#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# cozbpf list: what can be tried in a file and in a running process, and what cannot and why.
# needs: strip objcopy
# beside: others
# shellcheck disable=SC2154 # what helpers.sh sets
set -uo pipefail
# shellcheck source=tests/e2e/helpers.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/helpers.sh"
cd "$tmp" || exit 1

# list STATUS ARGUMENT...: into out and err; complains of another exit status, and of more than one line on stderr.
list() {
	local wanted=$1 status
	shift
	timeout "$(lasting 30)" "$COZBPF" list "$@" >out 2>err </dev/null
	status=$?
	[ "$status" -eq "$wanted" ] || printf ' %s: exit status %s;' "$*" "$status"
	if [ "$wanted" -eq 0 ]; then
		[ ! -s err ] || printf ' %s: something on stderr;' "$*"
	else
		[ "$(wc -l <err)" -eq 1 ] || printf ' %s: %s lines on stderr;' "$*" "$(wc -l <err)"
	fi
}

has() { # PATTERN: complains unless a line of out matches
	grep -qE -- "$1" out || printf ' no line %s;' "$1"
}

has_not() { # PATTERN
	! grep -qE -- "$1" out || printf ' a line %s;' "$1"
}

# Names in a program are whoever's wrote it.
hostile_names() {
	local why=''
	printf 'int main(void)\n{\n\treturn 0;\n}\n__asm__(".type \\"f\\302\\2332Jg\\342\\200\\256\\", @function\\n\\"f\\302\\2332Jg\\342\\200\\256\\": ret\\n.size \\"f\\302\\2332Jg\\342\\200\\256\\", 1\\n");\n' >names.c
	gcc -g -o names names.c 2>err || why+=' it does not compile;'
	why+=$(list 0 functions ./names)$(has '^f\?2Jg\?$')
	! grep -q $'\u009b\|\u202e' out || why+=' it is printed as it is;'
	verdict 'list: names that would steer the terminal' "$why" out err
}

a_file() {
	local why=''
	why+=$(list 0 functions "$programs/clones")
	why+=$(has '^worker$')$(has '^partial$')$(has_not 'worker\.|partial\.')
	[ "$(grep -cx worker out)" -eq 1 ] || why+=' worker is listed several times;'
	why+=$(list 0 lines "$programs/clones")
	why+=$(has '/clones\.c:[0-9]+$')$(has '/helper\.h:[0-9]+$')$(has_not '^/usr/include')
	why+=$(list 0 lines -s 'clones.c' "$programs/clones")
	why+=$(has '/clones\.c:[0-9]+$')$(has_not '/helper\.h:[0-9]+$')
	why+=$(has '^# [0-9]+ lines? of .*/helper\.h: a source out of scope; --source')
	why+=$(list 0 functions -s '!clones.c' "$programs/clones")
	why+=$(has '^# [0-9]+ functions? of .*/clones\.c: a source out of scope')$(has_not '^worker$')
	why+=$(list 125 functions -s '!clones.c' "$programs/clones" worker)
	grep -q 'worker: of .*clones\.c: a source out of scope' err || why+=' no reason;'
	verdict 'list: a file' "$why" out err
}

# A process whose files are gone, or were replaced by others, is listed by what it has mapped.
a_process() {
	local why='' pid
	cp "$programs/clones" here
	./here 10000000 >/dev/null &
	pid=$!
	for _ in {1..40}; do
		[ "$(readlink "/proc/$pid/exe")" = "$tmp/here" ] && break
		sleep 0.05
	done
	sleep 0.2
	why+=$(list 0 functions "$pid")
	why+=$(has '^worker$')$(has '^# .*/libc\.so\.6: out of scope; --binary')$(has_not '^getppid$')$(has_not 'vdso')
	why+=$(list 0 functions -b 'libc.so*' "$pid" 'getp*')
	why+=$(has '^# in .*/libc\.so\.6$')$(has '^getppid$')$(has_not '^worker$')
	why+=$(list 0 functions -b '*' -b '!libc.so*' "$pid")
	why+=$(has '^worker$')$(has '^# .*/libc\.so\.6: out of scope')$(has_not '^getppid$')
	why+=$(list 0 lines -b '*' "$pid")
	# The C library's debug file may be installed.
	why+=$(has '/clones\.c:[0-9]+$')$(has '^# (in .*/libc\.so\.6$|.*/libc\.so\.6: no line information; build with -g)')
	why+=$(list 0 lines "$pid" clones.c)
	why+=$(has '/clones\.c:[0-9]+$')$(has_not '^#')
	rm here
	cp /bin/true here
	why+=$(list 0 functions "$pid")
	why+=$(has '^worker$')
	verdict 'list: a process' "$why" out err
	kill "$pid"
	wait "$pid" 2>/dev/null
	why=$(list 125 functions "$pid")
	grep -q "no process $pid" err || why+=' no reason;'
	verdict 'list: a process that has ended' "$why" err
}

stripped() {
	local why='' pid
	strip -o bare "$programs/clones"
	./bare 10000000 >/dev/null &
	pid=$!
	sleep 0.5
	why+=$(list 0 functions "$pid")
	why+=$(has '^bare\+0x[0-9a-f]+$')
	why+=$(list 125 lines "$pid")
	grep -q 'no line information; build with -g' err || why+=' no reason for lines;'
	verdict 'list: a process without names' "$why" out err
	kill "$pid"
	wait "$pid" 2>/dev/null || true # its status is the signal's
}

# What is listed as a point is one, and counts what it should.
points() {
	local why='' line
	line=$(line_of kinds head)
	why+=$(list 0 points "$programs/kinds")
	why+=$(has '^usdt:kinds:plain$')$(has '^usdt:kinds:guarded$')$(has '^main$')$(has "/$line\$")
	why+=$(has_not '^entered$')$(has '^# USDT probes of .*/kinds$')
	[ "$(grep -c '^usdt:kinds:plain$' out)" -eq 1 ] || why+=' a probe is listed several times;'
	why+=$(list 0 points "$programs/kinds" '*:guarded')
	[ "$(grep -vc '^#' out)" -eq 1 ] || why+=' the pattern chooses others;'
	why+=$(list 125 points "$programs/kinds" 'no_such_*')
	why+=$(list 0 points "$programs/kinds" '*kinds.c:*')
	verdict 'list: points' "$why" out err
}

# The debug file that a program names is read with the rights of the program's user.
others_files() {
	local why='' pid
	objcopy --only-keep-debug "$programs/hostile" work.debug
	objcopy --strip-debug --remove-section=.note.gnu.build-id --add-gnu-debuglink=work.debug "$programs/hostile" work
	chmod 755 work
	chmod 644 work.debug
	setpriv --reuid 65534 --regid 65534 --clear-groups ./work steady 60 >/dev/null &
	pid=$!
	sleep 0.5
	why+=$(list 0 lines "$pid")
	why+=$(has 'hostile\.c:[0-9]+$')
	chmod 600 work.debug
	why+=$(list 125 lines "$pid")
	why+=$(has_not 'hostile\.c:[0-9]+$')
	grep -q 'work\.debug: .*Permission denied' err || why+=' no reason;'
	why+=$(SUDO_UID=65534 list 125 lines ./work)
	why+=$(list 0 lines ./work)
	verdict "list: a debug file that only root can read, of another user's program" "$why" out err
	why=''
	cp "$programs/hostile" secret
	chmod 600 secret
	printf '#!%s\n' "$PWD/secret" >script
	chmod 755 script
	SUDO_UID=65534 "$COZBPF" check ./script >out 2>err && why+=' check reads it;'
	grep -q 'secret: not readable' err || why+=' check gives no reason;'
	SUDO_UID=65534 timeout 60 "$COZBPF" run -q -o run.jsonl -p main -- ./script >out 2>err && why+=' run reads it;'
	grep -q 'secret: not readable' err || why+=' run gives no reason;'
	verdict "an interpreter that only root can read, of another user's script" "$why" out err
	kill "$pid"
	wait "$pid" 2>/dev/null || true # its status is the signal's
}

hostile_names
a_file
a_process
if [ "$(id -u)" -ne 0 ] || ! "$COZBPF" check >/dev/null 2>&1; then
	echo "skip list: a debug file that only root can read, of another user's program: needs rights"
else
	others_files
fi
[ ! -x "$programs/kinds" ] || points
stripped
