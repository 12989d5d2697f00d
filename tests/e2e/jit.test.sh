#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Code that a program makes as it runs: named by its perf map, while that grows; whose file it is; in a container; and what is said where
# there is none.
# needs: root btf python3
# beside: others
# shellcheck disable=SC2154 # what helpers.sh sets
# shellcheck disable=SC2016 # a shell in a namespace, and what a report says
set -uo pipefail
# shellcheck source=tests/e2e/helpers.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/helpers.sh"
cd "$tmp" || exit 1

named='[jit]'
share() { # SAMPLE-CONDITION: of a location s
	printf "sum(n for s, n in samples.items() if %s) / max(1, sum(samples.values()))" "$1"
}
expect() { # CONDITION ON SHARE, of the locations that it names
	holds "$1" || why+=" not $1: $(ask 'dict(sorted(samples.items(), key=lambda x: -x[1])[:6])');"
}
slow="$(share "s == 'slow /srv/a.js:1:1 $named'")"
quick="$(share "s == 'quick /srv/a.js:9:1 $named'")"
later="$(share "s == 'later /srv/a.js:20:1 $named'")"
any="$(share "s.endswith('$named')")"
calls="$(share "s.endswith('/$(line_of jitted call)')")"

# By arithmetic slow is two of three, and quick is replaced after one second of the time.
functions() {
	profiled --what on-cpu -p progress --experiment 200 -- "$programs/jitted" "$(lasting 4)" map || why+=" status $?;"
	expect "0.6 < $slow < 0.73"
	expect "$slow + $quick + $later > 0.9"
	expect "$later > 0.1"
	holds "any(x['selected'] == 'slow /srv/a.js:1:1 $named' for x in experiments)" || why+=" selected: $(ask '{x["selected"] for x in experiments}');"
	"$COZBPF" report --width 100 "$profile" >text 2>err || why+=' no report;'
	grep -qE '^.*a\.js:1:1 \[jit\] +slow ' text || why+=' no row;'
	! grep -q 'makes as it runs' text || why+=' names are missed;'
}
tried functions
verdict 'functions of a perf map, and of one that grows' "$why" text err

slopes() {
	profiled --slopes-only -p progress -- "$programs/jitted" "$(lasting 4)" map || why+=" status $?;"
	"$COZBPF" report --json "$profile" 2>err | python3 -c 'import json, sys
lines = {x["selected"]: x for x in json.load(sys.stdin)["points"][0]["lines"]}
slow = lines["slow /srv/a.js:1:1 [jit]"]
print(slow["slope"], slow["function"])
sys.exit(0 if 0.5 < slow["slope"] < 0.8 and slow["function"] == "slow" and slow["object"] == "[jit]" else 1)' >found 2>>err || why+=" $(cat found);"
}
tried slopes
verdict 'they have slopes' "$why" found err

# As the table has it, and as a person writes it.
target() { # NAME
	profiled -l "$1" -p progress --experiment 200 -- "$programs/jitted" "$(lasting 3)" map || why+=" status $?;"
	holds "len(experiments) > 4 and all(x['selected'] == 'slow /srv/a.js:1:1 $named' for x in experiments)" ||
		why+=" selected: $(ask '{x["selected"] for x in experiments}');"
	holds "sum(x['selected_samples'] for x in experiments) > 100" || why+=' it was not sampled;'
}
for name in "slow /srv/a.js:1:1 $named" "slow $named"; do
	tried target "$name"
	verdict "a target: $name" "$why" err
done

# --- what is in scope
scope() { # OPTION CONDITION
	profiled --what on-cpu -p progress -b "$1" -- "$programs/jitted" "$(lasting 2)" map || why+=" status $?;"
	expect "$2"
}
tried scope JIT "$any == 1"
verdict 'its code alone' "$why" err
tried scope '!JIT' "$any == 0 and $calls > 0.9"
"$COZBPF" report --json "$profile" 2>>err | python3 -c 'import json, sys
objects = {x["object"] for x in json.load(sys.stdin)["points"][0]["lines"]}
sys.exit(objects != {sys.argv[1]})' "$(realpath "$programs/jitted")" 2>>err || why+=' object;'
verdict 'all but its code' "$why" err

