#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Where a profile goes: appended to one that is there, in either form, never over something else or through a link, and under sudo it
# belongs to the invoking user, as whom the program runs.
# needs: root btf python3
# beside: others
# shellcheck disable=SC2154,SC2034 # what helpers.sh sets and reads
set -uo pipefail
# shellcheck source=tests/e2e/helpers.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/helpers.sh"
mkdir "$tmp/files"
chmod 777 "$tmp/files"
# The build directory may be out of reach of the user that the program becomes.
mkdir "$tmp/bin"
cp -- "$programs/ending" "$programs/facts" "$programs/launch" "$tmp/bin/"
bin=$tmp/bin
soon=$(lasting 0.5)
cd "$tmp/files" || exit 1

# A short run into FILE, after options.
into() { # FILE OPTION...
	local file=$1
	shift
	timeout -k 5 30 "$COZBPF" run --keep-root -q --no-report -o "$file" -p progress --experiment 50 "$@" -- "$bin/ending" 0 "$soon" \
		>"$tmp/out" 2>"$tmp/err" </dev/null
}

appended() { # NAME
	local name=$1 why='' size
	profile=$tmp/files/$name
	into "$name" || why+=' the first run failed;'
	size=$(stat -c %s "$name")
	cp "$name" before
	into "$name" || why+=' the second run failed;'
	cmp -s -n "$size" before "$name" || why+=' what was there changed;'
	holds 'len(runs) == 2 and len(runtimes) == 2 and len(experiments) > 2' || why+=" not two runs: $(ask 'len(runs), len(runtimes)');"
	timeout 20 "$COZBPF" report "$name" >"$tmp/out" 2>"$tmp/err" || why+=' the report fails;'
	grep -q progress "$tmp/out" || why+=' the report lacks the point;'
	verdict 'a second run is appended' "$why" "$tmp/err"
}

cut_off() {
	local why='' whole
	profile=$tmp/files/cut.jsonl
	into cut.jsonl || why+=' the first run failed;'
	whole=$(ask 'len(experiments)')
	printf '{"type":"experiment","selec' >>cut.jsonl
	into cut.jsonl || why+=' it is refused;'
	holds "len(runs) == 2 and len(experiments) > $whole" || why+=" the result does not parse: $(ask 1);"
	verdict 'a profile that was cut off is mended' "$why" "$tmp/err"
}

refused() { # NAME FILE PATTERN OPTION...
	local name=$1 file=$2 pattern=$3 why='' status before
	shift 3
	before=$(sha256sum "$file" 2>/dev/null)
	into "$file" "$@"
	status=$?
	[ "$status" -eq 125 ] || why+=" status $status, not 125;"
	[ "$(wc -l <"$tmp/err")" -eq 1 ] || why+=' not one line on stderr;'
	grep -qE -- "$pattern" "$tmp/err" || why+=" the line does not match '$pattern';"
	[ "$before" = "$(sha256sum "$file" 2>/dev/null)" ] || why+=' the file changed;'
	none_left || why+=' a process was left behind;'
	verdict "$name" "$why" "$tmp/err"
}

refusals() {
	local why=''
	printf 'dear diary\n' >diary
	refused 'a file that is no profile is refused' diary 'not a profile'
	printf 'treasure\n' >target
	ln -s target link
	refused 'a link is refused' link 'link'
	ln -s nowhere dangling
	refused 'a link to nothing is refused' dangling 'link'
	[ ! -e nowhere ] || why='it was followed'
	verdict 'a link to nothing is not followed' "$why"
	mkfifo pipe
	# Opening it for its content would wait for ever.
	into pipe
	[ $? -eq 125 ] || why='it is not'
	verdict 'a pipe is refused' "$why" "$tmp/err"
	printf 'startup\ttime=1\n' >text.coz
	refused 'a profile in the other form is refused' text.coz 'profile'
	: >empty
	why=''
	profile=$tmp/files/empty
	into empty && holds 'len(runs) == 1' || why='it is not'
	verdict 'an empty file is taken' "$why" "$tmp/err"
}

# Two runs at once into one file would tear each other's records.
locked() {
	local why='' job
	profile=$tmp/files/both.jsonl
	"$COZBPF" run --keep-root -q --no-report -o both.jsonl -p progress --experiment 50 -- "$bin/ending" 0 "$(lasting 6)" >"$tmp/first" 2>&1 </dev/null &
	job=$!
	await_line both.jsonl experiment 20 || why+=' the first run does not get on;'
	into both.jsonl
	[ $? -eq 125 ] || why+=' the second run was not refused;'
	grep -q 'another run' "$tmp/err" || why+=' no reason was given;'
	wait "$job" || why+=' the first run failed;'
	holds 'len(runs) == 1 and runtime > 0' || why+=' the profile is not whole;'
	verdict 'a file that another run writes is refused' "$why" "$tmp/err"
}

