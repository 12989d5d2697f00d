#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# An ordinary user with a cozbpf that has the three capabilities that we advise, and no root: what run does, and attach to own processes.
# needs: root btf setpriv setcap
# beside: others
# shellcheck disable=SC2154 # what helpers.sh sets
set -uo pipefail
# shellcheck source=tests/e2e/helpers.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/helpers.sh"
cd "$tmp" || exit 1
if [ "$(cat /proc/sys/kernel/perf_event_paranoid)" -gt 2 ]; then
	echo 'skip capabilities: needs kernel.perf_event_paranoid of 2 at most'
	exit 0
fi
case $COZBPF in
*-asan/*)
	echo 'skip capabilities: a program that has capabilities takes no options for its sanitizers from the environment'
	exit 0
	;;
esac
mkdir -m 777 own && cd own || exit 1
install -m 755 "$COZBPF" "$BUILD/examples/barrier" "$programs/children" .
setcap cap_bpf,cap_perfmon,cap_sys_ptrace+ep cozbpf || exit 1
as_user=(setpriv --reuid 65534 --regid 65534 --clear-groups env HOME=/nonexistent)

# user NAME PATTERN WORD...: cozbpf, as the user, succeeds, and its report matches.
user() {
	local name=$1 pattern=$2 why=''
	shift 2
	rm -f profile.jsonl
	timeout -k 5 60 "${as_user[@]}" ./cozbpf "$@" >out 2>err || why+=" status $?;"
	grep -qE -- "$pattern" out err || why+=" no '$pattern';"
	verdict "$name" "$why" err out
}

user check '^A run is possible\.$' check
for pay in hold sleep spin; do
	user "run --pay $pay" "Progress point 'round'" run -q -o profile.jsonl --pay "$pay" -p round=progress -- ./barrier 2
done
[ "$(stat -c %u profile.jsonl)" -eq 65534 ] && why='' || why=' it is another one'\''s'
verdict 'the profile is the user'\''s' "$why"
user 'points of every kind that takes no tracefs' "Progress point 'left'" run -q -o profile.jsonl -p round=progress -p barrier.c:48 -p left=progress%return \
	-p call=syscall:futex -p sampled:longer -- ./barrier 2
user 'latency' "'round'" run -q -o profile.jsonl --latency round=longer,progress -- ./barrier 2
user 'a program that starts others' experiments run -q -o profile.jsonl -n 1 -- ./children 6
"${as_user[@]}" ./barrier 60 >/dev/null &
mine=$!
user 'attach' "Progress point 'round'" attach "$mine" -q -o profile.jsonl -p round=progress -d 2
user 'attach: --inject' "Progress point 'round'" attach "$mine" -q -o profile.jsonl -p round=progress -d 2 --inject=always
kill "$mine"
wait "$mine" 2>/dev/null

# Root that cannot become nobody: no file may be decoded then, and check knows that, too.
no_setuid=(setpriv --bounding-set '-all,+bpf,+perfmon,+sys_ptrace' --inh-caps=-all "$COZBPF")
"${no_setuid[@]}" check >out 2>&1 && why=' check: a run is possible;' || why=''
tr -s '\n ' ' ' <out | found "A run is not possible: .*it cannot give up root's rights\. .*CAP_SETUID" || why+=' check does not say why;'
verdict 'root without CAP_SETUID: check' "$why" out
rm -f -- "$profile"
timeout -k 5 60 "${no_setuid[@]}" run -q -o "$profile" -p round=progress -- ./barrier 1 >out 2>complaint </dev/null
refusal 'root without CAP_SETUID' "cannot give up root's rights; .*CAP_SETUID" $?
# Probes of the older kind take more than the three capabilities.
rm -f -- "$profile"
timeout -k 5 60 setpriv --bounding-set '-all,+bpf,+perfmon,+sys_ptrace,+setuid,+setgid' --inh-caps=-all "$COZBPF" run -q --disable uprobe_multi -o "$profile" \
	-p round=progress -- ./barrier 1 >out 2>complaint </dev/null
refusal 'probes without CAP_SYS_ADMIN' 'not allowed to put probes into .*Linux 6.10.*CAP_SYS_ADMIN' $?
none_left || printf 'not ok capabilities: left behind: %s\n' "$(left_behind)"
