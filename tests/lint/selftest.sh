#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Can every check fail? Makes a small tree that passes, then copies of it with one violation each, and sees that just the one check
# that it is meant for catches it.
# beside: others
set -uo pipefail

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
scratch=$(mktemp -d) || exit 1
trap 'rm -rf -- "$scratch"' EXIT
export LC_ALL=C PYTHONPYCACHEPREFIX=$scratch/pycache
cases=0
failures=0
spdx='/* SPDX-License-Identifier: BSD-2-Clause */'

# put PATH LINE...: a file with an SPDX line and these lines.
put() {
	mkdir -p -- "$(dirname -- "$1")"
	printf '%s\n' "$spdx" "${@:2}" >"$1"
}

make_good_tree() {
	local p
	mkdir -p "$1" && cd -- "$1" || exit 1
	for p in base profile analysis report program/{elf,dwarf,decoder,code} target target/shim \
		experiment experiment/session cli/cmd; do
		put "user/$p/${p##*/}.h" '#include <stdint.h>'
	done
	put user/base/base.c '#include "base/base.h"' '#include <stdio.h>'
	put user/profile/profile.c '#include "profile/profile.h"' '#include "base/base.h"'
	put user/analysis/analysis.c '#include "profile/profile.h"' '#include "base/base.h"'
	put user/report/report.c '#include "analysis/analysis.h"' '#include <libsmartcols/libsmartcols.h>'
	put user/program/elf/elf.c '#include <libelf.h>' '#include "base/base.h"'
	put user/program/dwarf/dwarf.c '#include <libdwarf/libdwarf.h>' '#include "program/elf/elf.h"'
	put user/target/target.c '#include "shared/shim_abi.h"' '#include "base/base.h"'
	put user/kernel/backend.h
	put user/experiment/experiment.c '#include "base/base.h"' '#include "profile/profile.h"'
	put user/experiment/session/session.c '#include <bpf/libbpf.h>' '#include "cozbpf.skel.h"' '#include "kernel/backend.h"' \
		'#include "target/shim/image.h"' '#include "shared/counters.def"' '#include "target/target.h"' '#include "program/elf/elf.h"'
	put user/cli/cmd/cmd.c '#include "report/report.h"' '#include "experiment/session/session.h"' '#include "program/elf/elf.h"' \
		'/* #include "bpf/maps.h" */'
	put user/target/shim/image.h
	put user/target/shim/shim.c '#include "shim.h"' '#include "shared/shim_abi.h"' '#include <pthread.h>'
	put user/target/shim/image.S '#include IMAGE_HEADER'
	cp -- "$here/../../user/README.md" user/README.md
	put shared/shim_abi.h
	put shared/abi.h '#include "shared/shim_abi.h"'
	put shared/counters.def 'COUNTER(lost_hit, "a hit, lost")' 'COUNTER(no_slot, "no slot")'
	put bpf/maps.h '#include "shared/abi.h"'
	put bpf/sample.bpf.c '#include "bpf/maps.h"' '#include <bpf/bpf_helpers.h>' 'int f = COUNTER_lost_hit + COUNTER_no_slot;'
	printf '| rule | event | function |\n|---|---|---|\n| R1 | a hit | `hit` |\n| R2 | a debt | none |\n' >bpf/README.md
	put bpf/rules.h '/* R1, and R2. */' 'int hit(int R7);' 'const char *of_verifier = "R9 is unbounded";'
	put tests/unit/some_test.c '#include "program/elf/elf.h"' '#include <bpf/libbpf.h>' '#include <libdwarf/dwarf.h>'
	printf '#!/bin/bash\necho "$1"\n' >tests/run
	printf 'x = 1\n' >tests/some.py
	put examples/barrier/barrier.c
	put tools/bench.c
	echo "project" >meson.build
	printf 'cozbpf: /tmp/x /proc/1/root/etc https://example.org/ mktemp /tmp/a.XXXXXX\n' >README.md
	touch LICENSE meson_options.txt .gitignore
}

