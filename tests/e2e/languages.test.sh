#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The same two stages in C++20, Rust and Go, compiled as users do: the profile is one of their own lines, the slower stage among them, and
# a function of theirs is the progress point.
# needs: root btf python3 g++ rustc go
# beside: others
# shellcheck disable=SC2154 # what helpers.sh sets
set -uo pipefail
# shellcheck source=tests/e2e/helpers.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/helpers.sh"
cd "$tmp" || exit 1

# As `go build` is used, but for its caches.
export GOCACHE=$tmp/go-cache GOPATH=$tmp/go GO111MODULE=off GOFLAGS=
examples=$SRC/examples

mark() { # FILE MARK
	printf '%s:%s' "$1" "$(grep -n "// LINE:$2\$" "$examples/$1" | cut -d : -f 1)"
}

# stages NAME SOURCE POINT COMPILER...: a profile of what the compiler makes.
stages() {
	local name=$1 source=$2 point=$3 why='' decode filter
	shift 3
	rm -f stages
	if ! "$@" >err 2>&1; then
		verdict "$name" ' it does not compile;' err
		return
	fi
	decode=$(mark "$source" decode)
	filter=$(mark "$source" filter)
	profiled --what on-cpu -p "done=$point" --experiment 200 -- ./stages "$(lasting 4)" || why+=' it failed;'
	[ ! -s err ] || why+=' something on stderr;'
	holds 'runs[0]["granularity"] == "line" and len(experiments) > 10' || why+=" too few experiments: $(ask 'len(experiments)');"
	holds "all(x['selected'].rsplit(':', 1)[0].endswith('/$source') for x in experiments)" ||
		why+=" selected: $(ask '{x["selected"] for x in experiments}');"
	holds "any(x['selected'].endswith('/$decode') for x in experiments)" || why+=" $decode was not selected;"
	holds "all(s.rsplit(':', 1)[0].endswith('/$source') for s in samples)" || why+=" samples in $(ask 'set(samples)');"
	# By arithmetic 20 of 32.
	holds "0.5 < sum(n for s, n in samples.items() if s.endswith('/$decode')) / sum(samples.values()) < 0.75" ||
		why+=" samples: $(ask 'samples');"
	holds "sum(n for s, n in samples.items() if s.endswith('/$filter')) > 0.2 * sum(samples.values())" || why+=" too few in $filter;"
	holds 'visits("done") > 100' || why+=" visits: $(ask 'visits("done")');"
	verdict "$name" "$why" err
}

# Function by function, with the runtime and the library left out.
functions() { # NAME POINT DECODE FILTER
	local why=''
	profiled --what on-cpu -p "done=$2" --granularity function --experiment 200 -- ./stages "$(lasting 3)" || why+=' it failed;'
	holds "{'$3', '$4'} & {x['selected'] for x in experiments} and samples['$3'] + samples['$4'] > 0.9 * sum(samples.values())" &&
		holds "sum(n for s, n in samples.items() if s in ('$3', '$4') or 'main' in s or 'progress' in s) > 0.95 * sum(samples.values())" ||
		why+=" samples: $(ask 'samples');"
	holds 'visits("done") > 50' || why+=" visits: $(ask 'visits("done")');"
	verdict "$1" "$why" err
}

stages 'C++20: lines' stages.cpp stages::progress g++ -std=c++20 -O2 -g -pthread -o stages "$examples/stages.cpp"
functions 'C++20: functions' 'stages::progress(unsigned long)' 'decode(unsigned long)' 'filter(unsigned long)'
stages 'Rust: lines' stages.rs stages::progress rustc -O -g -o stages "$examples/stages.rs"
functions 'Rust: functions' stages::progress stages::decode stages::filter
stages 'Go: lines' stages.go 'main.(*output).progress' go build -o stages "$examples/stages.go"
functions 'Go: functions' 'stages:main.(*output).progress' main.decode main.filter
