#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Java: methods are rows once jcmd has had their perf map written; until then the report says so.
# needs: root btf python3 jcmd
# beside: others
# shellcheck disable=SC2154 # what helpers.sh sets
# shellcheck disable=SC2016 # what a report says
set -uo pipefail
# shellcheck source=tests/e2e/helpers.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/helpers.sh"
cd "$tmp" || exit 1

# Rounds of two methods. One takes twice as long as the other; each round ends with a system call.
cat >Rounds.java <<'JAVA'
public class Rounds {
	static int slow(int n) { int s = 0; for (int i = 0; i < n; i++) s = s * 31 + i; return s; }
	static int quick(int n) { int s = 1; for (int i = 0; i < n; i++) s = s * 37 + i; return s; }
	public static void main(String[] arguments) throws Exception {
		var out = new java.io.FileOutputStream("/dev/null");
		for (;;) out.write(slow(2000000) + quick(1000000));
	}
}
JAVA
if ! javac Rounds.java 2>err; then
	verdict 'Rounds.java' 'cannot be compiled;' err
	exit 1
fi
java -XX:-Inline Rounds >/dev/null 2>java.err &
java=$!
share() { # METHOD
	printf "samples.get('int Rounds.%s(int) [jit]', 0) / max(1, sum(samples.values()))" "$1"
}
attached() { # SECONDS
	rm -f "$profile"
	timeout 60 "$COZBPF" attach "$java" -q --no-report --what on-cpu -p round=syscall:write -d "$1" -o "$profile" >out 2>err || why+=" status $?;"
	"$COZBPF" report "$profile" >text 2>>err || why+=' no report;'
}
expect() {
	holds "$1" || why+=" not $1: $(ask 'dict(sorted(samples.items(), key=lambda x: -x[1])[:6])');"
}
told() {
	tr '\n' ' ' <text | tr -s ' ' | found 'java makes as it runs: `jcmd PID Compiler.perfmap`'
}

without() {
	attached "$(lasting 3)"
	expect "samples.get('unnamed java code [jit]', 0) > 0.5 * sum(samples.values())"
	told || why+=' nothing is said;'
}
tried without
verdict 'without a map: what writes one' "$why" text err

methods() {
	jcmd "$java" Compiler.perfmap >jcmd.out 2>&1 || why+=' jcmd failed;'
	attached "$(lasting 4)"
	expect "0.5 < $(share slow) < 0.8"
	expect "0.2 < $(share quick) < 0.45"
	! told || why+=' what was done is asked for;'
}
tried methods
verdict 'methods' "$why" jcmd.out text err

kill "$java"
wait "$java" 2>/dev/null
rm -f "/tmp/perf-$java.map"
