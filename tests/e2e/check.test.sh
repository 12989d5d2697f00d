#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# cozbpf check, and what a run says that may not load BPF programs: which privilege is missing, and nothing else.
# needs: root btf setpriv unshare
# beside: others
# shellcheck disable=SC2154 # what helpers.sh sets
set -uo pipefail
# shellcheck source=tests/e2e/helpers.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/helpers.sh"
cd "$tmp" || exit 1
# Other users may not be let to where the build is.
cp "$COZBPF" "$BUILD/examples/barrier" .
program=./barrier
profile=$tmp/cozbpf.jsonl
chmod 777 .

all_is_there() {
	local why=''
	timeout 120 ./cozbpf check --verbose >out 2>err || why+=" status $?;"
	grep -qx 'A run is possible.' out || why+=' no run is possible;'
	! grep -E '^[a-z_]+ +(MISSING|DENIED)' out || why+=' something required is missing;'
	# What a run loads, not only small trials.
	grep -qE '^programs +ok ' out || why+=' the programs of a run were not loaded;'
	verdict 'check: all that a run needs' "$why" out err
}

# denied NAME WHY COMMAND...: check and run, started by COMMAND, both say WHY.
denied() {
	local name=$1 pattern=$2 why=''
	shift 2
	timeout 120 "$@" ./cozbpf check >out 2>err
	[ $? -eq 125 ] || why+=' exit status;'
	# A sentence says what is missing, one what gives it, and no row of the table says so again.
	sed -n '/^A run is not possible: /,$p' out | tr -s '\n ' ' ' | sed 's/^A run is not possible: //; s/\. /; /' >answer
	sed '/^A run is not possible: /,$d' out | tr -s '\n ' ' ' >table
	grep -qE "$pattern" answer || why+=" $(cat answer);"
	! grep -qE ' (DENIED|denied) ' out || why+=' there are rows that are denied;'
	! grep -qE "${pattern%%;*}" table || why+=' it is said more than once;'
	! grep -qE "${pattern#*; }" table || why+=' what gives it is said more than once;'
	[ "$(awk 'length > 100' out | wc -l)" -eq 0 ] || why+=' lines of more than 100 columns;'
	timeout 120 "$@" ./cozbpf check --verbose >out 2>err
	grep -q '^libbpf: ' err || why+=' --verbose prints nothing;'
	grep -qE '^programs +DENIED' out || why+=' --verbose lists nothing;'
	# Below the rows once for all of them, and in the end.
	[ "$(tr -s '\n ' ' ' <out | grep -oE "${pattern#*; }" | wc -l)" -le 2 ] || why+=' --verbose says it in each row;'
	verdict "check: $name" "$why" out err
	COZBPF_DEBUG=1 timeout 120 "$@" ./cozbpf run -p round=progress -- "$program" 1 >/dev/null 2>complaint
	refusal "run: $name" "$pattern" $?
	# Not: this kernel cannot pause a process that runs already.
	# shellcheck disable=SC2016 # for the inner shell
	timeout 120 "$@" sh -c '"$1" 60 >/dev/null & ./cozbpf attach -p round=progress -d 1 $!; status=$?; kill $!; exit $status' \
		sh "$program" 2>complaint
	refusal "attach: $name" "$pattern" $?
}

all_is_there
denied 'another user' 'this user may not load BPF programs; run as root' setpriv --reuid 65534 --regid 65534 --clear-groups
denied 'root without capabilities' 'root has neither CAP_SYS_ADMIN .* container; docker run --privileged .* --cap-add BPF' \
	setpriv --bounding-set -all --inh-caps -all
if unshare --user --map-root-user true 2>/dev/null; then
	denied 'a user namespace' 'in a user namespace, such as a rootless container; run cozbpf as root outside of it' unshare --user --map-root-user
else
	printf 'skip check: a user namespace: the kernel allows none\n'
fi
none_left || printf 'not ok check: left behind: %s\n' "$(left_behind)"
