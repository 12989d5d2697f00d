// SPDX-License-Identifier: BSD-2-Clause
/* posix_spawn takes the library along as the exec functions do (exec.c). The program's threads go
 * on meanwhile, so what is handed over must not be seen by other children: the descriptors close on
 * exec, and the child alone makes copies of them, by file actions before those that the program
 * gave. */
#include "handover.h"

#include <alloca.h>
#include <fcntl.h>
#include <linux/limits.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>

#define MAX_ACTIONS 1024
#define MAX_ACTION 64  /* bytes */
#define MAX_STACK 1024 /* bytes: a thread's stack may be PTHREAD_STACK_MIN */
#define MOST_OURS (2 * SHIM_FDS)

typedef int spawn_function(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
			   const posix_spawnattr_t *attr, char *const argv[], char *const envp[]);

/* libc's own functions that add an action. */
struct adders {
	int (*dup2)(posix_spawn_file_actions_t *actions, int from, int to);
	int (*close)(posix_spawn_file_actions_t *actions, int fd);
	int (*closefrom)(posix_spawn_file_actions_t *actions,
			 int from); /* since glibc 2.34; NULL */
};

static bool find_adders(struct adders *ret)
{
#define FIND(name, end) \
	(__typeof__(ret->name))own_function(SHIM_LIBC, "posix_spawn_file_actions_add" #name end)
	ret->dup2 = FIND(dup2, "");
	ret->close = FIND(close, "");
	ret->closefrom = FIND(closefrom, "_np");
#undef FIND
	return ret->dup2 && ret->close;
}

/* Room for @n actions in @memory. The adders allocate none while there is some left: the allocator
 * may be the program's own. */
static posix_spawn_file_actions_t actions_in(void *memory, int n)
{
	return (posix_spawn_file_actions_t){.__allocated = n, .__actions = memory};
}

/* What the C library does not say of its actions. */
struct layout {
	size_t size;
	bool has_closefrom; /* since glibc 2.34: closes all from some number on, */
	int closefrom;	    /* which its first word says */
};

/* Made ones show it: the size is the distance at which the second one's numbers stand behind the
 * first one's. */
static bool measure(const struct adders *add, struct layout *ret)
{
	static const int one[2] = {101, 102}, two[2] = {103, 104};
	char bytes[4 * MAX_ACTION] __attribute__((aligned(16))) = {0};
	posix_spawn_file_actions_t a = actions_in(bytes, 3);
	size_t at, n;
	bool ok;

	*ret = (struct layout){.has_closefrom = add->closefrom != NULL};
	ok = add->dup2(&a, one[0], one[1]) == 0 && add->dup2(&a, two[0], two[1]) == 0 &&
	     (!add->closefrom || add->closefrom(&a, 3) == 0);
	for (at = 0; ok && at < MAX_ACTION && memcmp(bytes + at, one, sizeof(one));
	     at += sizeof(int))
		;
	for (n = sizeof(int); ok && n <= MAX_ACTION && memcmp(bytes + at + n, two, sizeof(two));
	     n += sizeof(int))
		;
	ok = ok && at < MAX_ACTION && n <= MAX_ACTION;
	if (ok && add->closefrom)
		memcpy(&ret->closefrom, bytes + 2 * n, sizeof(int));
	ret->size = n;
	return ok;
}

/* Would one of the program's actions touch the numbers from @first on? Of an action only its words
 * are known: one that happens to have such a number is taken for one that does. */
static bool touches(const posix_spawn_file_actions_t *theirs, const struct layout *l, int first)
{
	for (size_t i = 0; i < (size_t)theirs->__used; i++)
		for (size_t at = 0; at < l->size; at += sizeof(int)) {
			int word;

			memcpy(&word, (const char *)theirs->__actions + i * l->size + at,
			       sizeof(word));
			if ((word >= first && word < first + SHIM_FDS) ||
			    (l->has_closefrom && !at && word == l->closefrom))
				return true;
		}
	return false;
}

/* Bytes of memory that combine takes. */
static size_t room_for(const posix_spawn_file_actions_t *theirs)
{
	return ((theirs ? (size_t)theirs->__used : 0) + MOST_OURS) * MAX_ACTION;
}

/* Ours, then theirs, in @memory; paths in theirs are theirs. Ours make @fds @first and so on, if
 * that is not negative, and close those that other threads hold for their shells. */
static bool combine(const posix_spawn_file_actions_t *theirs, const struct adders *add,
		    const int *fds, int first, void *memory, posix_spawn_file_actions_t *ret)
{
	size_t n = theirs ? (size_t)theirs->__used : 0;
	int shell = shell_open();
	struct layout l;
	bool ok = true;

	if (!measure(add, &l) || (n && first >= 0 && touches(theirs, &l, first)))
		return false;
	*ret = actions_in(memory, (int)n + MOST_OURS);
	for (int i = 0; i < SHIM_FDS && first >= 0; i++)
		ok &= add->dup2(ret, fds[i], first + i) == 0;
	for (int i = 0; i < SHIM_FDS; i++)
		if (handover_has(shell, i))
			ok &= add->close(ret, shell + i) == 0;
	if (ok && n)
		memcpy((char *)memory + (size_t)ret->__used * l.size, theirs->__actions,
		       n * l.size);
	ret->__used += (int)n;
	return ok;
}

static void *map(size_t size)
{
	long p = raw_call(SYS_mmap, NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0);

	return p < 0 && p >= -4095 ? NULL : (void *)p;
}

static int spawn(spawn_function *real, const char *found, pid_t *pid, const char *path,
		 const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attr,
		 char *const argv[], char *const envp[])
{
	static char *const none[] = {NULL};
	posix_spawn_file_actions_t combined;
	int fds[SHIM_FDS], first = -1, r;
	struct shim_environment e;
	struct adders add;
	char *memory = NULL;
	size_t room = 0, vector = 0;
	bool asked, ours;

	if (!real)
		return ENOSYS;
	asked = found && handover_survey(envp ? envp : none, &e) && handover_loads(found, &e) &&
		handover_ask(fds);
	if (asked)
		first = handover_place(fds, false);
	/* Too many to be copied: the child would keep what other threads hold for their shells.
	 * Without the adders it is another libc, whose actions are unlike these. */
	ours = (first >= 0 || shell_open() >= 0) && !shim_filtered && find_adders(&add) &&
	       (!actions || actions->__used <= MAX_ACTIONS);
	if (ours) {
		vector = room_for(actions);
		room = vector;
		if (first >= 0)
			room += (e.n + 2) * sizeof(char *) + shim_preload_room(&e);
		memory = room <= MAX_STACK ? alloca(room) : map(room);
		ours = memory && combine(actions, &add, fds, first, memory, &combined);
	}
	if (ours && first >= 0) {
		char **list = (char **)(void *)(memory + vector);
		char *entry = (char *)(list + e.n + 2);

		shim_preload(&e, first, entry);
		shim_environment_fill(&e, entry, list);
		envp = list;
	}
	r = real(pid, path, ours ? &combined : actions, attr, argv, envp);
	if (memory && room > MAX_STACK)
		(void)raw_call(SYS_munmap, memory, room);
	if (asked)
		handover_close(fds, SHIM_FDS);
	handover_remove(first);
	return r;
}

EXPORT int posix_spawn(pid_t *restrict pid, const char *restrict path,
		       const posix_spawn_file_actions_t *restrict actions,
		       const posix_spawnattr_t *restrict attr, char *const argv[restrict],
		       char *const envp[restrict])
{
	return spawn((spawn_function *)next_function("posix_spawn"), path, pid, path, actions, attr,
		     argv, envp);
}

/* The file that posix_spawnp will find; NULL: none. It looks itself; here it is only seen whether
 * the library would be loaded. */
static const char *search(const char *file, char candidate[PATH_MAX])
{
	const char *at = NULL;

	if (strchr(file, '/'))
		return file;
	while (handover_candidate(&at, file, candidate))
		if (raw_call(SYS_access, candidate, X_OK) == 0)
			return candidate;
	return NULL;
}

EXPORT int posix_spawnp(pid_t *restrict pid, const char *restrict file,
			const posix_spawn_file_actions_t *restrict actions,
			const posix_spawnattr_t *restrict attr, char *const argv[restrict],
			char *const envp[restrict])
{
	char candidate[PATH_MAX];
	const char *found = shim_filtered ? NULL : search(file, candidate);

	return spawn((spawn_function *)next_function("posix_spawnp"), found, pid, file, actions,
		     attr, argv, envp);
}
