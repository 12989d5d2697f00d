// SPDX-License-Identifier: BSD-2-Clause
/* cozbpf merge: the runs of several profiles in one file. Needs no privilege. */
#include "base/cleanup.h"
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/open_file.h"
#include "cli/cmd/command.h"
#include "cli/cmd/commands.h"
#include "cli/options/run_option_rows.h"
#include "profile/same.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

struct merge_command {
	bool help;
	const char *output;
	char **inputs;
	int n;
};

static const struct option_row rows[] = {
	{"output", 'o', "FILE", "the new profile (must be said)", option_set_word,
	 offsetof(struct merge_command, output)},
	{"help", 'h', NULL, "this text", option_flag, offsetof(struct merge_command, help)},
	{NULL},
};

static const struct cmd_help help = {
	"Usage: cozbpf merge -o FILE PROFILE...\n"
	"Put the runs of several profiles, of one host or of many, into one file. Each run keeps "
	"its own\n"
	"baseline. Profiles of other builds of the program or with other points are refused.\n",
	rows,
	"\nExample:\n  cozbpf merge -o all.jsonl monday.jsonl tuesday.jsonl",
};

/* All that is in @path, and a line's end behind it. */
static int copy(FILE *out, const char *path)
{
	_cleanup_fclose_ FILE *in = NULL;
	char buffer[1 << 16], last = '\n';
	int fd = open_file(path, NULL);

	if (fd < 0)
		return fd;
	in = or_out_of_memory(fdopen(fd, "r"));
	for (size_t n; (n = fread(buffer, 1, sizeof(buffer), in)) > 0; last = buffer[n - 1])
		if (fwrite(buffer, 1, n, out) != n)
			return -errno;
	if (ferror(in))
		return -EIO;
	return last == '\n' || fputc('\n', out) != EOF ? 0 : -errno;
}

static int write_all(FILE *out, void *arg)
{
	const struct merge_command *c = arg;
	int r = 0;

	for (int i = 0; i < c->n && r == 0; i++)
		r = copy(out, c->inputs[i]);
	return r;
}

/* Lines of JSON, or of Coz's text form? A file that does not begin with a run would be taken for a
 * part of the one before it. Files are read more than once, so that a pipe will not do. */
static int look_at(const char *path, bool *ret_json, struct error *e)
{
	int fd = open_file(path, NULL);
	char head[64] = "";
	ssize_t n = fd < 0 ? 0 : read(fd, head, sizeof(head) - 1);

	if (fd < 0)
		return fail(e, -fd, "cannot read '%s': %s", path,
			    fd == -ENOEXEC ? "it is not a regular file" : strerror(-fd));
	(void)close(fd);
	if (n < 0 || !strstr(head, "startup"))
		return fail(e, EINVAL, "'%s' does not begin with a run", path);
	*ret_json = *head == '{';
	return 0;
}

static int check(const struct merge_command *c, struct error *e)
{
	_cleanup_(profile_free) struct profile first = {0};
	bool json = false, other = false;
	int r = look_at(c->inputs[0], &json, e);

	if (r == 0)
		r = profile_read(&first, c->inputs[0], e);
	for (int i = 1; i < c->n && r == 0; i++) {
		_cleanup_(profile_free) struct profile p = {0};

		r = look_at(c->inputs[i], &other, e);
		if (r == 0)
			r = profile_read(&p, c->inputs[i], e);
		if (r == 0 && other != json)
			r = fail(e, EINVAL, "'%s' and '%s' are of different formats", c->inputs[0],
				 c->inputs[i]);
		if (r == 0)
			r = profile_check_same(&first, c->inputs[0], &p, c->inputs[i], e);
	}
	return r;
}

int cmd_merge(int argc, char **argv)
{
	struct merge_command c = {0};
	struct replace_file f;
	struct error e = {0};
	int first, status = cmd_parse(&help, &c, &c.help, argc, argv, &first);

	if (status >= 0)
		return status;
	if (!c.output)
		return log_error("merge: into which file? Name it with -o");
	if (first >= argc)
		return log_error("merge: which profiles? Usage: cozbpf merge -o FILE PROFILE...");
	c.inputs = argv + first;
	c.n = argc - first;
	f = cmd_file(c.output, false);
	for (int i = 0; i < c.n; i++)
		f.is_private |= replace_file_source_is_private(c.inputs[i]);
	if (replace_file_check(&f, &e) < 0 || check(&c, &e) < 0 ||
	    replace_file(&f, write_all, &c, &e) < 0)
		return log_error("merge: %s", e.text);
	return 0;
}
