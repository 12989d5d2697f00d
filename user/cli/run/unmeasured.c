// SPDX-License-Identifier: BSD-2-Clause
/* What comes before the measured runs of a program that is started again: runs that warm the
 * machine up, and the command that prepares each run. */
#include "cli/run/run.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "base/log.h"
#include "base/utf8.h"
#include "target/launch.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SHOWN 4096 /* bytes of what a command printed: its end */

/* To its end: its exit status, or a negative errno with @e set. */
static int run_to_end(struct run *r, const struct target_spec *what, struct error *e)
{
	struct target_spec spec = *what;
	int err = identity_find(r->options.keep_root, &r->identity, e);

	spec.identity = &r->identity;
	spec.page_fd = spec.slots_fd = -1;
	if (err == 0)
		err = target_spawn(&spec, &r->target, e);
	if (err == 0)
		err = target_exec(r->target, e);
	if (err == 0)
		run_wait(r);
	target_free(r->target);
	r->target = NULL;
	identity_free(&r->identity);
	return err < 0 ? err : target_exit_code(r->wait_status);
}

int run_warm_up(struct run *r)
{
	struct target_spec spec = {.argv = r->options.command, .output_to = r->options.output_to};
	struct error e = {0};
	int status = run_to_end(r, &spec, &e);

	return status < 0 ? log_error("%s", e.text) : status;
}

static void show_end(int fd)
{
	char text[SHOWN + 1], *next = text;
	off_t size = lseek(fd, 0, SEEK_END);
	ssize_t n = size < 0 ? 0 : pread(fd, text, SHOWN, size > SHOWN ? size - SHOWN : 0);
	bool utf8 = utf8_locale();

	text[n > 0 ? n : 0] = '\0';
	for (char *line; (line = strsep(&next, "\n"));) {
		utf8_make_printable(line, utf8);
		if (*line || next)
			(void)fprintf(stderr, "  %s\n", line);
	}
}

int run_prepare(struct run *r)
{
	char shell[] = "/bin/sh", option[] = "-c";
	char *argv[] = {shell, option, (char *)(uintptr_t)r->options.prepare, NULL};
	_cleanup_close_ int kept =
		r->options.verbose ? -1 : memfd_create("cozbpf-prepare", MFD_CLOEXEC);
	struct target_spec spec = {
		.argv = argv, .captures = true, .captured_fd = kept < 0 ? STDERR_FILENO : kept};
	struct error e = {0};
	int status = run_to_end(r, &spec, &e);

	if (status == 0)
		return 0;
	if (status < 0)
		return log_error("--prepare '%s': %s", r->options.prepare, e.text);
	(void)log_error("--prepare '%s' failed: exit status %d; add '|| true' if that does not "
			"matter",
			r->options.prepare, status);
	if (kept >= 0)
		show_end(kept);
	return EXIT_OURS;
}
