#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# From the host into a container, from one container into another that shares its PID namespace, and in one with no more capabilities than the manual
# names: paths, builds and lines of what runs there are found, on overlays, and when the file is deleted.
# needs: root btf python3 setpriv
# beside: others
# shellcheck disable=SC2154 # what helpers.sh sets
# shellcheck disable=SC2016 # for the shell in the container
set -uo pipefail
# shellcheck source=tests/e2e/helpers.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/helpers.sh"
cd "$tmp" || exit 1

own=(unshare --pid --fork --kill-child)
container=("$here/container.sh" "$tmp")
# What docker leaves to root, and the three that --cap-add takes.
docker=chown,dac_override,fowner,fsetid,kill,setgid,setuid,setpcap,net_bind_service,net_raw,sys_chroot,mknod,audit_write,setfcap
three=$docker,bpf,perfmon,sys_ptrace
if ! "${own[@]}" "${container[@]}" all true 2>complaint; then
	printf 'skip containers: none can be made here: %s\n' "$(tail -n 1 complaint)"
	exit 0
fi
line=$(line_of steady burn)
options=(-q --no-report -o "$profile" -p progress --experiment 100 --fixed-line "$line" --fixed-speedup 50)

# What a profile of `steady` has to have.
profile_of_steady() {
	holds 'len(experiments) >= 3' || why+=" $(ask 'len(experiments)') experiments;"
	holds "visits('progress') > 50" || why+=" $(ask "visits('progress')") visits;"
	holds "sum(n for at, n in samples.items() if at.endswith('$line')) > 50" || why+=' no samples of the line;'
	# On a busy machine the thread that owes waits for a CPU meanwhile.
	holds "total('paid') + total('rq_credited') > 0.5 * total('growth') > 0" ||
		why+=" paid $(ask "total('paid')"), and waited $(ask "total('rq_credited')"), of $(ask "total('growth')") ns;"
}

# The program is in the container's own layer, where no other root directory has it.
app='mkdir -p /opt/app && cp "$1" /opt/app/steady && exec /opt/app/steady 600'

# --- in a container, with everything and with the three capabilities
for capabilities in all "$three"; do
	name=$([ "$capabilities" = all ] && echo privileged || echo 'three capabilities')
	why=''
	rm -f -- "$profile"
	timeout -k 5 60 "${own[@]}" "${container[@]}" "$capabilities" bash -c 'mkdir -p /opt/app && cp "$1" /opt/app/steady && shift && "$@" -- /opt/app/steady 2' sh "$programs/steady" \
		"$COZBPF" run --keep-root "${options[@]}" >out 2>complaint </dev/null || why+=" status $?;"
	profile_of_steady
	verdict "$name: run" "$why" complaint
	why=''
	rm -f -- "$profile"
	timeout -k 5 60 "${own[@]}" "${container[@]}" "$capabilities" bash -c 'mkdir -p /opt/app && cp "$1" /opt/app/steady && shift
		/opt/app/steady 60 >/dev/null & victim=$!; sleep 0.3; rm /opt/app/steady; "$@" "$victim"; status=$?; kill "$victim"; exit $status' sh "$programs/steady" \
		"$COZBPF" attach "${options[@]}" -d 2 >out 2>complaint </dev/null || why+=" status $?;"
	profile_of_steady
	verdict "$name: attach to a program whose file is deleted" "$why" complaint
	why=''
	rm -rf db
	timeout -k 5 60 "${own[@]}" "${container[@]}" "$capabilities" bash -c 'mkdir -p /opt/app && cp "$1" /opt/app/steady && shift
		/opt/app/steady 60 >/dev/null & victim=$!; "$@"; status=$?; kill "$victim"; exit $status' sh "$programs/steady" \
		"$COZBPF" collect --db db --rate 500 -d 3s >out 2>complaint </dev/null || why+=" status $?;"
	"$COZBPF" db export --db db --to json 2>>complaint | grep '/opt/app/steady"' | found '"build_id":"[0-9a-f]' || why+=' no path with a build id;'
	verdict "$name: collect" "$why" complaint
	timeout 60 "${own[@]}" "${container[@]}" "$capabilities" "$COZBPF" check >out 2>&1 && why='' || why=" status $?;"
	grep -qx 'A run is possible.' out || why+=' no run is possible;'
	verdict "$name: check" "$why" out
done
# Without them it is refused in one line.
rm -f -- "$profile"
timeout 60 "${own[@]}" "${container[@]}" "$docker" "$COZBPF" run --keep-root "${options[@]}" -- "$programs/steady" 1 >out 2>complaint </dev/null
refusal 'none of the three' 'root has neither CAP_SYS_ADMIN nor CAP_BPF and CAP_PERFMON here.*--cap-add BPF --cap-add PERFMON --cap-add SYS_PTRACE' $?

