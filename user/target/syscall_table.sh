#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Prints SYSCALL(name, number) for each system call that the headers of the compiler "$@" know.
set -eu
echo '#include <sys/syscall.h>' | "$@" -E -dM - | sed -n 's/^#define __NR_\([a-z][a-z0-9_]*\) \([0-9][0-9]*\)$/SYSCALL(\1, \2)/p' | sort
