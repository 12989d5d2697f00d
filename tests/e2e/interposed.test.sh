#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Another preloaded library has functions of the C library's names, as libfaketime does, and they return nonsense: the program behaves as it does with
# that library alone, is delayed as it should be, and none of its functions is called by what cozbpf has put into the program. The same for a library
# that is preloaded into cozbpf itself, and for time namespaces.
# needs: root btf python3 readelf
# beside: others
# shellcheck disable=SC2154 # what helpers.sh sets
set -uo pipefail
directory=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd) || exit 1
# shellcheck source=tests/e2e/helpers.sh
source "$directory/helpers.sh"
cd "$tmp" || exit 1
usable_payers
limit=30
options=(--fixed-line "$(line_of interposed burn)" --fixed-speedup 100 --experiment 100 --cool-off 0 -p progress)

# Of the C library the shim imports two variables, dl_iterate_phdr for programs without _r_debug alone, and with --sync pthread what
# pthread_cleanup_push is made of.
for library in "$BUILD"/user/target/shim/libcozbpf_shim*.so; do
	why=$(nm -D --undefined-only "$library" | sed 's/.* //; s/@.*//' |
		grep -vxE '_r_debug|dl_iterate_phdr|(__)?environ|__pthread_(un)?register_cancel|__pthread_unwind_next|__sigsetjmp' | tr '\n' ' ')
	verdict "${library##*/} imports no function of libc" "$why"
done

paid() {
	holds 'total("paid") > 0' || printf ' nothing was paid;'
}

behave() { # HOW OPTION...
	local how=$1
	shift
	LD_PRELOAD=$programs/libinterpose.so "$programs/interposed" "$how" 0.7 >native || why+=' it fails without cozbpf;'
	grep -qx 'done' native || why+=' it does not end without cozbpf;'
	# What cozbpf hands on to the program (user/cli/cmd/environment.c).
	COZBPF_LD_PRELOAD=$programs/libinterpose.so profiled "$@" "${options[@]}" -- "$programs/interposed" "$how" 0.7
	status=$?
	[ "$status" -eq 0 ] || why+=" status $status;"
	diff native out >difference || why+=' its output differs;'
	why+=$(paid)
}
behaves() { # NAME HOW OPTION...
	tried behave "${@:2}"
	verdict "$1" "$why" difference err
}
# Under hold the library pays what must be slept alone: that it starts and is handed on is all that there is to see.
for pay in "${payers[@]}"; do
	behaves "a library that interposes the C library, $pay, exec" exec --pay "$pay"
	behaves "a library that interposes the C library, $pay, --sync pthread" end --pay "$pay" --sync pthread
	[ "$pay" != hold ] || continue
	behaves "a library that interposes the C library, $pay, posix_spawn" spawn --pay "$pay"
	behaves "a library that interposes the C library, $pay, system" system --pay "$pay"
done

# A handler that is injected.
LD_PRELOAD=$programs/libinterpose.so "$programs/interposed" end 60 enough >out &
victim=$!
why=''
rm -f -- "$profile"
timeout -k 5 "$limit" "$COZBPF" attach --inject=always -q --no-report -o "$profile" "$victim" -d 1 "${options[@]}" 2>err || why+=" status $?;"
why+=$(paid)
: >enough
wait "$victim" || why+=" the program ends with $?;"
printf '%s\n' end 'done' | diff - out >difference || why+=' its output differs;'
verdict 'a library that interposes the C library, attach' "$why" difference err
# cozbpf itself, with a library that changes its clock; the program has it as well.
faked() {
	local from started
	from=$(date +%s)
	LD_PRELOAD=$programs/libinterpose_clocks.so profiled "${options[@]}" -- "$programs/interposed" end "$(lasting 1)" || why+=" status $?;"
	started=$(sed -n 's/^{"type":"startup","time":\([0-9]*\)[0-9]\{9\},.*/\1/p' "$profile")
	((${started:-0} >= from && ${started:-0} <= $(date +%s))) || why+=" the file says that it began at ${started:-no time};"
	holds '0.9e9 < runtime < 60e9' || why+=" it ran for $(ask runtime) ns;"
	why+=$(paid)
}
tried faked
verdict "a clock of a library's that is preloaded into cozbpf" "$why" err
LD_PRELOAD=$programs/libinterpose_clocks.so date +%Y >native
LD_PRELOAD=$programs/libinterpose_clocks.so profiled -p progress -- date +%Y
why=''
cmp -s native out && grep -q 208 out || why+=" the program's clock is not the library's;"
verdict "the program that it starts keeps the library" "$why" out err

# Time namespaces: of the program, and of cozbpf, which compares its clock with the kernel's.
in_namespace() { # COMMAND...
	timeout -k 5 60 unshare --time --monotonic 1000000 "$@"
}
ahead() {
	rm -f -- "$profile"
	in_namespace "$COZBPF" run --keep-root -q --no-report -o "$profile" "${options[@]}" -- "$programs/interposed" end "$(lasting 1)" >out 2>err ||
		why+=" status $?;"
	holds '0.9e9 < runtime < 60e9' || why+=" it ran for $(ask runtime) ns;"
	why+=$(paid)
}
# What passes between the signal and the handler is a part of the pause that the clocks of both sides are needed for.
delivered() {
	profiled --pay sleep "${options[@]}" -- unshare --time --monotonic 1000000 "$programs/interposed" end "$(lasting 1)" || why+=" status $?;"
	why+=$(paid)
}
if in_namespace true 2>/dev/null; then
	tried ahead
	verdict 'cozbpf in a time namespace' "$why" err
	tried delivered
	verdict 'a program in a time namespace' "$why" err
else
	printf 'skip time namespaces: the kernel or unshare has none\n'
fi

none_left || verdict 'nothing is left behind' "$(left_behind)"
