/* SPDX-License-Identifier: BSD-2-Clause */
/* Commands to be copied into a shell. */
#pragma once

#include <stdio.h>

/* Writes a space and @word, as a shell reads it. */
void shell_put(FILE *f, const char *word);
