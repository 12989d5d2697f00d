// SPDX-License-Identifier: BSD-2-Clause
/* A library to be preloaded, which has functions of the C library's names that return nonsense: the year 2084, an address that nothing is at,
 * success where nothing was done. Whoever calls one of them is found in `interposed_call`. With CLOCKS_ALONE it has those that ask for the time or
 * wait for one, and says nothing: a program can go on with it, as with libfaketime. No header: it would say what types they have. */
#define NULL ((void *)0)

struct pair {
	long seconds, rest;
};

#ifdef CLOCKS_ALONE
#define note(name) ((void)(name))
#else
extern const char *interposed_call;
const char *interposed_call = NULL;

static void note(const char *name)
{
	interposed_call = name;
}
#endif

#define LIE(name, value)           \
	long name(void);           \
	long name(void)            \
	{                          \
		note(#name);       \
		return (long)(value); \
	}

#define LATER 3600000000

int clock_gettime(int clock, struct pair *ret);
int clock_gettime(int clock, struct pair *ret)
{
	/* Goes back as often as forth. */
	static unsigned int calls;

	(void)clock;
	note("clock_gettime");
	*ret = (struct pair){ LATER - (__atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED) & 1), 0 };
	return 0;
}

int gettimeofday(struct pair *ret, void *zone);
int gettimeofday(struct pair *ret, void *zone)
{
	(void)zone;
	note("gettimeofday");
	*ret = (struct pair){ LATER, 0 };
	return 0;
}

LIE(time, LATER)
LIE(nanosleep, 0)
LIE(clock_nanosleep, 0)
LIE(usleep, 0)
LIE(sleep, 0)

#ifndef CLOCKS_ALONE
#define FAILS(name) LIE(name, -1)
#define SUCCEEDS(name) LIE(name, 0)
#define POINTS_NOWHERE(name) LIE(name, 8)

FAILS(poll)
FAILS(select)
SUCCEEDS(sched_yield)
POINTS_NOWHERE(mmap)
POINTS_NOWHERE(mmap64)
SUCCEEDS(munmap)
SUCCEEDS(open)
SUCCEEDS(open64)
SUCCEEDS(openat)
SUCCEEDS(close)
SUCCEEDS(dup)
SUCCEEDS(fcntl)
SUCCEEDS(fcntl64)
LIE(read, 1)
LIE(pread, 1)
LIE(pread64, 1)
SUCCEEDS(lseek)
SUCCEEDS(lseek64)
SUCCEEDS(fstat)
SUCCEEDS(fstat64)
SUCCEEDS(stat)
SUCCEEDS(access)
LIE(fgetxattr, 1)
SUCCEEDS(socket)
SUCCEEDS(connect)
SUCCEEDS(getsockopt)
SUCCEEDS(setsockopt)
LIE(send, 1)
LIE(sendto, 1)
LIE(recv, 1)
LIE(recvmsg, 1)
SUCCEEDS(signal)
SUCCEEDS(sigaction)
SUCCEEDS(sigprocmask)
SUCCEEDS(pthread_sigmask)
SUCCEEDS(sigemptyset)
SUCCEEDS(sigfillset)
SUCCEEDS(sigaddset)
SUCCEEDS(sigdelset)
POINTS_NOWHERE(dlsym)
POINTS_NOWHERE(dlvsym)
SUCCEEDS(dladdr)
SUCCEEDS(dl_iterate_phdr)
POINTS_NOWHERE(getenv)
POINTS_NOWHERE(secure_getenv)
SUCCEEDS(setenv)
SUCCEEDS(unsetenv)
LIE(getpid, 1)
LIE(gettid, 1)
LIE(getuid, 1)
LIE(syscall, 1)
LIE(prctl, 1)
POINTS_NOWHERE(realloc)
POINTS_NOWHERE(memcpy)
SUCCEEDS(memcmp)
POINTS_NOWHERE(memset)
LIE(strlen, 1)
LIE(strnlen, 1)
SUCCEEDS(strcmp)
SUCCEEDS(strncmp)
POINTS_NOWHERE(strchr)
POINTS_NOWHERE(strstr)
LIE(strspn, 1)
LIE(strcspn, 1)
POINTS_NOWHERE(stpcpy)
POINTS_NOWHERE(__errno_location)
SUCCEEDS(posix_spawn_file_actions_init)
SUCCEEDS(posix_spawn_file_actions_destroy)
SUCCEEDS(posix_spawn_file_actions_adddup2)
SUCCEEDS(posix_spawn_file_actions_addclose)
SUCCEEDS(posix_spawn_file_actions_addclosefrom_np)
POINTS_NOWHERE(pthread_self)
SUCCEEDS(pthread_testcancel)
SUCCEEDS(pthread_mutex_trylock)
SUCCEEDS(sem_trywait)
#endif
