#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# What a pause costs is measured once after boot: later runs take it from a file of root's, which may be missing, damaged or a trap.
# needs: root btf python3
# shellcheck disable=SC2154 # what helpers.sh sets
set -uo pipefail
# shellcheck source=tests/e2e/helpers.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/helpers.sh"

directory=/run/cozbpf
figures() {
	ask "'%d %d' % (runs[0]['pay_overhead_ns'], runs[0]['hit_overhead_ns'])"
}
run_once() {
	profiled -p progress "$@" -- "$programs/stamp" 0.3
}
kept() {
	find "$directory" -maxdepth 1 -name 'calibration-*' -type f
}

# A machine that is busy throughout has no figures worth keeping: some attempts.
file=
for _ in {1..25}; do
	rm -rf -- "$directory"
	run_once || break
	[ ! -d "$directory" ] || file=$(kept)
	[ -z "$file" ] || break
done
why=''
[ -n "$file" ] || why+=' nothing was kept;'
[ "$(stat -c '%U %a' "$directory" 2>&1)" = 'root 700' ] || why+=' the directory is open to others;'
[ "$(stat -c '%U %a %h' "$file" 2>&1)" = 'root 600 1' ] || why+=' the file is;'
verdict 'the first run keeps what a pause costs' "$why" "$tmp/err"

first=$(figures)
id=$(stat -c %i "$file" 2>&1)
why=''
run_once || why+=" exit status $?;"
[ "$(figures)" = "$first" ] || why+=" $(figures) instead of $first;"
[ "$(stat -c %i "$file")" = "$id" ] || why+=' it was written again;'
verdict 'the next run takes it from there' "$why" "$tmp/err" "$file"

why=''
sed -i 's/^pay .*/pay 7777 beside 5 slope 6 hit 8888 beside 9 slope 10 tick 11/' "$file"
run_once || why+=" exit status $?;"
[ "$(figures)" = '7777 8888' ] || why+=" $(figures) instead of what the file says;"
run_once --calibrate || why+=" exit status $?;"
[ "$(figures)" != '7777 8888' ] || why+=' --calibrate does not measure;'
verdict 'and only --calibrate measures again' "$why" "$tmp/err"

# What a payer's thread waits for a CPU is no part of what a pause costs: the middle of three with both CPUs busy, and without. Bounded retries.
middle() {
	local _
	for _ in 1 2 3; do
		run_once --calibrate && figures
	done | sort -n | sed -n '2s/ .*//p'
}
for _ in 1 2 3; do
	why=''
	quiet=$(middle)
	for cpu in 0 1; do
		taskset -c "$cpu" bash -c 'while :; do :; done' &
	done
	busy=$(middle)
	# shellcheck disable=SC2046 # several ids
	kill $(jobs -p)
	wait
	[ "${quiet:-0}" -gt 0 ] && [ "$busy" -lt $((5 * quiet / 2)) ] && break
	why=" $busy ns, $quiet without others;"
done
verdict 'what others take is not counted' "$why" "$tmp/err"

why=''
for what in garbage truncated link fifo directory open_directory; do
	rm -rf -- "$file"
	chmod 700 "$directory"
	case $what in
	garbage) head -c 3000 /dev/urandom >"$file" ;;
	truncated) printf 'cozbpf calibration\n' >"$file" ;;
	link) ln -s /etc/passwd "$file" ;;
	fifo) mkfifo "$file" ;;
	directory) mkdir "$file" ;;
	open_directory) chmod 777 "$directory" ;;
	esac
	run_once || why+=" exit status $? with $what;"
	[ "$(figures)" != '0 0' ] || why+=" no figures with $what;"
	! grep -qv main_ns= "$tmp/err" || why+=" a complaint with $what;"
done
grep -q '^root:' /etc/passwd || why+=' /etc/passwd was overwritten;'
if [ "$(stat -c %a "$directory")" != 777 ] || [ -n "$(kept)" ]; then why+=' it writes where all can;'; fi
rm -rf -- "$directory"
verdict 'what is odd there is no error' "$why" "$tmp/err"
