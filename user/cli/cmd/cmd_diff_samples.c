// SPDX-License-Identifier: BSD-2-Clause
/* cozbpf diff --db: two times, or two builds, in a database of `cozbpf collect`. */
#include "cli/cmd/cmd_database.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "base/log.h"
#include "program/decoder/decoder.h"
#include "cli/options/quantities.h"
#include "report/shares.h"

#include <errno.h>
#include <string.h>

#define BUILD "build:"
#define ROWS 30

/* What one side is: "build:HEX", or a time. */
static int choose(const char *word, enum shares_by by, struct shares_choice *ret, struct error *e)
{
	*ret = (struct shares_choice){.by = by, .to_s = UINT64_MAX};
	if (strncmp(word, BUILD, strlen(BUILD)) != 0)
		return option_range(NULL, word, &ret->from_s, &ret->to_s, e);
	ret->build_id = word + strlen(BUILD);
	if (!*ret->build_id || strspn(ret->build_id, "0123456789abcdef") != strlen(ret->build_id))
		return fail(e, EINVAL, "'%s': a build id is written in lower-case hexadecimal",
			    word);
	return 0;
}

int cmd_diff_samples(const char *path, enum shares_by by, bool json, int width, char **words)
{
	_cleanup_(shares_free) struct shares before = {0}, after = {0};
	struct shares_table x = {&before, by, path, ROWS, width},
			    y = {&after, by, path, ROWS, width};
	struct shares_choice first, second;
	struct database *d = NULL;
	struct error e = {0};
	char name[] = "diff";
	int r = choose(words[0], by, &first, &e);

	if (r == 0)
		r = choose(words[1], by, &second, &e);
	if (r == 0)
		r = database_open(path, cmd_left_out, name, &d, &e);
	if (r == 0)
		r = decoder_start(NULL, &e);
	if (r == 0)
		r = shares_of(d, &first, &before, &e);
	if (r == 0)
		r = shares_of(d, &second, &after, &e);
	decoder_stop();
	database_close(d);
	if (r < 0)
		return log_error("diff: %s", e.text);
	for (int i = 0; i < 2; i++)
		if (!(i ? &after : &before)->samples)
			return log_error("diff: '%s' has no samples of '%s'", path, words[i]);
	if (json)
		shares_json_diff(stdout, &x, &y);
	else
		shares_print_diff(stdout, &x, &y);
	return 0;
}
