#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The rows of our call frame reader against readelf's, on the libraries that programs run in and on a very large one.
# Long: left out where few tests run.
# needs: python3 readelf ldconfig
# beside: others
# shellcheck disable=SC2154 # what helpers.sh sets
set -uo pipefail
directory=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd) || exit 1
# shellcheck source=tests/e2e/helpers.sh
source "$directory/helpers.sh"

loaded() { # NAME: the file that the dynamic linker would take
	ldconfig -p 2>/dev/null | sed -n "s|^[[:space:]]*$1 (.*x86-64.*) => ||p" | head -n 1
}

compare() { # NAME FILE [LEAST-BYTES]
	local name=$1 file=$2 why=
	if [ ! -e "$file" ]; then
		printf 'skip rows of %s: not installed\n' "$name"
		return
	fi
	python3 "$here/cfi_compare.py" "$programs/cfi_rows" "$(realpath "$file")" "${@:3}" >"$tmp/cfi.out" 2>&1 ||
		why=$(tail -n 1 "$tmp/cfi.out")
	verdict "rows of $name equal readelf's frames" "$why" "$tmp/cfi.out"
	sed 's/^/# /' "$tmp/cfi.out"
}

compare ld.so /lib64/ld-linux-x86-64.so.2
compare libc "$(loaded libc.so.6)"
compare libm "$(loaded libm.so.6)"
compare libstdc++ "$(loaded 'libstdc++.so.6')"
compare python3 "$(python3 -c 'import os, sys, sysconfig as c
library = os.path.join(c.get_config_var("LIBDIR"), c.get_config_var("LDLIBRARY"))
print(library if ".so" in library and os.path.exists(library) else sys.executable)')"
compare 'a static executable' "$programs/ending_static"
# clang, which builds the BPF programs, brings it. Its name has clang's version in it.
compare 'a library of 5 MB of frames' "$(loaded 'libLLVM[^ ]*')" 5000000
