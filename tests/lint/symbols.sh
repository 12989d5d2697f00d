#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Which folder's library calls which other's: see symbols.py. Also whether that check can fail.
# beside: others
set -uo pipefail
: "${SRC:?the source directory}" "${BUILD:?the build directory}"
scratch=$(mktemp -d) || exit 1
trap 'rm -rf -- "$scratch"' EXIT
export PYTHONPYCACHEPREFIX=$scratch/pycache
status=0

python3 "$SRC/tests/lint/symbols.py" "$BUILD" || status=1

library() { # FOLDER CODE
	mkdir -p "$scratch/user/$1" && cd "$scratch/user/$1" &&
		printf '%s\n' "$2" >a.c && gcc -c a.c && ar -rcs "lib${1##*/}.a" a.o
}
library base 'void run(void); void log_it(void) { run(); }' &&
	library cli/run 'void run(void) {}' || status=1
if python3 "$SRC/tests/lint/symbols.py" "$scratch" >"$scratch/out"; then
	echo 'not ok an arrow upwards is seen: it is not'
	status=1
elif [ "$(grep '^not ok' "$scratch/out")" != 'not ok symbols of base: it must not use cli/run (run)' ]; then
	sed 's/^/# /' "$scratch/out"
	echo 'not ok an arrow upwards is seen: something else is'
	status=1
else
	echo 'ok an arrow upwards is seen'
fi
exit "$status"
