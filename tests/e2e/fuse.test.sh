#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Programs on a file system in user space (FUSE): they are profiled as others are, and where it hangs, cozbpf says so or can be ended.
# needs: root btf python3
# beside: others
# shellcheck disable=SC2154 # what helpers.sh sets
set -uo pipefail
directory=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd) || exit 1
# shellcheck source=tests/e2e/helpers.sh
source "$directory/helpers.sh"
cd "$tmp" || exit 1

server=
victim=
# Asked for its state, the file system may hang.
is_mounted() {
	grep -qF " $tmp/mounted " /proc/self/mountinfo
}
unmount() {
	[ -z "$victim" ] || kill -KILL "$victim" 2>/dev/null
	# What waits for the file system fails when its server is gone.
	[ -z "$server" ] || kill -KILL "$server" 2>/dev/null
	wait 2>/dev/null
	! is_mounted || umount -l mounted
	victim=
}
trap 'unmount; clean_up' EXIT
mount_fuse() { # [OPTIONS]
	"$programs/fuse" files mounted "$@" 2>complaint &
	server=$!
	for _ in {1..50}; do
		! is_mounted || return 0
		sleep 0.1
	done
	return 1
}
start_victim() {
	mounted/steady 60 >/dev/null &
	victim=$!
	sleep 0.3
}
# Executed in a namespace, after its mounts.
victim_runs() {
	local _
	for _ in {1..50}; do
		[[ $(readlink "/proc/$victim/exe") != */steady ]] || return 0
		sleep 0.1
	done
	return 1
}
attached() { # OPTION...
	rm -f -- "$profile"
	timeout -k 5 40 "$COZBPF" attach -q --no-report -o "$profile" "$victim" "$@" >out 2>complaint
}
# Ended by SIGTERM, it is gone soon, also while the file system hangs. Else SIGKILL is what ends it, or nothing does.
ended() { # PID
	local _
	kill -TERM "$1"
	for _ in {1..100}; do
		[ -d "/proc/$1" ] && [ "$(sed -n 's/^State:\t\(.\).*/\1/p' "/proc/$1/status" 2>/dev/null)" != Z ] || return 0
		sleep 0.1
	done
	why+=' SIGTERM does not end it;'
	kill -KILL "$1"
}

none_but_server() {
	local _
	for _ in {1..50}; do
		[ "$(left_behind)" != "$server " ] || return 0
		sleep 0.1
	done
	return 1
}

mkdir files mounted
cp "$programs/steady" files
if [ ! -c /dev/fuse ] || ! mount_fuse; then
	printf 'skip programs on FUSE: no file system can be mounted by /dev/fuse: %s\n' "$(head -n 1 complaint 2>/dev/null)"
	exit 0
fi

why=
profiled -- mounted/steady 1 || why=" status $?;"
holds 'len(runs) == 1' || why+=' no run in the profile;'
verdict 'FUSE: run' "$why" err

start_victim
why=
attached -d 2 --experiment 200 || why=" status $?;"
grep -q 'steady.c:[0-9]' "$profile" 2>/dev/null || why+=' no line of the program in the profile;'
verdict 'FUSE: attach' "$why" complaint

# It hangs in the midst of a run: closing a file there would wait for ever.
"$COZBPF" attach -q --no-report -o during "$victim" --experiment 200 >out 2>complaint &
pid=$!
await_line during '"experiment"' 20
kill -STOP "$server"
why=
ended "$pid"
kill -KILL "$victim"
# What closes the files is there for as long as it hangs.
kill -CONT "$server"
wait "$pid" || why+=" status $?;"
none_but_server || why+=" left behind: $(left_behind);"
grep -q '"experiment"' during || why+=' no experiment;'
verdict 'FUSE that hangs during a run: SIGTERM ends it' "$why" complaint

start_victim
kill -STOP "$server"
attached -d 2
refusal 'FUSE that hangs: attach says so' 'file system that the executable of process .* does not answer' $?

why=
"$COZBPF" attach -q --no-report -o "$profile" "$victim" >out 2>complaint &
pid=$!
sleep 1
ended "$pid"
verdict 'FUSE that hangs: SIGTERM ends attach' "$why" complaint

why=
"$COZBPF" run -q --no-report --keep-root -o "$profile" -- mounted/steady 1 >out 2>complaint &
pid=$!
sleep 1
ended "$pid"
verdict 'FUSE that hangs: SIGTERM ends run' "$why" complaint
kill -CONT "$server"
unmount