# The names of the checks that failed, in one line.
caught() {
	sed -n 's/^not ok \([a-z_]*\):.*/\1/p' "$scratch/out" | sort -u | tr '\n' ' '
}

# sees EXPECTED WHAT FUNCTION [ARG]...: FUNCTION spoils a good tree; EXPECTED is the check that must fail, or "" for none. Scripts, whose checks take
# long, are checked where the case is about them or nothing must fail.
sees() {
	local tree=$scratch/case expected=$1 what=$2 status=0 found quick=quick
	cases=$((cases + 1))
	rm -rf -- "$tree"
	cp -a -- "$scratch/good" "$tree"
	if ! (cd -- "$tree" && "${@:3}"); then
		echo "not ok $what: could not make the case"
		failures=$((failures + 1))
		return
	fi
	[[ -n $expected && $expected != *shell* && $expected != *python* ]] || quick=''
	"$here/run.sh" "$tree" "$quick" >"$scratch/out" 2>&1 || status=$?
	found=$(caught)
	if [[ ${found% } == "$expected" && $status -eq $([[ -z $expected ]]; echo $?) ]]; then
		echo "ok $what"
		return
	fi
	echo "not ok $what: expected '$expected', caught '${found% }', exit status $status"
	sed 's/^/# /' "$scratch/out"
	failures=$((failures + 1))
}

add() { # add PATH LINE...
	printf '%s\n' "${@:2}" >>"$1"
}

edge() { # edge EXPECTED FILE INCLUDE
	sees "$1" "$2 includes $3" add "$2" "#include $3"
}

long_file() {
	seq 700 | sed 's|.*|/* & */|' >>user/base/base.c
}

long_readme() {
	seq 160 >>README.md
}

with_nul() {
	printf 'a\0b' >tests/data
}

linked() {
	ln -s /etc/hostname tests/hostname
}

own_path() {
	add tests/some.py "p = '$PWD'"
}

in_git() {
	git init -q . && printf '/build*/\n*.log\n' >.gitignore && add "$1" "# TO""DO"
}

(make_good_tree "$scratch/good") || exit 1
sees "" "a good tree passes" true
sees "" "build directories are left alone" put build-x/made.skel.h
sees "counters_defined files_found readme_agrees rules_listed top_level" "an empty tree" find . -mindepth 1 -delete

edge layering user/base/base.c '"profile/profile.h"'
edge layering user/profile/profile.h '"analysis/analysis.h"'
edge layering user/analysis/analysis.c '"experiment/session/session.h"'
edge layering user/analysis/analysis.c '"program/elf/elf.h"'
edge layering user/report/report.c '"target/target.h"'
edge layering user/report/report.c '"cli/cmd/cmd.h"'
edge layering user/profile/profile.c '"../program/elf/elf.h"'
edge layering user/profile/profile.c '<program/elf/elf.h>'
edge layering user/profile/profile.c '"user/program/elf/elf.h"'
edge layering user/program/elf/elf.c '"target/target.h"'
edge layering user/target/target.c '"experiment/session/session.h"'
edge layering user/target/target.c '"shared/abi.h"'
edge layering user/program/code/code.h '"experiment/session/session.h"'
edge layering user/experiment/session/session.c '"experiment/experiment.h"'
edge layering user/experiment/session/session.c '"target/shim/shim.h"'
edge layering user/experiment/session/session.c '"bpf/maps.h"'
edge layering user/experiment/experiment.c '"target/target.h"'
edge layering user/experiment/experiment.c '"experiment/session/session.h"'
edge layering user/program/elf/elf.c '"program/decoder/decoder.h"'
edge layering user/program/dwarf/dwarf.c '"target/target.h"'
edge layering user/target/shim/shim.c '"base/base.h"'
edge layering user/target/shim/shim.c '"shared/abi.h"'
edge layering bpf/maps.h '"base/base.h"'
edge layering shared/abi.h '"base/base.h"'
edge layering user/cli/cmd/cmd.c '"program/elf/no_such_file.h"'
edge layering user/cli/cmd/cmd.c HEADER_BY_MACRO
sees layering "a package without a rule" put user/extra/extra.c
sees readme_agrees "a folder that the page does not have" sed -i '/^| `program\/dwarf/d' user/README.md
sees readme_agrees "a folder that has no rule" sed -i 's/^| `report\/export/| `report\/other/' user/README.md
sees readme_agrees "rooms in the wrong order" sed -i '/^| `base\/` /{h;d};/^| `report\/` /G' user/README.md
edge skeletons_in_bpf_side_only user/cli/cmd/cmd.c '"cozbpf.skel.h"'
edge skeletons_in_bpf_side_only tools/bench.c '"probe.skel.h"'
edge libdwarf_in_dwarf_only user/experiment/session/session.c '<libdwarf/libdwarf.h>'
edge libdwarf_in_dwarf_only tools/bench.c '<dwarf.h>'
edge libbpf_in_bpf_side_only user/cli/cmd/cmd.c '<bpf/libbpf.h>'
edge libbpf_in_bpf_side_only user/experiment/experiment.c '<bpf/bpf.h>'
edge bpf_headers bpf/maps.h '<string.h>'
edge bpf_headers bpf/maps.h '<bpf/libbpf.h>'
edge shim_uses_libc_only user/target/shim/shim.c '<libelf.h>'

