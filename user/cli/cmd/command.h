/* SPDX-License-Identifier: BSD-2-Clause */
/* What commands share. */
#pragma once

#include "base/replace_file.h"
#include "cli/options/options.h"

/* What --help of a command prints: its usage and what it does, its options, and an example. */
struct cmd_help {
	const char *usage;
	const struct option_row *rows;
	const char *example;
};

/* Reads the options, as options_parse does. *@help is where --help is noted. The exit status if
 * that was asked for, or after one line on stderr if something is wrong; negative: there is
 * something to do. */
int cmd_parse(const struct cmd_help *h, void *target, const bool *help, int argc, char **argv,
	      int *ret_first);

/* Prints a line on standard output, which goes on in others where the terminal has no room for it.
 * Frees @text. */
void cmd_say(char *text);

/* A new file of the user that runs the command, which replaces none. */
struct replace_file cmd_file(const char *path, bool is_private);
