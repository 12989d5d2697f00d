#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# A stripped program whose debug file lies in a directory that only --debug-dir names, with sources that --source-prefix has moved: the
# lists, points, scopes and the profile all have the new names.
# needs: root btf python3
# beside: others
# shellcheck disable=SC2154 # what helpers.sh sets
set -uo pipefail
# shellcheck source=tests/e2e/helpers.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/helpers.sh"
cd "$tmp" || exit 1

mkdir -p built debug/.build-id
cat >built/spin.c <<'END'
#include <stdint.h>

void step(void);
__attribute__((noinline)) void step(void)
{
	__asm__ volatile("nop"); /* LINE:step */
}

int main(void)
{
	volatile uint64_t x = 0;

	for (int i = 0; i < 300; i++) {
		for (int k = 0; k < 1000000; k++)
			x += (uint64_t)k;
		step();
	}
	return 0;
}
END
gcc -g -O1 -Wl,--build-id -o full "$tmp/built/spin.c" || exit 1
id=$(readelf -n full | sed -n 's/.*Build ID: //p')
mkdir -p "debug/.build-id/${id:0:2}"
objcopy --only-keep-debug full "debug/.build-id/${id:0:2}/${id:2}.debug" || exit 1
objcopy --strip-all full spin || exit 1
moved=(--debug-dir "$tmp/debug" --source-prefix "$tmp/built=/srv/code")
step=$(grep -n 'LINE:step' built/spin.c | cut -d : -f 1)

why=''
! "$COZBPF" list lines ./spin >out 2>err || why+=' lines without a debug file;'
grep -q 'no line information' err || why+=' no reason why there are none;'
"$COZBPF" list "${moved[@]}" lines ./spin >out 2>err || why+=' no lines;'
grep -qx "/srv/code/spin.c:$step" out || why+=' the line is not among them;'
! grep -qv '^/srv/code/' out || why+=' other names among them;'
"$COZBPF" list "${moved[@]}" lines ./spin '/srv/code/*.c' >out 2>err || why+=' the pattern does not see the new name;'
"$COZBPF" check --debug-dir "$tmp/debug" ./spin >out 2>err
! grep -q 'no line information' out || why+=' check does not find it;'
grep -q "FILE:LINE: in" out || why+=' check does not say where it is;'
verdict list "$why" out err

why=''
profiled "${moved[@]}" --source '/srv/code/*' -p "step=/srv/code/spin.c:$step" --experiment 100 ./spin || why+=' the run failed;'
grep -q '"/srv/code/spin.c:[0-9]*"' "$profile" || why+=' the profile does not have the new name;'
! grep -q "$tmp/built" "$profile" || why+=' the profile has the old name;'
holds "visits('step') > 0" || why+=' the point was never passed;'
"$COZBPF" report --source-prefix /srv=/opt "$profile" >report 2>err || why+=' the report fails;'
grep -q '/opt/code/' report || why+=' the report does not have the new name;'
verdict run "$why" out err "$profile"

# A library's file is reached through the process that has it mapped; its debug file is beside it all the same.
cat >built/work.c <<'END'
void work(volatile long *p);
void work(volatile long *p)
{
	for (int i = 0; i < 1000000; i++)
		*p += i;
}
END
cat >built/user.c <<'END'
void work(volatile long *p);
void step(void);
__attribute__((noinline)) void step(void)
{
	__asm__ volatile("nop");
}

int main(void)
{
	volatile long x = 0;

	for (int i = 0; i < 500; i++) {
		work(&x);
		step();
	}
	return 0;
}
END
gcc -g -O1 -shared -fPIC -Wl,--build-id=none -o libwork.so built/work.c || exit 1
mkdir .debug
objcopy --only-keep-debug libwork.so .debug/libwork.debug
objcopy --strip-debug --add-gnu-debuglink=.debug/libwork.debug libwork.so || exit 1
gcc -g -O1 -o user built/user.c -L. -lwork -Wl,-rpath,"$tmp" || exit 1

why=''
profiled --binary libwork.so -p step --experiment 100 ./user || why+=' the run failed;'
grep -q "$tmp/built/work.c:[0-9]*\"" "$profile" || why+=' no lines of the library;'
verdict library "$why" out err "$profile"

why=''
objcopy --only-keep-debug --remove-section=.note.gnu.build-id full "debug/.build-id/${id:0:2}/${id:2}.debug"
! "$COZBPF" list "${moved[@]}" lines ./spin >out 2>err || why+=' lines from the wrong file;'
grep -q "${id:2}.debug: of another build" err || why+=' the wrong file is not named;'
verdict mismatch "$why" out err