user=$(id -nu 65534 2>/dev/null)
group=$(id -g 65534 2>/dev/null)

# as_sudo FILE OPTION... -- PROGRAM...: what sudo sets, for the user nobody
as_sudo() {
	local file=$1
	shift
	SUDO_UID=65534 SUDO_GID=$group SUDO_USER=$user SUDO_COMMAND=cozbpf timeout -k 5 30 "$COZBPF" run -q --no-report -o "$file" \
		-p progress --experiment 50 "$@" >"$tmp/out" 2>"$tmp/err" </dev/null
}

sudo_user() { # PAY
	local why='' home
	home=$(getent passwd 65534 | cut -d : -f 6)
	rm -f -- theirs.jsonl
	profile=$tmp/files/theirs.jsonl
	as_sudo theirs.jsonl --pay "$1" -- "$bin/facts" "times=$(lasting 200)" || why+=" status $?;"
	grep -qE "^Uid:[[:space:]]+65534[[:space:]]+65534[[:space:]]+65534[[:space:]]+65534\$" "$tmp/out" || why+=' another user;'
	grep -qE "^Gid:[[:space:]]+${group}[[:space:]]+${group}[[:space:]]+${group}[[:space:]]+${group}\$" "$tmp/out" || why+=' another group;'
	! grep -qE '^Groups:.*\b0\b' "$tmp/out" || why+=" root's group stayed;"
	grep -qE '^CapEff:[[:space:]]+0+$' "$tmp/out" && grep -qE '^CapPrm:[[:space:]]+0+$' "$tmp/out" || why+=' capabilities stayed;'
	grep -qx "environment HOME=$home" "$tmp/out" || why+=" HOME is not $home;"
	! grep -q 'LD_PRELOAD' "$tmp/out" || why+=' LD_PRELOAD is seen;'
	[ "$(stat -c %u:%g theirs.jsonl)" = "65534:$group" ] || why+=" the file belongs to $(stat -c %u:%g theirs.jsonl);"
	holds 'runtime > 0 and len(runs) == 1 and sum(samples.values()) > 0' || why+=' the profile is not complete;'
	verdict "under sudo program and file are the invoking user's, $1" "$why" "$tmp/err"
}

# Experiments work as well: the shim is loaded by a user who may not open what root made.
sudo_experiments() { # PAY
	local why='' seconds delayed='total("hits") > 0 and total("paid") > 0 and visits("progress") > 0'
	profile=$tmp/files/theirs.jsonl
	# Who waits for a CPU owes nothing for that: on a busy machine a second may not be enough.
	for seconds in "$(lasting 1)" "$(lasting 4)"; do
		rm -f -- theirs.jsonl
		as_sudo theirs.jsonl --pay "$1" --fixed-line "$(line_of ending burn)" --fixed-speedup 100 -- "$bin/ending" 7 "$seconds"
		[ $? -eq 7 ] || why+=' the exit status is lost;'
		! holds "$delayed" || break
	done
	holds "$delayed" || why+=' nothing was delayed;'
	verdict "experiments under sudo, $1" "$why" "$tmp/err"
}

keep_root() {
	local why=''
	rm -f -- mine.jsonl
	as_sudo mine.jsonl --keep-root -- "$bin/facts" || why+=" status $?;"
	grep -qE '^Uid:[[:space:]]+0[[:space:]]+0[[:space:]]+0[[:space:]]+0$' "$tmp/out" || why+=' another user;'
	[ "$(stat -c %u mine.jsonl)" = 0 ] || why+=' the file belongs to another;'
	verdict '--keep-root keeps root' "$why" "$tmp/err"
	why=''
	SUDO_UID=0 SUDO_GID=0 timeout -k 5 30 "$COZBPF" run -q --no-report -o roots.jsonl -p progress -- "$bin/facts" >"$tmp/out" \
		2>"$tmp/err" </dev/null || why+=" status $?;"
	grep -qE '^Uid:[[:space:]]+0[[:space:]]' "$tmp/out" || why+=' another user;'
	verdict 'sudo from root stays root' "$why" "$tmp/err"
}

mended() {
	local why='' bad
	for bad in rabbit -1 4294967295 4000000000 ''; do
		why=''
		rm -f -- bad.jsonl
		SUDO_UID=$bad timeout -k 5 30 "$COZBPF" run -q --no-report -o bad.jsonl -p progress -- "$bin/facts" >"$tmp/out" 2>"$tmp/err" \
			</dev/null
		[ $? -eq 125 ] || why+=' not refused;'
		[ "$(wc -l <"$tmp/err")" -eq 1 ] || why+=' not one line on stderr;'
		[ ! -s "$tmp/out" ] || why+=' the program ran;'
		[ ! -e bad.jsonl ] || why+=' a file was left;'
		verdict "SUDO_UID '$bad' is refused" "$why" "$tmp/err"
	done
}

