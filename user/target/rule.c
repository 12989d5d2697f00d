// SPDX-License-Identifier: BSD-2-Clause
#include "target/rule.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "base/proc.h"
#include "target/cgroup.h"
#include "target/identity.h"
#include "target/process.h"

#include <errno.h>
#include <fnmatch.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Ancestors looked at, at most: /proc is read while processes come and go. */
#define MAX_ANCESTORS 256

struct process_rule {
	struct process_rule_options o;
	struct cgroup *cgroup;
	uid_t uid;
	struct statx exe;
};

static int find_user(const char *user, uid_t *ret, struct error *e)
{
	const struct passwd *pw = getpwnam(user);

	if (pw)
		*ret = pw->pw_uid;
	else if (identity_parse_id(user, ret) < 0)
		return fail(e, EINVAL, "--uid '%s': there is no such user; give a name or a number",
			    user);
	return 0;
}

int process_rule_open(const struct process_rule_options *o, struct process_rule **ret,
		      struct error *e)
{
	struct process_rule *rule = calloc(1, sizeof(*rule));
	int r = 0;

	if (!rule)
		return fail(e, ENOMEM, "out of memory");
	rule->o = *o;
	if (o->user)
		r = find_user(o->user, &rule->uid, e);
	if (r == 0 && o->exe && file_look_at(o->exe, &rule->exe) < 0)
		r = fail(e, errno, "--exe %s: %s; of a container name it as /proc/PID/root%s",
			 o->exe, strerror(errno), *o->exe == '/' ? o->exe : "/...");
	if (r == 0 && o->exe && !S_ISREG(rule->exe.stx_mode))
		r = fail(e, EINVAL, "--exe %s: this is no file", o->exe);
	if (r == 0 && o->tree && !process_is_live(o->tree))
		r = fail(e, ESRCH, "--pid-tree %d: there is no such process", (int)o->tree);
	if (r == 0 && o->cgroup)
		r = cgroup_open(o->cgroup, &rule->cgroup, e);
	if (r < 0) {
		process_rule_free(rule);
		return r;
	}
	*ret = rule;
	return 0;
}

void process_rule_free(struct process_rule *r)
{
	if (!r)
		return;
	cgroup_free(r->cgroup);
	free(r);
}

int process_rule_refresh(struct process_rule *r, struct error *e)
{
	return r->cgroup ? cgroup_refresh(r->cgroup, e) : 0;
}

static bool descends_from(pid_t pid, pid_t ancestor)
{
	struct process_facts f;

	for (int i = 0; pid > 0 && i < MAX_ANCESTORS; i++) {
		if (pid == ancestor)
			return true;
		if (process_read(pid, &f) < 0)
			return false;
		pid = f.parent;
	}
	return false;
}

static bool runs(const struct process_rule *r, pid_t pid)
{
	struct statx x;
	char link[PROC_PATH];

	proc_path(link, pid, "exe");
	return file_look_at(link, &x) == 0 && file_is_same(&x, &r->exe);
}

bool process_rule_matches(const struct process_rule *r, pid_t pid, bool known_in_tree,
			  bool *ret_in_tree)
{
	struct process_facts f;
	bool in_tree = known_in_tree;

	if (ret_in_tree)
		*ret_in_tree = false;
	/* The cheapest first: this is asked of every process there is. */
	if (r->o.tree) {
		in_tree = in_tree || descends_from(pid, r->o.tree);
		if (ret_in_tree)
			*ret_in_tree = in_tree;
		if (!in_tree)
			return false;
	}
	if (r->cgroup && !cgroup_has(r->cgroup, pid))
		return false;
	if (r->o.exe && !runs(r, pid))
		return false;
	if (process_read(pid, &f) < 0 || f.kernel || f.exiting || f.state == 'Z')
		return false;
	return (!r->o.user || f.effective == r->uid) &&
	       (!r->o.comm || fnmatch(r->o.comm, f.comm, 0) == 0);
}

/* Who would be in scope but for one thing that was asked. */
struct nearest {
	const struct process_rule *rule;
	size_t n;
	pid_t pid;
	char comm[64], *exe;
};

static int look_near(pid_t pid, void *arg)
{
	struct nearest *n = arg;
	const struct process_rule_options *o = &n->rule->o;
	_cleanup_free_ char *path = NULL;
	struct process_facts f;
	const char *base;

	if (process_read(pid, &f) < 0 || f.kernel || process_executable(pid, &path) < 0)
		return 0;
	base = basename(path);
	if (o->exe) {
		if (strcmp(base, basename(o->exe)) != 0 || runs(n->rule, pid))
			return 0;
	} else if (o->comm) {
		/* A name of 15 letters at most is cut from the executable's, or a thread library's
		 * wish; the case may differ. */
		if (fnmatch(o->comm, f.comm, FNM_CASEFOLD) != 0 &&
		    fnmatch(o->comm, base, FNM_CASEFOLD) != 0 && !strstr(base, o->comm) &&
		    !strstr(f.comm, o->comm) && (strlen(f.comm) < 3 || !strstr(o->comm, f.comm)))
			return 0;
	} else {
		return 0;
	}
	if (!n->n++) {
		n->pid = pid;
		(void)snprintf(n->comm, sizeof(n->comm), "%s", f.comm);
		n->exe = TAKE_PTR(path);
	}
	return 0;
}

int process_rule_explain(const struct process_rule *r, struct error *e)
{
	struct nearest n = {.rule = r};
	bool several = !!r->o.cgroup + !!r->o.user + !!r->o.comm + !!r->o.exe + !!r->o.tree > 1;
	int err;

	(void)process_each(look_near, &n);
	if (n.n && r->o.exe)
		err = fail(e, ESRCH,
			   "no process is in scope: none runs %s, but process %d (%s) runs %s",
			   r->o.exe, (int)n.pid, n.comm, n.exe);
	else if (n.n && !several)
		err = fail(e, ESRCH,
			   "no process is in scope: none is called '%s', but process %d is called "
			   "%s (%s)",
			   r->o.comm, (int)n.pid, n.comm, n.exe);
	else if (r->cgroup && !cgroup_size(r->cgroup))
		err = fail(e, ESRCH, "no process is in scope: the cgroup %s is empty", r->o.cgroup);
	else if (several)
		err = fail(e, ESRCH,
			   "no process is in scope: no process has all that was asked at once%s%s",
			   n.n ? "; called so is " : "", n.n ? n.comm : "");
	else if (r->o.user)
		err = fail(e, ESRCH, "no process is in scope: user %s runs nothing now", r->o.user);
	else
		err = fail(e, ESRCH, "no process is in scope: %s",
			   r->o.comm ? "none is called so; `ps -e` shows the names"
				     : "it has ended");
	free(n.exe);
	return err;
}
