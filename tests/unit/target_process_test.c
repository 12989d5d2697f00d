// SPDX-License-Identifier: BSD-2-Clause
#include "base/cleanup.h"
#include "base/error.h"
#include "target/cgroup.h"
#include "target/process.h"
#include "target/rule.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* A child that waits until it is killed. */
static pid_t start_child(void)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			(void)pause();
	}
	return pid;
}

static void end_child(pid_t pid)
{
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
}

static void facts_are_the_processs(void **state)
{
	struct process_facts f;
	pid_t child;

	(void)state;
	/* Parentheses and spaces in a name are no end of it. */
	assert_int_equal(prctl(PR_SET_NAME, "a) R 1 (b"), 0);
	assert_int_equal(process_read(getpid(), &f), 0);
	assert_string_equal(f.comm, "a) R 1 (b");
	assert_int_equal(f.parent, getppid());
	assert_int_equal(f.real, getuid());
	assert_int_equal(f.effective, geteuid());
	assert_false(f.kernel);
	assert_true(process_is_live(getpid()));
	child = start_child();
	assert_int_equal(process_read(child, &f), 0);
	assert_int_equal(f.parent, getpid());
	assert_true(process_is_live(child));
	(void)kill(child, SIGKILL);
	(void)waitid(P_PID, (id_t)child, &(siginfo_t){0}, WEXITED | WNOWAIT);
	assert_false(process_is_live(child)); /* a zombie */
	end_child(child);
	assert_int_equal(process_read(child, &f), -ESRCH);
	assert_int_equal(prctl(PR_SET_NAME, "process_test"), 0);
}

