#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# A Go program that was linked without symbols and debug information is as good as one with them: Go's own table has its functions, their lines, and
# what was inlined where.
# needs: root btf python3 go
# beside: others
# shellcheck disable=SC2154 # what helpers.sh sets
set -uo pipefail
# shellcheck source=tests/e2e/helpers.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/helpers.sh"
cd "$tmp" || exit 1

# As `go build` is used, but for its caches.
export GOCACHE=$tmp/go-cache GOPATH=$tmp/go GO111MODULE=off GOFLAGS=
source=$here/programs/inlined.go

mark() { # MARK
	printf 'inlined.go:%s' "$(grep -n "// LINE:$1\$" "$source" | cut -d : -f 1)"
}

# The same names and lines, and for each address the same owner and the same calls out of inlined copies, as by the debug information of the same
# code.
same() { # NAME OPTION...
	local name=$1 why='' what
	shift
	rm -f ./with ./without
	if ! go build "$@" -o ./with "$source" 2>err || ! go build "$@" -ldflags='-s -w' -o ./without "$source" 2>>err; then
		verdict "$name" ' it does not compile;' err
		return
	fi
	! readelf -SW ./without | grep -qE '\.(symtab|z?debug_)' || why+=' it is not stripped;'
	for what in functions lines; do
		"$COZBPF" list "$what" ./with >"with.$what" 2>>err && "$COZBPF" list "$what" ./without >"without.$what" 2>>err || why+=" no list of $what;"
		# In symbols alone are the types of an instance of a generic function, and names of borders.
		sed "/^#\|^runtime\.etext/d; s,\[.*\]\$,[...]," "with.$what" | sort -u >wanted
		grep -v '^#' "without.$what" | sort -u | diff wanted - >"differ.$what" || why+=" other $what;"
		[ -s wanted ] || why+=" no $what;"
	done
	"$programs/line_owners" "$tmp/with" >with.owners 2>>err && "$programs/line_owners" "$tmp/without" >without.owners 2>>err || why+=' no owners;'
	diff with.owners without.owners >differ.owners || why+=" $(grep -c '^>' differ.owners) of $(wc -l <with.owners) addresses have others;"
	[ "$(wc -l <with.owners)" -gt 300 ] || why+=' too few addresses;'
	grep -q "	.*$(mark mix)	.*$(mark twice)	.*$(mark first)" without.owners || why+=' no chain of calls;'
	verdict "$name" "$why" err differ.functions differ.lines differ.owners
}
same 'a static program'
same 'one that is loaded anywhere' -buildmode=pie

# Points: each is passed once a round. As a target, a line of an inlined function.
why=
go build -ldflags='-s -w' -o ./program "$source" 2>err || why+=' it does not compile;'
profiled --what on-cpu --experiment 200 -p 'round=main.(*state).round' -p "work=$(mark work)" -p "begin=$(mark begin)" \
	-l "$(mark mix)" --speedups 0,50 -- ./program "$(lasting 3)" || why+=' it failed;'
holds "visits('round') > 100 and all(abs(visits(x) - visits('round')) <= len(experiments) for x in ('work', 'begin'))" ||
	why+=" visits: $(ask '[visits(x) for x in ("round", "work", "begin")]');"
holds "len(experiments) > 3 and all(x['selected'].endswith('/$(mark mix)') for x in experiments) and total('hits') > 50" ||
	why+=" targets: $(ask 'experiments');"
verdict 'points and a target' "$why" err

# Without options: lines, all of them the program's own.
why=
profiled --what on-cpu --experiment 200 -p 'main.(*state).round' -- ./program "$(lasting 3)" || why+=' it failed;'
holds "runs[0]['granularity'] == 'line' and all('/inlined.go:' in s for s in samples)" || why+=" samples: $(ask 'samples');"
holds "sum(n for s, n in samples.items() if s.endswith('/$(mark mix)')) > 0.1 * sum(samples.values())" || why+=" samples: $(ask 'samples');"
verdict 'a profile by lines' "$why" err

why=
profiled --what on-cpu --experiment 200 --granularity function -p 'main.(*state).round' -l 'main.(*state).work' -- ./program "$(lasting 3)" ||
	why+=' it failed;'
holds "all(x['selected'] == 'main.(*state).work' for x in experiments) and total('hits') > 50" || why+=" targets: $(ask 'experiments');"
holds "samples['main.(*state).work'] > 0.3 * sum(samples.values())" || why+=" samples: $(ask 'samples');"
verdict 'a profile by functions' "$why" err
