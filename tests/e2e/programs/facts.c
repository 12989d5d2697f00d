// SPDX-License-Identifier: BSD-2-Clause
/* Tells all that a program can see of how it was started: arguments, environment in its order, descriptors, signals,
 * limits, capabilities, and so on. Two runs that print the same were started alike. It computes for a moment first, so
 * that a profiler has samples and pauses. usage: facts [times=N] [ANY]... */
#include "helper.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

extern char **environ;

static KEEP void burn(uint64_t n)
{
	BURN(n); /* LINE:burn */
}

static int compare(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

static void descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;
	int fds[1024], n = 0;

	while (dir && (entry = readdir(dir)) != NULL && n < 1024)
		if (entry->d_name[0] != '.' && atoi(entry->d_name) != dirfd(dir))
			fds[n++] = atoi(entry->d_name);
	qsort(fds, (size_t)n, sizeof(fds[0]), compare);
	for (int i = 0; i < n; i++) {
		struct stat st = {.st_mode = 0};

		(void)fstat(fds[i], &st);
		printf("fd %d: type %o flags %o %o\n", fds[i], st.st_mode & S_IFMT, fcntl(fds[i], F_GETFL),
		       fcntl(fds[i], F_GETFD));
	}
	if (dir)
		(void)closedir(dir);
}

/* Of what the kernel tells, the lines that do not change by themselves from run to run. */
static void status(void)
{
	static const char *const names[] = {"Name",   "Umask",	"Uid",	      "Gid",	 "Groups",    "Threads",    "SigPnd",
					    "ShdPnd", "SigBlk", "SigIgn",     "SigCgt",	 "CapInh",    "CapPrm",	    "CapEff",
					    "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp", "TracerPid", "CoreDumping"};
	FILE *f = fopen("/proc/self/status", "r");
	char line[1024];

	while (f && fgets(line, sizeof(line), f))
		for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
			if (strncmp(line, names[i], strlen(names[i])) == 0 && line[strlen(names[i])] == ':')
				(void)fputs(line, stdout);
	if (f)
		(void)fclose(f);
}

static void limits(void)
{
	for (int i = 0; i < (int)RLIM_NLIMITS; i++) {
		struct rlimit r;

		if (getrlimit((__rlimit_resource_t)i, &r) == 0)
			printf("limit %d: %llu %llu\n", i, (unsigned long long)r.rlim_cur, (unsigned long long)r.rlim_max);
	}
}

static void scheduling(void)
{
	cpu_set_t cpus;
	int death = -1;

	CPU_ZERO(&cpus);
	(void)sched_getaffinity(0, sizeof(cpus), &cpus);
	(void)prctl(PR_GET_PDEATHSIG, &death);
	printf("cpus %d policy %d nice %d slack %d death signal %d dumpable %d\n", CPU_COUNT(&cpus), sched_getscheduler(0),
	       getpriority(PRIO_PROCESS, 0), prctl(PR_GET_TIMERSLACK), death, prctl(PR_GET_DUMPABLE));
}

int main(int argc, char **argv)
{
	char *directory = getcwd(NULL, 0);

	for (int i = argc > 1 && !strncmp(argv[1], "times=", 6) ? atoi(argv[1] + 6) : 200; i; i--) {
		burn(1000000);
		progress();
	}
	for (int i = 0; i < argc; i++)
		printf("argument %s\n", argv[i]);
	for (char **e = environ; *e; e++)
		printf("environment %s\n", *e);
	descriptors();
	status();
	limits();
	scheduling();
	printf("directory %s\n", directory ? directory : "?");
	printf("own session %d, own group %d\n", getsid(0) == getpid(), getpgrp() == getpid());
	printf("marker %s\n", dlsym(RTLD_DEFAULT, "marker_of_the_tests") ? "preloaded" : "absent");
	free(directory);
	return 0;
}