# Without allow_other it answers the user who mounted it alone, and not even root.
if mount_fuse user_id=65534; then
	why=
	timeout 20 "$COZBPF" run -q --no-report --keep-root -o "$profile" -- mounted/steady 1 >out 2>complaint
	status=$?
	[ "$status" -eq 126 ] || why+=" status $status;"
	grep -q 'FUSE.*allow_other' complaint || why+=' FUSE is not named;'
	verdict 'FUSE of another user: run says so' "$why" complaint
	setpriv --reuid 65534 --regid 0 --clear-groups mounted/steady 60 >/dev/null 2>&1 &
	victim=$!
	sleep 0.5
	attached -d 2
	refusal 'FUSE of another user: attach says so' 'FUSE.*allow_other' $?
fi
unmount

# An overlay over FUSE, both in a namespace of a user's, opens its files for root as that user.
mkdir empty overlaid
# shellcheck disable=SC2016 # for the inner shell
unshare --user --map-root-user --mount bash -c '
	"$1/fuse" files mounted &
	until grep -qF " $PWD/mounted " /proc/self/mountinfo; do sleep 0.1; done
	mount -t overlay overlay overlaid -o lowerdir=mounted:empty && exec overlaid/steady 60' _ "$programs" >/dev/null 2>complaint &
victim=$!
if victim_runs; then
	attached -d 2
	refusal 'FUSE of another user below an overlay: attach says so' 'FUSE.*allow_other' $?
	kill -KILL "$victim"
	wait "$victim" 2>/dev/null
else
	printf 'skip an overlay over FUSE in a user namespace: it cannot be mounted: %s\n' "$(head -n 1 complaint)"
fi

# Its files' attributes can be in memory, so that it looks like one over a disk (Linux 6.16 and later).
mkdir meta
# shellcheck disable=SC2016 # for the inner shell
unshare --user --map-root-user --mount bash -c '
	"$1/fuse" files mounted &
	mount -t tmpfs tmpfs meta && : >meta/steady && chmod 755 meta/steady && truncate -s "$(stat -c %s files/steady)" meta/steady &&
		python3 -c "import os
os.setxattr(\"meta/steady\", \"user.overlay.metacopy\", b\"\")
os.setxattr(\"meta/steady\", \"user.overlay.redirect\", b\"/steady\")" || exit
	until grep -qF " $PWD/mounted " /proc/self/mountinfo; do sleep 0.1; done
	mount -t overlay overlay overlaid -o userxattr,lowerdir=meta::mounted && exec overlaid/steady 60' _ "$programs" >/dev/null 2>complaint &
victim=$!
if victim_runs; then
	server=$(pgrep -P "$victim" -x fuse)
	why=
	attached -d 2 --experiment 200 || why=" status $?;"
	grep -q 'steady.c:[0-9]' "$profile" 2>/dev/null || why+=' no line of the program in the profile;'
	verdict 'FUSE below an overlay with attributes in memory: attach' "$why" complaint
	attached -d 2 -p other
	refusal '... no probe is put there' 'a mount that a user has made' $?
	kill -STOP "$server"
	attached -d 2
	refusal '... that hangs: attach says so' 'file system that the executable of process .* does not answer' $?
	kill -CONT "$server"
	why=
	kill -USR2 "$server"
	"$COZBPF" attach -q --no-report -o "$profile" "$victim" >out 2>complaint &
	pid=$!
	sleep 1
	ended "$pid"
	verdict '... that hangs when its file is closed: SIGTERM ends attach' "$why" complaint
	kill -KILL "$server"
else
	printf 'skip an overlay of data alone over FUSE: it cannot be mounted: %s\n' "$(head -n 1 complaint)"
fi

# As rootless containers have it, here with a layer on another file system, so that stat has another device than the mount.
kill -KILL "$victim" 2>/dev/null
wait "$victim" 2>/dev/null
case $(stat -f -c %T files) in
tmpfs | overlayfs) printf 'skip an overlay over a disk in a user namespace: the build directory is not on a disk\n' ;;
*)
	# shellcheck disable=SC2016 # for the inner shell
	unshare --user --map-root-user --mount bash -c '
		mount -t tmpfs tmpfs empty && mkdir empty/upper empty/work &&
			mount -t overlay overlay overlaid -o userxattr,lowerdir=files,upperdir=empty/upper,workdir=empty/work && exec overlaid/steady 60' >/dev/null 2>complaint &
	victim=$!
	victim_runs
	why=
	attached -d 2 --experiment 200 || why=" status $?;"
	grep -q 'steady.c:[0-9]' "$profile" 2>/dev/null || why+=' no line of the program in the profile;'
	verdict 'an overlay over a disk in a user namespace: attach' "$why" complaint
	;;
esac