static void *sleeping(void *arg)
{
	__atomic_store_n((pid_t *)arg, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	for (;;)
		(void)pause();
	return NULL;
}

/* Without descriptors nobody can be looked at: that is no end of the process. */
static void lives_while_descriptors_are_short(void **state)
{
	struct rlimit few, before;
	pid_t child = start_child();
	bool lives;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = (struct rlimit){.rlim_cur = 0, .rlim_max = before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	lives = process_is_live(child);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_true(lives);
	assert_true(process_is_live(child));
	end_child(child);
	assert_false(process_is_live(child));
}

static void refuses_what_cannot_be_profiled(void **state)
{
	struct error e = {.text = ""};
	pid_t child = start_child(), tid = 0;
	pthread_t t;
	int fd = -1;

	(void)state;
	assert_int_equal(process_open(4194303, &fd, &e), -ESRCH);
	assert_non_null(strstr(e.text, "no process 4194303"));
	assert_int_equal(process_open(getpid(), &fd, &e), -EINVAL);
	assert_int_equal(pthread_create(&t, NULL, sleeping, &tid), 0);
	while (!__atomic_load_n(&tid, __ATOMIC_ACQUIRE))
		(void)usleep(1000);
	assert_int_equal(process_open(tid, &fd, &e), -EINVAL);
	assert_non_null(strstr(e.text, "thread"));
	(void)pthread_cancel(t);
	(void)pthread_join(t, NULL);
	assert_int_equal(process_open(child, &fd, &e), 0);
	assert_false(process_has_ended(fd));
	(void)kill(child, SIGKILL);
	(void)waitid(P_PID, (id_t)child, &(siginfo_t){0}, WEXITED | WNOWAIT);
	assert_true(process_has_ended(fd));
	(void)close(fd);
	fd = -1;
	assert_true(process_open(child, &fd, &e) < 0);
	assert_int_equal(fd, -1);
	assert_non_null(strstr(e.text, "zombie"));
	end_child(child);
}

static void paths_are_matched_by_either_name(void **state)
{
	_cleanup_free_ char *path = NULL;
	char link[64];

	(void)state;
	assert_true(process_path_matches("/usr/bin/*", "/usr/bin/ls"));
	assert_true(process_path_matches("ls", "/usr/bin/ls"));
	assert_false(process_path_matches("l", "/usr/bin/ls"));
	assert_int_equal(process_executable(getpid(), &path), 0);
	assert_non_null(strstr(path, "target_process_test"));
	(void)snprintf(link, sizeof(link), "/proc/%d/exe", (int)getpid());
	assert_string_equal(process_file_path(path, link), path);
	assert_string_equal(process_file_path("/etc/passwd", link), link);
	assert_string_equal(process_file_path("/nowhere", link), link);
}

static bool matches(const struct process_rule_options *o, pid_t pid)
{
	struct process_rule *r = NULL;
	struct error e = {.text = ""};
	bool in;

	if (process_rule_open(o, &r, &e) < 0)
		fail_msg("%s", e.text);
	in = process_rule_matches(r, pid, false, NULL);
	process_rule_free(r);
	return in;
}

static void rules_are_all_to_hold(void **state)
{
	pid_t child = start_child(), other;
	char user[16];

	(void)state;
	(void)snprintf(user, sizeof(user), "%u", geteuid());
	assert_true(matches(&(struct process_rule_options){.comm = "process_*"}, child));
	assert_false(matches(&(struct process_rule_options){.comm = "process"}, child));
	assert_true(matches(&(struct process_rule_options){.user = user}, child));
	assert_false(matches(&(struct process_rule_options){.user = "4242424"}, child));
	assert_true(matches(&(struct process_rule_options){.exe = "/proc/self/exe"}, child));
	assert_false(matches(&(struct process_rule_options){.exe = "/bin/sh"}, child));
	assert_true(matches(&(struct process_rule_options){.tree = getpid()}, child));
	assert_true(matches(&(struct process_rule_options){.tree = child}, child));
	assert_false(matches(&(struct process_rule_options){.tree = child}, getpid()));
	assert_true(matches(&(struct process_rule_options){.tree = getpid(),
							   .comm = "process_test",
							   .user = user},
			    child));
	assert_false(matches(
		&(struct process_rule_options){.tree = getpid(), .comm = "other", .user = user},
		child));
	other = child;
	end_child(child);
	assert_false(matches(&(struct process_rule_options){.comm = "*"}, other));
	assert_false(matches(&(struct process_rule_options){.comm = "*"},
			     2)); /* a kernel thread, where it can be seen */
}

static void wrong_rules_say_what_is_near(void **state)
{
	struct process_rule *r = NULL;
	struct error e = {.text = ""};

	(void)state;
	assert_true(process_rule_open(&(struct process_rule_options){.user = "no-such-user"}, &r,
				      &e) < 0);
	assert_non_null(strstr(e.text, "no-such-user"));
	assert_true(process_rule_open(&(struct process_rule_options){.exe = "/no/such/file"}, &r,
				      &e) < 0);
	assert_non_null(strstr(e.text, "/no/such/file"));
	assert_true(process_rule_open(&(struct process_rule_options){.exe = "/proc"}, &r, &e) < 0);
	assert_true(process_rule_open(&(struct process_rule_options){.tree = 4194303}, &r, &e) < 0);
	assert_true(process_rule_open(&(struct process_rule_options){.cgroup = "no/such/group"}, &r,
				      &e) < 0);
	assert_non_null(strstr(e.text, "no/such/group"));
	assert_null(r);
	assert_int_equal(
		process_rule_open(&(struct process_rule_options){.comm = "process_tes"}, &r, &e),
		0);
	assert_int_equal(process_rule_explain(r, &e), -ESRCH);
	assert_non_null(strstr(e.text, "process_test"));
	process_rule_free(r);
}

/* The group that we are in ourselves, of any hierarchy that is mounted. */
static void a_group_lists_its_processes(void **state)
{
	_cleanup_fclose_ FILE *mounts = fopen("/proc/self/mounts", "re"),
			      *own = fopen("/proc/self/cgroup", "re");
	char line[1024], mount[512], type[64], path[2048];
	struct cgroup *g = NULL;
	struct error e = {.text = ""};
	size_t tried = 0;

	(void)state;
	while (mounts && own && fgets(line, sizeof(line), mounts)) {
		if (sscanf(line, "%*s %511s %63s", mount, type) != 2 ||
		    strncmp(type, "cgroup", 6) != 0)
			continue;
		rewind(own);
		while (fgets(line, sizeof(line), own)) {
			char *colon = strrchr(line, ':');

			if (!colon)
				continue;
			colon[strcspn(colon, "\n")] = '\0';
			(void)snprintf(path, sizeof(path), "%s%s", mount, colon + 1);
			if (cgroup_open(path, &g, &e) < 0)
				continue;
			assert_int_equal(cgroup_refresh(g, &e), 0);
			assert_false(cgroup_has(g, 4194303));
			tried += cgroup_has(g, getpid());
			assert_true(cgroup_size(g) < 1 << 20);
			cgroup_free(g);
			g = NULL;
		}
	}
	if (!tried)
		print_message("no control group that can be seen holds this process\n");
	assert_true(cgroup_open("/tmp", &g, &e) < 0);
	assert_non_null(strstr(e.text, "/tmp"));
}

static void *wait_with_filter(void *arg)
{
	struct sock_filter all[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
	struct sock_fprog p = {1, all};

	(void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	(void)prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p, 0, 0);
	__atomic_store_n((pid_t *)arg, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	for (;;)
		(void)pause();
	return NULL;
}

static void knows_which_thread_filters(void **state)
{
	pid_t *tid = mmap(NULL, sizeof(*tid), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			  -1, 0),
	      pid;
	pthread_t t;

	(void)state;
	assert_ptr_not_equal(tid, MAP_FAILED);
	pid = fork();
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)pthread_create(&t, NULL, wait_with_filter, tid);
		for (;;)
			(void)pause();
	}
	while (!__atomic_load_n(tid, __ATOMIC_ACQUIRE))
		(void)usleep(1000);
	assert_true(process_thread_filters(pid, *tid));
	assert_false(process_thread_filters(pid, pid));
	assert_true(process_thread_filters(pid, 4194303));
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	(void)munmap(tid, sizeof(*tid));
}

/* Memory that was used before holds anything. */
static void a_text_ends_in_an_empty_word(void **state)
{
	static const char *const files[] = {"comm", "cmdline", "status"};

	(void)state;
	(void)mallopt(M_PERTURB, 0x5a);
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		_cleanup_free_ char *text = process_text(getpid(), files[i]);
		const char *end = text;

		assert_non_null(text);
		while (*end)
			end += strlen(end) + 1;
		/* Of one word, the empty one is right behind its zero. */
		if (strcmp(files[i], "cmdline") != 0)
			assert_ptr_equal(end, text + strlen(text) + 1);
	}
	(void)mallopt(M_PERTURB, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(facts_are_the_processs),
		cmocka_unit_test(lives_while_descriptors_are_short),
		cmocka_unit_test(refuses_what_cannot_be_profiled),
		cmocka_unit_test(paths_are_matched_by_either_name),
		cmocka_unit_test(rules_are_all_to_hold),
		cmocka_unit_test(wrong_rules_say_what_is_near),
		cmocka_unit_test(a_group_lists_its_processes),
		cmocka_unit_test(knows_which_thread_filters),
		cmocka_unit_test(a_text_ends_in_an_empty_word),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