# A server's file, which the invoking user's own debuginfod-find brings: as that user, whoever the program runs as. This one stands for it,
# and says who it was and with which home.
chmod 711 .
mkdir -p bin cache
objcopy --only-keep-debug full cache/debuginfo || exit 1
cat >bin/debuginfod-find <<END
#!/bin/sh
echo "\$(id -u) \$1 \$2 \$HOME" >>$tmp/cache/asked
[ "\$2" = $id ] && echo $tmp/cache/debuginfo
END
chmod 755 bin/debuginfod-find
chmod 777 cache
home_of_root=$(getent passwd 0 | cut -d : -f 6)
asking=(env -u SUDO_UID -u SUDO_GID "PATH=$tmp/bin:$PATH" DEBUGINFOD_URLS=http://127.0.0.1:9/)
sed 's/^int main/__attribute__((noinline)) void before(void) { __asm__ volatile("nop"); }\n&/; s/volatile uint64_t x = 0;/&\n\tbefore();/' built/spin.c >built/other.c
gcc -g -O1 "-Wl,--build-id=0x$id" -o other "$tmp/built/other.c" || exit 1

lines_of() { # OBJECT [SUDO-UID]
	local object=$1
	shift
	rm -f cache/asked
	timeout 60 "${asking[@]}" ${1:+"SUDO_UID=$1" "SUDO_GID=$1"} "$COZBPF" list lines "$object" >out 2>err </dev/null
}
asked_as() { # UID HOME
	grep -q "^$1 debuginfo $id $2\$" cache/asked || why+=' it was not asked as the invoking user;'
	! grep -qv "^$1 " cache/asked || why+=' it was asked as somebody else;'
}

why=''
lines_of ./spin 65534 || why+=" status $?;"
grep -q "spin.c:$step\$" out || why+=' no lines;'
asked_as 65534 '.*'
verdict 'a debug file from a server' "$why" out err cache/asked

why=''
lines_of ./spin || why+=" status $?;"
grep -q "spin.c:$step\$" out || why+=' no lines;'
asked_as 0 "$home_of_root"
verdict 'root asks for itself' "$why" out err cache/asked

# What a user's process maps is looked at as root: the user has no part in it.
cp spin users-spin && chown 1:1 users-spin && chmod 755 users-spin
setpriv --reuid 1 --regid 1 --clear-groups ./users-spin &
victim=$!
for _ in $(seq 100); do [ "$(readlink "/proc/$victim/exe")" = "$tmp/users-spin" ] && break; sleep 0.01; done
kill -STOP "$victim" # it would end too soon
why=''
lines_of "/proc/$victim/exe" || why+=" status $?;"
asked_as 0 "$home_of_root"
kill -KILL "$victim"
wait "$victim" 2>/dev/null
verdict 'never as the user of the program' "$why" out err cache/asked

# An answer with the right build id, whose lines and symbols are those of other code.
refuses() { # NAME OWNER MODE [SUDO-UID]
	local name=$1 why=''
	objcopy --only-keep-debug other cache/debuginfo || exit 1
	chown "$2:$2" cache/debuginfo
	chmod "$3" cache/debuginfo
	shift 3
	lines_of ./spin "$@" && why+=' lines of it;'
	! grep -q 'other.c' out || why+=' it is believed;'
	grep -q "debuginfod:$id: the file in your cache is not used, since others than root and you can have written it" err || why+=' no reason;'
	[ -e cache/asked ] || why+=' no server was asked;'
	verdict "$name" "$why" out err
}
refuses 'an answer that another user can have written' 1 644
refuses 'the same for a user' 1 644 65534
refuses 'an answer that all can write to' 0 666
refuses 'an answer that a group can write to' 65534 664 1

why=''
objcopy --only-keep-debug full cache/debuginfo && chown 1:1 cache/debuginfo && chmod 644 cache/debuginfo
lines_of ./spin 1 || why+=" status $?;"
grep -q "spin.c:$step\$" out || why+=' no lines;'
verdict "an answer in the invoking user's own cache" "$why" out err

why=''
rm -f cache/asked
env -u DEBUGINFOD_URLS "PATH=$tmp/bin:$PATH" SUDO_UID=65534 SUDO_GID=65534 "$COZBPF" list lines ./spin >out 2>err </dev/null && why+=' lines without a server;'
[ ! -e cache/asked ] || why+=' it is asked unasked;'
verdict 'no server is asked where none is named' "$why" err
