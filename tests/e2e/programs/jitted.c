// SPDX-License-Identifier: BSD-2-Clause
/* Makes its own code, as a JIT compiler does: rounds of `slow`, `quick`, which takes half as long, and progress(). After a second
 * another function, in memory that is new then, takes the place of quick. What it has made it writes into /tmp/perf-PID.map, or what
 * @MAP says. usage: jitted SECONDS MAP
 *
 * MAP: map, none; late: of what is there by the third second; fifo, link: no regular file, but a name for one; long: behind forty
 * megabytes of others; forged: with names that would steer a terminal, and lines that make no sense. Its directory is another one then.
 */
#include "helper.h"

#include <stdbool.h>
#include <sys/mman.h>
#include <sys/stat.h>

typedef void function(unsigned int n);

static char path[80];

/* Its line has the samples of what has no name. */
static KEEP void call(function *f, unsigned int n)
{
	f(n); /* LINE:call */
	__asm__ volatile("");
}

/* push %rbp; mov %rsp, %rbp; mov %edi, %ecx; 1: dec %ecx; jnz 1b; pop %rbp; ret */
static const unsigned char loop[] = {0x55, 0x48, 0x89, 0xe5, 0x89, 0xf9, 0xff, 0xc9, 0x75, 0xfc, 0x5d, 0xc3};

static unsigned char *new_memory(void)
{
	unsigned char *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		exit(3);
	return p;
}

static function *make(unsigned char *at)
{
	memcpy(at, loop, sizeof(loop));
	return (function *)(uintptr_t)at;
}

static void tell(function *f, const char *name)
{
	FILE *map = fopen(path, "a");

	if (!map)
		exit(4);
	fprintf(map, "%lx %zx %s\n", (unsigned long)(uintptr_t)f, sizeof(loop), name);
	fclose(map);
}

static void fill(void)
{
	FILE *map = fopen(path, "w");

	if (!map)
		exit(4);
	for (unsigned int i = 0; i < 1000000; i++)
		fprintf(map, "%x 8 a function that is somewhere else %u\n", 0x10000 + 16 * i, i);
	fclose(map);
}

static void prepare(const char *kind)
{
	char other[sizeof(path)];

	snprintf(other, sizeof(other), "/tmp/perf-%d.map.other", (int)getpid());
	if (!strcmp(kind, "fifo") && mkfifo(path, 0666) != 0)
		exit(5);
	if (!strcmp(kind, "link") && symlink(other, path) != 0)
		exit(5);
	if (!strcmp(kind, "link") || !strcmp(kind, "long"))
		memcpy(path, other, sizeof(path));
	if (!strcmp(kind, "long"))
		fill();
}

/* A long one is there all at once: it is read too seldom to wait for the rest. */
static void finish(void)
{
	char whole[sizeof(path)];

	snprintf(whole, sizeof(whole), "/tmp/perf-%d.map", (int)getpid());
	if (rename(path, whole) != 0)
		exit(7);
	memcpy(path, whole, sizeof(path));
}

int main(int argc, char **argv)
{
	uint64_t begin = now_ns(), length = argc > 1 ? (uint64_t)(atof(argv[1]) * 1e9) : 0;
	const char *kind = argc > 2 ? argv[2] : "none";
	bool tells = strcmp(kind, "none") && strcmp(kind, "fifo"), forged = !strcmp(kind, "forged"), late = !strcmp(kind, "late");
	unsigned char *memory = new_memory();
	function *slow = make(memory), *quick = make(memory + 0x100), *later = NULL;

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	prepare(kind);
	if (chdir("/") != 0)
		return 6;
	if (tells && !late) {
		tell(slow, forged ? "JS:*slow\033[31m\a\t/srv/a.js:1:1" : "JS:*slow /srv/a.js:1:1");
		tell(quick, forged ? "quick [disk]\nfffffffffffffff0 ffffffffffffffff x\n\n-1 -1 -1\nx" : "JS:~quick /srv/a.js:9:1");
	}
	if (!strcmp(kind, "long"))
		finish();
	for (uint64_t now; (now = now_ns()) - begin < length;) {
		call(slow, 2000000);
		call(later ? later : quick, 1000000);
		progress();
		if (!later && now - begin > 1000000000U) {
			later = make(new_memory());
			if (tells && !late)
				tell(later, "JS:^later /srv/a.js:20:1");
		}
		if (late && now - begin > 3000000000U) {
			late = false;
			tell(slow, "slow");
			tell(later, "later");
		}
	}
	unlink(path);
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	unlink(path);
	return 0;
}
