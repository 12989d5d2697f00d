// SPDX-License-Identifier: BSD-2-Clause
/* posix_spawn takes the library along as the exec functions do (exec.c). The program's threads go on meanwhile, so what is handed over must
 * not be seen by other children: the descriptors close on exec, and the child alone makes copies of them, by file actions before those
 * that the program gave. */
#include "handover.h"

#include <alloca.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <string.h>
#include <unistd.h>

#define MAX_ACTIONS 1024
#define MAX_ACTION 64 /* bytes */

typedef int spawn_function(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attr, char *const argv[],
			   char *const envp[]);

/* What the C library does not say of its actions. */
struct layout {
	size_t size;
	bool has_closefrom; /* since glibc 2.34: closes all from some number on, */
	int closefrom;	    /* which its first word says */
};

/* Made ones show it: the size is the distance at which the second one's numbers stand behind the first one's. */
static bool measure(struct layout *ret)
{
	int (*closefrom)(posix_spawn_file_actions_t *, int) =
		(int (*)(posix_spawn_file_actions_t *, int))next_function("posix_spawn_file_actions_addclosefrom_np");
	static const int one[2] = {101, 102}, two[2] = {103, 104};
	posix_spawn_file_actions_t a;
	const char *bytes;
	size_t at, n;
	bool ok;

	*ret = (struct layout){.has_closefrom = closefrom != NULL};
	if (posix_spawn_file_actions_init(&a))
		return false;
	ok = posix_spawn_file_actions_adddup2(&a, one[0], one[1]) == 0 && posix_spawn_file_actions_adddup2(&a, two[0], two[1]) == 0 &&
	     (!closefrom || closefrom(&a, 3) == 0);
	bytes = (const char *)a.__actions;
	for (at = 0; ok && at < MAX_ACTION && memcmp(bytes + at, one, sizeof(one)); at += sizeof(int))
		;
	for (n = sizeof(int); ok && n <= MAX_ACTION && memcmp(bytes + at + n, two, sizeof(two)); n += sizeof(int))
		;
	ok = ok && at < MAX_ACTION && n <= MAX_ACTION;
	if (ok && closefrom)
		memcpy(&ret->closefrom, bytes + 2 * n, sizeof(int));
	ret->size = n;
	(void)posix_spawn_file_actions_destroy(&a);
	return ok;
}

/* Would one of the program's actions touch the numbers from @first on? Of an action only its words are known: one that happens to have such
 * a number is taken for one that does. */
static bool touches(const posix_spawn_file_actions_t *theirs, const struct layout *l, int first)
{
	for (size_t i = 0; i < (size_t)theirs->__used; i++)
		for (size_t at = 0; at < l->size; at += sizeof(int)) {
			int word;

			memcpy(&word, (const char *)theirs->__actions + i * l->size + at, sizeof(word));
			if ((word >= first && word < first + SHIM_FDS) || (l->has_closefrom && !at && word == l->closefrom))
				return true;
		}
	return false;
}

/* Ours, then theirs, whose own memory is shared: undo with drop. Ours make @fds @first and so on, if that is not negative, and close those
 * that other threads hold for their shells. */
static bool combine(const posix_spawn_file_actions_t *theirs, const int *fds, int first, posix_spawn_file_actions_t *ret)
{
	size_t n = theirs ? (size_t)theirs->__used : 0;
	int shell = shell_open();
	struct layout l;
	bool ok = true;

	if ((first < 0 && shell < 0) || n > MAX_ACTIONS || !measure(&l) || (n && first >= 0 && touches(theirs, &l, first)) ||
	    posix_spawn_file_actions_init(ret))
		return false;
	for (int i = 0; i < SHIM_FDS && first >= 0; i++)
		ok &= posix_spawn_file_actions_adddup2(ret, fds[i], first + i) == 0;
	for (int i = 0; i < SHIM_FDS; i++)
		if (handover_has(shell, i))
			ok &= posix_spawn_file_actions_addclose(ret, shell + i) == 0;
	/* Room for theirs is made by more of ours. */
	for (size_t i = 0; i < n && ok; i++)
		ok = posix_spawn_file_actions_addclose(ret, 0) == 0;
	if (!ok) {
		(void)posix_spawn_file_actions_destroy(ret);
		return false;
	}
	if (n)
		memcpy((char *)ret->__actions + ((size_t)ret->__used - n) * l.size, theirs->__actions, n * l.size);
	return true;
}

static void drop(posix_spawn_file_actions_t *actions)
{
	actions->__used = 0; /* paths in theirs are theirs */
	(void)posix_spawn_file_actions_destroy(actions);
}

static int spawn(spawn_function *real, const char *found, pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
		 const posix_spawnattr_t *attr, char *const argv[], char *const envp[])
{
	static char *const none[] = {NULL};
	posix_spawn_file_actions_t combined;
	int fds[SHIM_FDS], first = -1, saved = errno, r;
	struct handover_environment e;
	bool asked, ours;

	if (!real)
		return ENOSYS;
	asked = found && handover_survey(envp ? envp : none, &e) && handover_loads(found, &e) && handover_ask(fds);
	if (asked)
		first = handover_place(fds, false);
	ours = combine(actions, fds, first, &combined);
	if (ours && first >= 0) {
		char **vector = alloca((e.n + 2) * sizeof(*vector)), *entry = alloca(handover_room(&e));

		handover_preload(&e, first, entry);
		handover_fill(&e, entry, vector);
		envp = vector;
	}
	errno = saved;
	r = real(pid, path, ours ? &combined : actions, attr, argv, envp);
	saved = errno;
	if (ours)
		drop(&combined);
	if (asked)
		handover_close(fds, SHIM_FDS);
	handover_remove(first);
	errno = saved;
	return r;
}

EXPORT int posix_spawn(pid_t *restrict pid, const char *restrict path, const posix_spawn_file_actions_t *restrict actions,
		       const posix_spawnattr_t *restrict attr, char *const argv[restrict], char *const envp[restrict])
{
	return spawn((spawn_function *)next_function("posix_spawn"), path, pid, path, actions, attr, argv, envp);
}

/* The file that posix_spawnp will find; NULL: none. It looks itself; here it is only seen whether the library would be loaded. */
static const char *search(const char *file, char candidate[PATH_MAX])
{
	const char *at = NULL;

	if (strchr(file, '/'))
		return file;
	while (handover_candidate(&at, file, candidate))
		if (access(candidate, X_OK) == 0)
			return candidate;
	return NULL;
}

EXPORT int posix_spawnp(pid_t *restrict pid, const char *restrict file, const posix_spawn_file_actions_t *restrict actions,
			const posix_spawnattr_t *restrict attr, char *const argv[restrict], char *const envp[restrict])
{
	char candidate[PATH_MAX];
	int saved = errno;
	const char *found = shim_filtered ? NULL : search(file, candidate);

	errno = saved;
	return spawn((spawn_function *)next_function("posix_spawnp"), found, pid, file, actions, attr, argv, envp);
}