# The report at the end of a run can be had as `report` would print it, and is never among what the program prints.
reported() {
	local why='' text
	local -a told=(run --keep-root -q -o told.jsonl -p progress --experiment 50)
	rm -f told.jsonl
	timeout -k 5 30 "$COZBPF" "${told[@]}" --json --report object -- "$bin/ending" 0 "$soon" >out 2>err </dev/null || why+=' the run failed;'
	timeout 20 "$COZBPF" report --json told.jsonl >json 2>>err || why+=' the report fails;'
	[ -s json ] && cmp -s json object || why+=' another object;'
	[ ! -s out ] && [ ! -s err ] || why+=' something is printed beside;'
	timeout -k 5 30 "$COZBPF" "${told[@]}" --no-curves --width 60 --top 1 -- "$bin/ending" 0 "$soon" >out 2>err </dev/null || why+=' the run failed;'
	[ -s err ] && ! grep -qE '.{61}' err || why+=' it is too wide;'
	[ ! -s out ] || why+=' it is on standard output;'
	verdict 'a report at the end as it was asked for' "$why" err out

	why=''
	"$programs/output" 200 >alone 2>/dev/null
	timeout -k 5 30 "$COZBPF" "${told[@]}" -- "$programs/output" 200 >out 2>err </dev/null || why+=' the run failed;'
	cmp -s alone out || why+=' standard output is not what the program prints;'
	timeout -k 5 30 "$COZBPF" "${told[@]}" --report - -- "$programs/output" 200 >out 2>err </dev/null || why+=' with --report -: the run failed;'
	cmp -s -n "$(stat -c %s alone)" alone out && [ "$(stat -c %s out)" -gt "$(stat -c %s alone)" ] || why+=' --report - does not append it;'
	verdict 'what a program prints stays whole' "$why" err

	why=''
	echo older >page.txt
	timeout -k 5 30 "$COZBPF" "${told[@]}" --report page.txt -- "$bin/ending" 0 "$soon" >out 2>err </dev/null || why+=' the run failed;'
	[ ! -s out ] && [ ! -s err ] || why+=' it is printed as well;'
	! grep -q older page.txt && [ -s page.txt ] || why+=' it is not in the file;'
	for text in link pipe none/page.txt .; do
		rm -f never.jsonl
		timeout -k 5 30 "$COZBPF" run --keep-root -q -o never.jsonl -p progress --report "$text" -- "$bin/ending" 0 "$soon" >out 2>err </dev/null
		[ $? -eq 125 ] && [ "$(wc -l <err)" -eq 1 ] && [ ! -e never.jsonl ] || why+=" $text is not refused before the run;"
	done
	verdict '--report FILE' "$why" err
	refused 'a file for no report' told.jsonl 'no-report and --report' --report other.txt
}

# The HTML report of a run, with the source around its lines. That it can be written is known before the program is started.
paged() {
	local why=''
	timeout -k 5 30 "$COZBPF" run --keep-root -q -o paged.jsonl --html page.html --with-source --source-prefix "tests=$SRC/tests" -p progress --experiment 50 -- "$bin/ending" 0 "$soon" \
		>out 2>err </dev/null || why+=' the run failed;'
	grep -q "<h1>.*/ending 0 $soon</h1>" page.html || why+=' no page of the command;'
	grep -q '<span class=here>' page.html || why+=' no source on the page;'
	grep -q '"source":"' paged.jsonl || why+=' no source in the profile;'
	grep -q '"build":"[0-9a-f]' paged.jsonl || why+=' no build id in the profile;'
	timeout 20 "$COZBPF" report --html again.html paged.jsonl >/dev/null 2>>err || why+=' the report fails;'
	# How to run it again is for those who have just run it.
	cmp -s <(grep -v 'As often as it takes' page.html) again.html || why+=' the report makes another page;'
	verdict 'a page at the end of a run' "$why" err
	timeout -k 5 30 "$COZBPF" run --keep-root -q -o none.jsonl --html none/page.html -p progress -- "$bin/ending" 0 "$soon" >out 2>err </dev/null
	[ $? -eq 125 ] && [ ! -s out ] && [ "$(wc -l <err)" -eq 1 ] && grep -q "cannot write 'none/page.html'" err && why='' || why=' not one line about it;'
	[ ! -e none.jsonl ] || why+=' a profile was left;'
	verdict 'a page that cannot be written' "$why" err out
	refused 'a page without a report' none.jsonl 'no-report and --html' --html page.html
}

paged
appended run.jsonl
cut_off
refusals
reported
locked
keep_root
mended
if [ -z "$user" ]; then
	printf 'skip under sudo: there is no user with the id 65534\n'
	exit 0
fi
profile=$tmp/profile.jsonl
usable_payers
for pay in "${payers[@]}"; do
	sudo_user "$pay"
	sudo_experiments "$pay"
done
