// SPDX-License-Identifier: BSD-2-Clause
#include "cli/cmd/command.h"

#include "base/error.h"
#include "base/log.h"
#include "base/utf8.h"
#include "cli/options/run_options.h"
#include "report/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define DEFAULT_WIDTH 100

int cmd_parse(const struct cmd_help *h, void *target, const bool *help, int argc, char **argv,
	      int *ret_first)
{
	struct error e = {0};

	if (options_parse(h->rows, target, argc, argv, ret_first, &e) < 0)
		return log_error("%s: %s", argv[0], e.text);
	if (!*help)
		return -1;
	(void)puts(h->usage);
	options_help(stdout, h->rows);
	(void)puts(h->example);
	return 0;
}

void cmd_say(char *text)
{
	int width = terminal_width(STDOUT_FILENO);

	utf8_wrap(stdout, text, width > 0 ? (size_t)width : DEFAULT_WIDTH, 0, 2);
	(void)putchar('\n');
	free(text);
}

struct replace_file cmd_file(const char *path, bool is_private)
{
	return (struct replace_file){
		.path = path, .uid = (uid_t)-1, .gid = (gid_t)-1, .is_private = is_private};
}