sees spdx "a C file without SPDX" sed -i 1d user/base/base.c
sees spdx "a header under another licence" sed -i '1s/BSD-2-Clause/MIT/' bpf/maps.h
sees file_length "a long file" long_file
sees readme_length "a long README" long_readme
sees top_level "another directory" put docs/page.md
sees top_level "a missing directory" rm -r tools
sees "" "one more dotfile" add .clang-format x
sees build_paths "a home directory" add README.md "see /""home/somebody/src"
sees build_paths "a build directory" add tests/some.py "p = '/""work/tree'"
sees build_paths "the checkout's own path" own_path
sees package_hosts "a package index" add README.md "https://py""pi.org/simple"
sees package_hosts "a distribution mirror" add tests/run "echo http://deb"".debian"".org/debian"
sees markers "a marker in C" add user/base/base.c "/* FIX""ME: later */"
sees markers "a marker in prose" add README.md "XX""X"
sees generated_files "generated kernel types" put bpf/vmlinux.h
sees generated_files "a skeleton" put user/experiment/session/cozbpf.skel.h
sees binaries "a file with a zero byte" with_nul
sees links "a symbolic link" linked
sees counters_defined "no counters" put shared/counters.def
sees counters_unique "a counter defined twice" add shared/counters.def 'COUNTER(no_slot, "again")'
sees counters_used "a counter that nothing counts" add shared/counters.def 'COUNTER(slot, "unused")'
sees counters_used "a counter in a comment only" sed -i 's|COUNTER_no_slot|/* COUNTER_no_slot */ 0|' bpf/sample.bpf.c
sees rules_listed "a rule that no page states" add user/base/base.c '/* R1 but not' ' * R10 */'
sees rules_listed "no page of rules" rm bpf/README.md
sees rules_functions "a rule's function that is gone" sed -i 's/int hit/int hits/' bpf/rules.h
sees python_syntax "python that does not compile" add tests/some.py 'def f(:'
if command -v shellcheck >/dev/null; then
	sees shellcheck "what shellcheck warns of" add tests/run 'for i in "$@"; do echo x; done; cd $NOWHERE; unused=1'
	sees "shell_syntax shellcheck" "shell that does not parse" add tests/run 'if then'
else
	sees shell_syntax "shell that does not parse" add tests/run 'if then'
fi
if command -v git >/dev/null; then
	sees markers "a file that git does not track yet" in_git tests/some.py
	sees "" "a file that git ignores" in_git tests/some.log
fi

echo "$((cases - failures)) of $cases passed"
[[ $failures -eq 0 ]]
