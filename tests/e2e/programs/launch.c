// SPDX-License-Identifier: BSD-2-Clause
/* Computes for a while in two threads, so that samples are taken and pauses owed, and then becomes another program: the
 * next image must neither suffer from what was owed to the first nor find anything of it. usage: launch [COMMAND
 * [ARGUMENT]...]; with "-" copies its input to its output instead, without an argument it ends at once. */
#include "helper.h"

static KEEP void burn(uint64_t n)
{
	BURN(n); /* LINE:burn */
}

static void *burner(void *arg)
{
	for (;;)
		burn(100000);
	return arg;
}

static int copy(void)
{
	char buffer[4096];
	ssize_t n;

	while ((n = read(STDIN_FILENO, buffer, sizeof(buffer))) > 0) {
		for (ssize_t at = 0, m; at < n; at += m) {
			m = write(STDOUT_FILENO, buffer + at, (size_t)(n - at));
			if (m < 0)
				return 2;
		}
		burn(100000);
	}
	return n < 0 ? 2 : 0;
}

int main(int argc, char **argv)
{
	pthread_t t;

	if (argc < 2)
		return 0;
	start_thread(&t, burner, NULL);
	for (int i = 0; i < 1000; i++) {
		burn(100000);
		progress();
	}
	if (strcmp(argv[1], "-") == 0)
		return copy();
	(void)execvp(argv[1], argv + 1);
	perror(argv[1]);
	return 127;
}