# --- a pod: two containers with one PID namespace; the second one has cozbpf. `number` is the program's there, $victim on the host.
"${own[@]}" "${container[@]}" "$docker" bash -c "$app" sh "$programs/steady" >victim.out 2>&1 &
await_line victim.out '^at_ms' 15
victim=$(pgrep -f -x '/opt/app/steady 600')
number=$(awk '/^NSpid:/ { print $NF }' "/proc/$victim/status")

attached() { # COMMAND...
	rm -f -- "$profile"
	timeout -k 5 60 "$@" >out 2>complaint </dev/null || why+=" status $?;"
	profile_of_steady
}
why=''
attached nsenter --target "$victim" --pid "${container[@]}" "$three" "$COZBPF" attach "$number" "${options[@]}" -d 2
verdict 'from a sidecar: attach' "$why" complaint
why=''
attached nsenter --target "$victim" --pid "${container[@]}" "$three" "$COZBPF" system --exe "/proc/$number/root/opt/app/steady" --what on-cpu "${options[@]}" -d 2
verdict 'from a sidecar: system' "$why" complaint
why=''
attached "$COZBPF" attach "$victim" "${options[@]}" -d 2
verdict 'from the host: attach' "$why" complaint
why=''
attached "$COZBPF" attach "$victim" "${options[@]}" -d 2 --disable task_work,send_signal_task --inject=always
verdict 'from the host: attach, injected' "$why" complaint
why=''
rm -rf db
timeout -k 5 60 "$COZBPF" collect --db db --rate 500 -d 3s >out 2>complaint || why+=" status $?;"
"$COZBPF" db export --db db --to json 2>>complaint | grep '/opt/app/steady"' | found '"build_id":"[0-9a-f]' || why+=' no path with a build id;'
verdict 'from the host: collect' "$why" complaint
kill -KILL "$victim" # the first process of its namespace
wait

# --- debug files that only the container has
objcopy --only-keep-debug "$programs/steady" debug && strip -o stripped "$programs/steady" || exit 1
id=$(readelf -n stripped | sed -n 's/.*Build ID: //p')
"${own[@]}" "${container[@]}" "$docker" bash -c 'mkdir -p "/usr/lib/debug/.build-id/${1:0:2}" && cp debug "/usr/lib/debug/.build-id/${1:0:2}/${1:2}.debug" && cp stripped /opt/steady &&
	exec /opt/steady 600' sh "$id" >victim.out 2>&1 &
await_line victim.out '^at_ms' 15
victim=$(pgrep -f -x '/opt/steady 600')
why=''
mkdir -p "copied/.build-id/${id:0:2}" && cp debug "copied/.build-id/${id:0:2}/${id:2}.debug"
attached "$COZBPF" attach "$victim" "${options[@]}" --debug-dir "$PWD/copied" -d 2
rm -r copied
"$COZBPF" attach "$victim" "${options[@]}" -d 2 >out 2>refusal </dev/null && why+=' its root chose where a probe stands;'
grep -q 'only a debug file of the container says' refusal || why+=' no reason;'
"$COZBPF" list functions "$victim" 2>>complaint | grep -qx burn || why+=' no names;'
verdict 'from the host: debug files' "$why" complaint refusal
# One that it does not take, of another build: the file's own symbols are believed.
why=''
libc=$(awk '$6 ~ /libc\.so\.6$/ { print $6; exit }' "/proc/$victim/maps")
id=$(readelf -n "/proc/$victim/root$libc" | sed -n 's/.*Build ID: //p')
mkdir -p "/proc/$victim/root/usr/lib/debug/.build-id/${id:0:2}"
cp debug "/proc/$victim/root/usr/lib/debug/.build-id/${id:0:2}/${id:2}.debug"
timeout -k 5 60 "$COZBPF" attach "$victim" -q --no-report -o "$profile" -p slept=libc.so.6:clock_nanosleep --shared-code --experiment 100 -d 2 >out 2>complaint </dev/null ||
	why+=" status $?;"
holds "visits('slept') > 5" || why+=" $(ask "visits('slept')") visits;"
verdict 'from the host: a wrong debug file' "$why" complaint
kill -KILL "$victim" # the first process of its namespace
wait

# --- a program in a user namespace of its own, for which cozbpf is nobody
why=''
rm -f -- "$profile"
timeout -k 5 60 "${own[@]}" "${container[@]}" all bash -c 'unshare --user --map-root-user --net --pid --fork --kill-child "$1" 60 >/dev/null & sleep 0.5; shift
	"$@" "$(pgrep -x steady)"; status=$?; kill $!; exit $status' sh "$programs/steady" "$COZBPF" attach "${options[@]}" -d 2 >out 2>complaint </dev/null || why+=" status $?;"
profile_of_steady
verdict 'a program in a user namespace' "$why" complaint
none_left && why='' || why="$(left_behind)"
! grep -q "$tmp" /proc/mounts || why+=' mounts are left;'
verdict 'nothing is left behind' "$why"