# --- no map
without() { # MAP
	profiled --what on-cpu -p progress -- "$programs/jitted" "$(lasting 2)" "$1" || why+=" status $?;"
	expect "$any == 0 and $calls > 0.9"
}
for kind in none fifo link; do
	tried without "$kind"
	verdict "$kind: its samples are its caller's" "$why" err
done
late() {
	profiled --what on-cpu -p progress -- "$programs/jitted" "$(lasting 6)" late || why+=" status $?;"
	expect "$(share "s in ('slow $named', 'later $named')") > 0.3"
	expect "$calls > 0.2"
}
tried late
verdict 'a map that comes late' "$why" err

# A runtime is known by its file.
cp "$programs/jitted" ./node
runtime() { # MAP WANTED
	profiled --what on-cpu -p progress -- ./node "$(lasting 2)" "$1" || why+=" status $?;"
	"$COZBPF" report "$profile" >text 2>err || why+=' no report;'
	tr '\n' ' ' <text | tr -s ' ' | found 'node makes as it runs: start it with `node --perf-basic-prof`'
	[ $? -eq "$2" ] || why+=' the sentence;'
}
nameless() {
	runtime none 0
	expect "$(share "s == 'unnamed node code $named'") > 0.9"
}
tried nameless
verdict 'a runtime without a map: what it is to be started with' "$why" text
names() {
	runtime map 1
	expect "$slow > 0.5"
}
tried names
verdict 'a runtime with one: nothing is said' "$why" text

# --- hostile maps
long() {
	profiled --what on-cpu -p progress -- "$programs/jitted" "$(lasting 6)" long || why+=" status $?;"
	expect "$slow > 0.35"
}
tried long
verdict 'a map of forty megabytes' "$why" err
forged() {
	profiled --what on-cpu -p progress -- "$programs/jitted" "$(lasting 2)" forged || why+=" status $?;"
	expect "$(share "s == 'slow?[31m??/srv/a.js:1:1 $named'") > 0.5"
	holds "any(s == 'quick [disk] $named' for s in samples)" || why+=' a name was taken for a wait;'
	"$COZBPF" report "$profile" >text 2>err || why+=' no report;'
	! grep -q $'[\033\a]' text || why+=' the terminal is steered;'
}
tried forged
verdict 'a forged map' "$why" text

# Of a user's process, the user's own and root's are taken.
if command -v setpriv >/dev/null; then
	owned() { # UID CONDITION
		local pid
		setpriv --reuid 65534 --regid 65534 --clear-groups "$programs/jitted" 30 none &
		pid=$!
		for address in $(sleep 0.3 && sed -n 's/-.* rwxp 00000000 00:00 0 $//p' "/proc/$pid/maps"); do
			printf '%s 1000 all\n' "$address"
		done >"/tmp/perf-$pid.map"
		chown "$1" "/tmp/perf-$pid.map"
		rm -f "$profile"
		timeout 40 "$COZBPF" attach "$pid" -q --no-report --what on-cpu -p progress -d 2 -o "$profile" >out 2>err || why+=" status $?;"
		kill "$pid"
		wait "$pid" 2>/dev/null
		rm -f "/tmp/perf-$pid.map"
		expect "$2"
	}
	for owner in 65534 0; do
		tried owned "$owner" "$(share "s == 'all $named'") > 0.5"
		verdict "the map of a user's process, owned by $owner" "$why" err
	done
	tried owned 12345 "$any == 0"
	verdict "another user's map" "$why" err
fi

# In namespaces of its own it has another number, and another /tmp.
own=(unshare --pid --fork --kill-child --mount sh -c 'mount -t tmpfs none /tmp && exec "$@"' sh)
if ! "${own[@]}" true 2>/dev/null; then
	printf 'skip container: no PID namespace can be made here\n'
	exit 0
fi
container() {
	local pid outer
	"${own[@]}" "$programs/jitted" 30 map &
	outer=$!
	sleep 0.5
	pid=$(pgrep -P "$outer")
	rm -f "$profile"
	timeout 40 "$COZBPF" attach "$pid" -q --no-report --what on-cpu -p progress -d 3 -o "$profile" >out 2>err || why+=" status $?;"
	kill "$outer"
	wait "$outer" 2>/dev/null
	expect "$slow > 0.5"
}
tried container
verdict 'in a container' "$why" err
