// SPDX-License-Identifier: BSD-2-Clause
#include "cli/run/report_choice.h"

#include "base/error.h"
#include "report/report.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

struct replace_file report_choice_html(const char *path, bool is_private)
{
	return (struct replace_file){.path = path,
				     .begins = REPORT_HTML_BEGINS,
				     .kind = "such a report",
				     .uid = (uid_t)-1,
				     .gid = (gid_t)-1,
				     .is_private = is_private};
}

static struct replace_file html_file(const struct report_choice *c)
{
	struct replace_file f = report_choice_html(c->html, c->is_private);

	f.uid = c->uid;
	f.gid = c->gid;
	return f;
}

/* --report, if it names a file: whatever that was is replaced, as by a shell. */
static struct replace_file text_file(const struct report_choice *c)
{
	return (struct replace_file){.path = c->file && strcmp(c->file, "-") != 0 ? c->file : NULL,
				     .begins = "",
				     .uid = c->uid,
				     .gid = c->gid,
				     .is_private = c->is_private};
}

int report_choice_check(const struct report_choice *c, struct error *e)
{
	struct replace_file html = html_file(c), text = text_file(c);
	int r = c->html ? replace_file_check(&html, e) : 0;

	return r == 0 && text.path ? replace_file_check(&text, e) : r;
}

struct told {
	const struct report_choice *c;
	const struct profile *p;
	const struct analysis *a;
	const struct report_hints *h;
};

int report_choice_fd(const struct report_choice *c)
{
	if (c->file && strcmp(c->file, "-") != 0)
		return -1;
	return c->on_stderr && !c->file ? STDERR_FILENO : STDOUT_FILENO;
}

static int write_html(FILE *out, void *arg)
{
	const struct told *t = arg;

	return report_html(out, t->p, t->a, t->h);
}

static int write_form(FILE *out, void *arg)
{
	const struct told *t = arg;
	const struct report_choice *c = t->c;
	int fd = report_choice_fd(c);
	struct report_options o = {
		.color = color_wanted(c->color, fd),
		.width = c->width ? (int)c->width : terminal_width(fd),
		.top = c->top,
		.inlined = c->inlined,
		.verbose = c->verbose,
		.all = c->all,
		.curves = c->no_curves ? (size_t)-1 : 0,
	};

	switch (c->form) {
	case REPORT_JSON:
		report_json(out, t->p, t->a);
		break;
	case REPORT_CSV:
		return report_csv(out, t->p, t->a);
	case REPORT_MARKDOWN:
		return report_markdown(out, t->p, t->a);
	case REPORT_TEXT:
		report_print(out, t->p, t->a, &o, t->h);
		break;
	}
	return 0;
}

/* By a stream of its own, since that of standard error has no buffer. */
static int print_to(int fd, int (*fill)(FILE *out, void *arg), void *arg, struct error *e)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1), r;
	FILE *out = copy < 0 ? NULL : fdopen(copy, "w");

	if (out) {
		r = fill(out, arg);
		errno = EIO; /* of what was not written before */
		if (r == 0 && (fflush(out) || ferror(out)))
			r = -errno;
		(void)fclose(out);
	} else {
		r = -EBADF; /* it is closed, and another file is open for reading there */
		if (copy >= 0)
			(void)close(copy);
	}
	return r < 0 ? fail(e, -r, "cannot write the report to standard %s: %s",
			    fd == STDERR_FILENO ? "error" : "output", strerror(-r))
		     : 0;
}

int report_choice_write(const struct report_choice *c, int (*fill)(FILE *out, void *arg), void *arg,
			struct error *e)
{
	struct replace_file text = text_file(c);

	return text.path ? replace_file(&text, fill, arg, e)
			 : print_to(report_choice_fd(c), fill, arg, e);
}

int report_choice_print(const struct report_choice *c, const struct profile *p,
			const struct analysis *a, const struct report_hints *h, struct error *e)
{
	struct told t = {c, p, a, h};
	struct replace_file html = html_file(c);
	int r = report_choice_write(c, write_form, &t, e);

	return r == 0 && c->html ? replace_file(&html, write_html, &t, e) : r;
}
