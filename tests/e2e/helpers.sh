# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
# What the behaviour tests share; sourced. A directory of its own ($tmp), verdicts, runs under the profiler, and nothing left behind.
: "${COZBPF:?the path of cozbpf}" "${BUILD:?the build directory}" "${SRC:?the source directory}"
here=$SRC/tests/e2e
programs=$BUILD/tests/e2e/programs
export PYTHONDONTWRITEBYTECODE=1

tmp=$(mktemp -d "${TMPDIR:-/tmp}/cozbpf-e2e.XXXXXX") || exit 1
chmod 755 "$tmp"
# Inherited by all that a test starts: that is how it is found again.
export COZBPF_TEST=$tmp

# Process ids of what the test started and still lives, this shell and its subshells excepted.
left_behind() {
	local pid
	for pid in $(grep -lzxF "COZBPF_TEST=$tmp" /proc/[0-9]*/environ 2>/dev/null | tr -dc '0-9\n'); do
		case $(readlink "/proc/$pid/exe") in
		*/bash | */grep | */tr | '') ;;
		*) printf '%s ' "$pid" ;;
		esac
	done
}

# shellcheck disable=SC2317 # called by the trap
clean_up() {
	local left
	left=$(left_behind)
	# shellcheck disable=SC2086 # several ids
	[ -z "$left" ] || kill -KILL $left 2>/dev/null
	rm -rf -- "$tmp"
}
trap clean_up EXIT
trap 'exit 1' INT TERM HUP

# A process that ended takes a moment to go.
none_left() {
	local _
	for _ in {1..30}; do
		[ -n "$(left_behind)" ] || return 0
		sleep 0.1
	done
	return 1
}

# verdict NAME WHY [FILE]...: passed if WHY is empty; else the files' ends go along as comments.
verdict() {
	local name=$1 why=$2 file
	shift 2
	if [ -z "$why" ]; then
		printf 'ok %s\n' "$name"
		return
	fi
	printf 'not ok %s: %s\n' "$name" "$why"
	for file in "$@"; do
		[ ! -s "$file" ] || tail -n 15 -- "$file" | sed "s|^|# ${file##*/}: |"
	done
}

# A test of what is measured, which the machine's other work can spoil: it leaves in `why` what is wrong, and has three tries.
tried() { # TEST [ARGUMENT]...
	local turn
	for turn in 1 2 3; do
		why=
		"$@"
		[ -n "$why" ] || return 0
		[ "$turn" -eq 3 ] || printf '# once more: %s\n' "$why"
	done
}

# A command that must fail with status 125 and say why in one line.
bad() { # NAME PATTERN ARGUMENT...
	local name=$1 pattern=$2 why=''
	shift 2
	timeout 20 "$COZBPF" "$@" >out 2>complaint
	status=$?
	[ "$status" -eq 125 ] || why+=" status $status;"
	[ "$(wc -l <complaint)" -eq 1 ] || why+=" $(wc -l <complaint) lines;"
	grep -qE -- "$pattern" complaint || why+=" no '$pattern';"
	verdict "$name" "$why" complaint
}

# What a run that must not begin has left: status 125, one line in `complaint`, which says why, and no profile.
refusal() { # NAME PATTERN STATUS
	local why=''
	[ "$3" -eq 125 ] || why+=" status $3;"
	[ "$(wc -l <complaint)" -eq 1 ] || why+=" $(wc -l <complaint) lines;"
	grep -qE -- "$2" complaint || why+=" no '$2';"
	[ ! -s "$profile" ] || why+=' a profile was written;'
	verdict "$1" "$why" complaint
}

# FILE:LINE of the line of a test program that says /* LINE:MARK */.
line_of() { # PROGRAM MARK
	local number
	number=$(grep -n "/\* LINE:$2 \*/" "$here/programs/$1.c" | cut -d : -f 1)
	[ -n "$number" ] || exit 1
	printf '%s.c:%s' "$1" "$number"
}

# Runs cozbpf with options that every test wants: no status, no report, and a profile in $profile, afresh. The program's output is
# in $tmp/out and $tmp/err; the return value is the exit status.
profile=$tmp/profile.jsonl
limit=60
# SWITCHED_OFF: kernel features to do without.
switched_off=()
[ -z "${SWITCHED_OFF:-}" ] || switched_off=(--disable "$SWITCHED_OFF")
unset SWITCHED_OFF
# SYNC: how waits are followed.
[ -z "${SYNC:-}" ] || switched_off+=(--sync "$SYNC")
unset SYNC
profiled() {
	rm -f -- "$profile"
	timeout -k 5 "$limit" "$COZBPF" run "${switched_off[@]}" --keep-root -q --no-report -o "$profile" "$@" >"$tmp/out" 2>"$tmp/err"
}

