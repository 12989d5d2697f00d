#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Programs as a distribution ships them, without names for most of their functions: nearly all samples belong to a row, and a function that is called
# after its place can be a target and a progress point.
# needs: root btf python3 xz redis-server redis-benchmark
# tier: full
# shellcheck disable=SC2154 # what helpers.sh sets
set -uo pipefail
# shellcheck source=tests/e2e/helpers.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/helpers.sh"
cd "$tmp" || exit 1

# Per cent of the samples that no row has.
lost() {
	ask '100 * unattributed / max(1, sampled + unattributed)'
}
# The function without a name that has the most samples.
nameless() { # FILE
	ask 'max((s for s in samples if s.startswith("'"$1"'+0x")), key=samples.get)'
}
check_lost() {
	[ "$(python3 -c "print($(lost) <= 5)")" = True ] || printf ' %.1f %% of the samples belong to no row;' "$(lost)"
}

cat >hash.py <<'END'
import hashlib, sys, threading, time
data, end = b"x" * 200000, time.monotonic() + float(sys.argv[1])
def block(): hashlib.sha256(data).digest()
def work():
    while time.monotonic() < end: block()
threads = [threading.Thread(target=work) for _ in range(2)]
for t in threads: t.start()
for t in threads: t.join()
END
why=
profiled -p syscall:futex -- /usr/bin/python3 hash.py 6 || why+=" status $?;"
why+=$(check_lost)
verdict 'threads of Python that hash' "$why" err

# A wrapper, which the system has as well, starts it: it is profiled all the same, and the report says so.
cat >wrapper <<'END'
#!/bin/sh
exec /usr/bin/python3 "$@"
END
chmod 755 wrapper
why=
"$COZBPF" run --keep-root -q -o wrapped.jsonl -p syscall:futex -- ./wrapper hash.py 6 >out 2>err </dev/null || why+=" status $?;"
tr '\n' ' ' <err | tr -s ' ' | found 'cozbpf: [^ ]* started /usr/bin/python3[^ ]*, which has [0-9]* % of the samples' || why+=' it is not said what was profiled;'
profile=$tmp/wrapped.jsonl
why+=$(check_lost)
profile=$tmp/profile.jsonl
verdict 'behind a wrapper' "$why" err out

why=
profiled -b 'libcrypto.so*' -p syscall:futex -- /usr/bin/python3 hash.py 6 || why+=" status $?;"
why+=$(check_lost)
target=$(nameless libcrypto.so.3)
case $target in
libcrypto.so.3+0x*) ;;
*) why+=" no function without a name: $target;" ;;
esac
profiled -b 'libcrypto.so*' -l "$target" --speedups 0,50 -p "$target" -- /usr/bin/python3 hash.py 6 || why+=" status $?;"
holds 'len(experiments) >= 3 and all(x["selected"] == "'"$target"'" for x in experiments)' || why+=' it was not the target;'
holds 'total("hits") > 100' || why+=" $(ask 'total("hits")') hits;"
holds 'visits("'"$target"'") > 10' || why+=" $(ask 'visits("'"$target"'")') visits;"
verdict "a function that is called after its place" "$why" err

why=
head -c 30000000 /dev/urandom | base64 -w 0 >big
profiled -b 'liblzma.so*' -b MAIN -p syscall:write -- xz -T2 -k -c -4 big || why+=" status $?;"
rm -f out
why+=$(check_lost)
verdict 'xz' "$why" err

why=
# The load comes when the server has started up and its libraries were read, and goes on until it ends.
(
	sleep 2
	redis-benchmark -s "$tmp/redis" -q -t set -n 1000000 -l >load.log 2>&1
) &
load=$!
profiled -p syscall:read -d 12 -- redis-server --port 0 --unixsocket "$tmp/redis" --save '' || why+=" status $?;"
kill "$load" 2>/dev/null
pkill -f "redis-benchmark -s $tmp/redis"
wait "$load" 2>/dev/null
why+=$(check_lost)
holds 'any("+0x" in name for name in samples)' || why+=' no function is called after its place;'
verdict 'a server' "$why" err
