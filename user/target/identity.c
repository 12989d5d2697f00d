// SPDX-License-Identifier: BSD-2-Clause
#include "target/identity.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "base/open_file.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

/* The kernel's NGROUPS_MAX. */
#define MAX_GROUPS 65536

/* (uid_t)-1 means "no change" to the kernel and is nobody's id. */
int identity_parse_id(const char *text, unsigned int *ret)
{
	char *end;
	unsigned long long v = strtoull(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || v >= UINT32_MAX)
		return -EINVAL;
	*ret = (unsigned int)v;
	return 0;
}

static int copy_names(const struct passwd *pw, struct identity *id)
{
	id->home = strdup(pw->pw_dir);
	id->name = strdup(pw->pw_name);
	return id->home && id->name ? 0 : -ENOMEM;
}

static int database_groups(const char *name, gid_t gid, struct identity *id)
{
	int n = MAX_GROUPS;

	id->groups = calloc(MAX_GROUPS, sizeof(*id->groups));
	if (!id->groups)
		return -ENOMEM;
	if (getgrouplist(name, gid, id->groups, &n) < 0)
		return -E2BIG;
	id->n_groups = (size_t)n;
	return 0;
}

static int current_identity(struct identity *id)
{
	const struct passwd *pw = getpwuid(getuid());
	int n = getgroups(0, NULL);

	id->uid = getuid();
	id->gid = getgid();
	if (n > 0) {
		id->groups = calloc((size_t)n, sizeof(*id->groups));
		if (!id->groups)
			return -ENOMEM;
		n = getgroups(n, id->groups);
	}
	id->n_groups = n > 0 ? (size_t)n : 0;
	/* Informative only: a user id without an entry is common in containers. */
	return pw ? copy_names(pw, id) : 0;
}

static int sudo_identity(const char *uid, const char *gid, struct identity *id, struct error *e)
{
	const struct passwd *pw;
	unsigned int v;
	int r;

	if (identity_parse_id(uid, &v) < 0)
		return fail(e, EINVAL,
			    "SUDO_UID is \"%s\", not a user id; unset it or pass --keep-root", uid);
	id->uid = v;
	errno = 0;
	pw = getpwuid(id->uid);
	if (!pw && errno == ENOMEM)
		return fail(e, ENOMEM, "out of memory");
	if (!pw)
		return fail(e, EINVAL,
			    "SUDO_UID %u is not in the user database; unset it or pass --keep-root",
			    v);
	id->gid = pw->pw_gid;
	if (gid) {
		if (identity_parse_id(gid, &v) < 0)
			return fail(
				e, EINVAL,
				"SUDO_GID is \"%s\", not a group id; unset it or pass --keep-root",
				gid);
		id->gid = v;
	}
	r = copy_names(pw, id);
	if (r == 0)
		r = database_groups(id->name, id->gid, id);
	if (r < 0)
		return fail(e, -r, "cannot read the groups of user %s: %s",
			    id->name ? id->name : uid, strerror(-r));
	id->switches = true;
	return 0;
}

int identity_find(bool keep_root, struct identity *ret, struct error *e)
{
	_cleanup_(identity_free) struct identity id = {0};
	const char *uid = getenv("SUDO_UID"), *gid = getenv("SUDO_GID");
	int r;

	/* "sudo -i", then sudo again: the invoking user is root, and there is nothing to give up.
	 */
	if (geteuid() == 0 && !keep_root && uid && strcmp(uid, "0") != 0) {
		r = sudo_identity(uid, gid, &id, e);
		if (r < 0)
			return r;
	} else if (current_identity(&id) < 0) {
		return fail(e, ENOMEM, "out of memory");
	}
	*ret = id;
	id = (struct identity){0};
	return 0;
}

void identity_open_files(const struct identity *id)
{
	if (id->switches)
		file_rights_set_usual(id->uid, id->gid, id->groups, id->n_groups);
}

void identity_find_invoker(void)
{
	_cleanup_(identity_free) struct identity id = {0};

	if (identity_find(false, &id, NULL) == 0 && id.switches)
		file_rights_set_invoker(id.uid, id.gid, id.groups, id.n_groups);
}

void identity_free(struct identity *id)
{
	if (!id)
		return;
	free(id->groups);
	free(id->home);
	free(id->name);
	*id = (struct identity){0};
}

static bool irrevocable(const struct identity *id)
{
	uid_t ru, eu, su;
	gid_t rg, eg, sg;

	if (getresuid(&ru, &eu, &su) < 0 || getresgid(&rg, &eg, &sg) < 0)
		return false;
	if (ru != id->uid || eu != id->uid || su != id->uid || rg != id->gid || eg != id->gid ||
	    sg != id->gid)
		return false;
	if (id->uid != 0 && (setuid(0) == 0 || setresuid((uid_t)-1, 0, (uid_t)-1) == 0))
		return false;
	return true;
}

/* All of them: where SECBIT_NO_SETUID_FIXUP is set, the change of ids leaves them to us, ambient
 * ones for the program as well. */
static int drop_capabilities(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0}};

	return syscall(SYS_capset, &head, none) < 0 ? -errno : 0;
}

/* Those that we need stand in the ambient set if somebody gave them to us that way; others there
 * are the program's. */
static void keep_ours_back(void)
{
	static const int ours[] = {CAP_BPF,	     CAP_PERFMON, CAP_SYS_PTRACE,     CAP_SYS_ADMIN,
				   CAP_SYS_RESOURCE, CAP_SYSLOG,  CAP_DAC_READ_SEARCH};

	for (size_t i = 0; i < sizeof(ours) / sizeof(*ours); i++)
		(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_LOWER, ours[i], 0, 0);
}

int identity_assume(const struct identity *id)
{
	int r;

	keep_ours_back();
	if (!id || !id->switches)
		return 0;
	if (setgroups(id->n_groups, id->groups) < 0 || setresgid(id->gid, id->gid, id->gid) < 0 ||
	    setresuid(id->uid, id->uid, id->uid) < 0)
		return -errno;
	r = drop_capabilities();
	if (r < 0)
		return r;
	if (!irrevocable(id))
		return -EPERM;
	if ((id->home && setenv("HOME", id->home, 1) < 0) ||
	    (id->name && setenv("USER", id->name, 1) < 0) ||
	    (id->name && setenv("LOGNAME", id->name, 1) < 0))
		return -errno;
	return 0;
}