# What the profiled program said of itself.
said() { # NAME
	sed -n "s/.*\b$1=\([0-9]*\).*/\1/p" "$tmp/out"
}

# One experiment over the whole run of a program that settles first and has a line LINE:burn. It counts if it began while the program still
# settled, else once more; it is recorded if the run takes a tenth of $length milliseconds.
length=6000
whole_run() { # OPTION... -- PROGRAM ARGUMENT...
	local turn word program='' next=false
	for word; do
		! "$next" || program=${word##*/}
		next=false
		[ "$word" != -- ] || next=true
	done
	for turn in 1 2 3; do
		profiled --fixed-line "$(line_of "$program" burn)" --experiment "$length" "$@" || return
		! holds "len(experiments) == 1 and runtime - experiments[0]['elapsed'] < $(said settle_ns)" || return 0
		[ "$turn" -lt 3 ] || return
	done
}

# The value of an expression over the profile: see ask.py.
ask() {
	python3 "$here/ask.py" "$profile" "$1" 2>&1
}

# As grep -q of the standard input, all of which is read: grep ends at the first match, and what is still writing then fails by SIGPIPE.
found() { # OPTION... PATTERN
	local text
	text=$(cat)
	grep -q "$@" <<<"$text"
}

# true if the expression over the profile is true.
holds() {
	[ "$(ask "bool($1)")" = True ]
}

# How long a program has to run for a profiler that first names its code, which one with sanitizers
# does ten times as slowly.
lasting() { # SECONDS
	case $COZBPF in
	*/build-asan/*) awk -v seconds="$1" 'BEGIN { print 5 * seconds }' ;;
	*) printf '%s' "$1" ;;
	esac
}

# Waits until a file has a line that matches; false after SECONDS.
await_line() { # FILE PATTERN SECONDS
	local turn
	for ((turn = 0; turn < $3 * 20; turn++)); do
		! grep -qE -- "$2" "$1" 2>/dev/null || return 0
		sleep 0.05
	done
	return 1
}

# Payers that this machine can use; of those that pay in a signal handler one, or all with FULL=1. What cannot be used is a skipped test, with
# cozbpf's reason.
usable_payers() {
	local pay all="hold sleep"
	[ "${FULL:-0}" -eq 0 ] || all+=" spin"
	for pay in ${PAYERS:-$all}; do
		if profiled --pay "$pay" -p progress -- "$programs/launch"; then
			payers+=("$pay")
		else
			printf 'skip payer %s: %s\n' "$pay" "$(head -n 1 "$tmp/err")"
		fi
	done
}
payers=()

# counts NAME=WANTED...: complaints about points of the profile that were not visited so often
counts() {
	local pair
	for pair in "$@"; do
		holds "visits('${pair%%=*}') == ${pair#*=}" || printf ' %s: %s visits, the program made %s;' "${pair%%=*}" \
			"$(ask "visits('${pair%%=*}')")" "${pair#*=}"
	done
}

# Links of BPF programs that no process holds, and all that is pinned, one a line. What a link does not hold is attached to nothing. Others
# may run something of theirs meanwhile, which they hold.
bpf_orphans() {
	comm -23 <(PATH=$PATH:/usr/sbin bpftool link list 2>/dev/null | sed -n 's/^\([0-9][0-9]*\): .*/link \1/p' | sort -u) \
		<(cat /proc/[0-9]*/fdinfo/* 2>/dev/null | sed -n 's/^link_id:[[:space:]]*/link /p' | sort -u)
	find /sys/fs/bpf -mindepth 1 2>/dev/null | sort
}

# Does the process map anything of the profiler's? Its own path may have our name in it.
maps_of_ours() { # PID
	grep -q 'memfd:[^ ]*cozbpf\|bpf-map\|libcozbpf' "/proc/$1/maps" 2>/dev/null
}

# What a run of cozbpf left behind, as a complaint: BPF objects, files, mappings in processes that are named. bpf_before has to be set to
# what bpf_orphans printed before. The kernel takes a moment to free what was closed.
bpf_before=
left_over() { # PID...
	local turn new pid
	for turn in {1..40}; do
		new=$(comm -13 <(printf '%s\n' "$bpf_before") <(bpf_orphans))
		[ -n "$new" ] || break
		sleep 0.1
	done
	[ -z "$new" ] || printf ' BPF objects are left: %s;' "${new//$'\n'/, }"
	[ -z "$(find "$tmp" -name '*cozbpf*' ! -path "$tmp")" ] || printf ' files are left;'
	for pid; do
		! maps_of_ours "$pid" || printf ' mappings are left in %s;' "$pid"
		! grep -q '^\(SigPnd\|ShdPnd\):.*[1-9a-f]' "/proc/$pid"/task/*/status 2>/dev/null || printf ' a signal is pending in %s;' "$pid"
	done
}
