// SPDX-License-Identifier: BSD-2-Clause
/* Who the program runs as. The parts that give up root need root. */
#include "base/error.h"
#include "target/identity.h"
#include "target/launch.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <pwd.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define NOBODY 65534

static void sudo(const char *uid, const char *gid)
{
	if (uid)
		setenv("SUDO_UID", uid, 1);
	else
		unsetenv("SUDO_UID");
	if (gid)
		setenv("SUDO_GID", gid, 1);
	else
		unsetenv("SUDO_GID");
}

static void without_sudo(void **state)
{
	struct identity id = {0};

	(void)state;
	sudo(NULL, NULL);
	assert_int_equal(identity_find(false, &id, NULL), 0);
	assert_false(id.switches);
	assert_int_equal(id.uid, getuid());
	assert_int_equal(id.gid, getgid());
	assert_int_equal(identity_assume(&id), 0);
	identity_free(&id);
	identity_free(NULL);
	assert_int_equal(identity_assume(NULL), 0);
}

static void keeps_root(void **state)
{
	struct identity id = {0};

	(void)state;
	sudo("65534", "65534");
	assert_int_equal(identity_find(true, &id, NULL), 0);
	assert_false(id.switches);
	identity_free(&id);
	sudo("0", "0");
	assert_int_equal(identity_find(false, &id, NULL), 0);
	assert_false(id.switches);
	identity_free(&id);
}

static void refuses_nonsense(void **state)
{
	static const char *const bad[] = {
		"",   " 1", "1 ", "-1", "+1", "0x10", "1e3", "4294967295", "99999999999999999999",
		"abc"};
	struct identity id = {0};
	struct error e;

	(void)state;
	if (geteuid() != 0)
		skip();
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		sudo(bad[i], "65534");
		e = (struct error){0};
		assert_int_equal(identity_find(false, &id, &e), -EINVAL);
		assert_non_null(strstr(e.text, "SUDO_UID"));
		sudo("65534", bad[i]);
		assert_int_equal(identity_find(false, &id, &e), -EINVAL);
		assert_non_null(strstr(e.text, "SUDO_GID"));
	}
	/* No such user. */
	assert_null(getpwuid(3999999999U));
	sudo("3999999999", NULL);
	assert_int_equal(identity_find(false, &id, &e), -EINVAL);
	assert_non_null(strstr(e.text, "user database"));
	assert_null(id.name);
}

static void program_runs_as_the_invoking_user(void **state)
{
	struct passwd *pw = getpwuid(NOBODY);
	struct identity id = {0};
	struct target *t = NULL;
	struct target_spec spec = {.identity = &id, .page_fd = -1, .slots_fd = -1};
	char command[1024];
	int status = -1;

	(void)state;
	if (geteuid() != 0)
		skip();
	assert_non_null(pw);
	sudo("65534", "65534");
	assert_int_equal(identity_find(false, &id, NULL), 0);
	assert_true(id.switches);
	assert_int_equal(id.uid, NOBODY);
	assert_int_equal(id.gid, NOBODY);
	/* Real, effective, saved and filesystem ids all changed, no group of root's is left, and
	 * the capabilities are gone. */
	(void)snprintf(command, sizeof(command),
		       "test \"$(id -u):$(id -g):$(id -G)\" = 65534:65534:65534 && test "
		       "\"$HOME:$USER:$LOGNAME\" = '%s:%s:%s' && "
		       "grep -q '^Uid:.65534.65534.65534.65534$' /proc/self/status && "
		       "grep -q '^Gid:.65534.65534.65534.65534$' /proc/self/status && grep -q "
		       "'^CapEff:.0*$' /proc/self/status",
		       pw->pw_dir, pw->pw_name, pw->pw_name);
	spec.argv = (char *[]){"sh", "-c", command, NULL};
	assert_int_equal(target_spawn(&spec, &t, NULL), 0);
	assert_int_equal(target_exec(t, NULL), 0);
	assert_int_equal(target_reap(t, &status), 0);
	assert_int_equal(target_exit_code(status), 0);
	target_free(t);
	identity_free(&id);
	/* We are as we were. */
	assert_int_equal(geteuid(), 0);
}

/* With these capabilities in all sets, the ambient one as well. */
static bool become_capable(uint64_t capabilities)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = {{0}};

	for (size_t i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
		uint32_t some = (uint32_t)(capabilities >> 32 * i);

		sets[i].permitted = sets[i].effective = sets[i].inheritable = some;
	}
	if (syscall(SYS_capset, &head, sets) < 0)
		return false;
	for (int i = 0; i < 64; i++)
		if (capabilities >> i & 1 &&
		    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, i, 0, 0) < 0)
			return false;
	return true;
}

/* The exit status of @command in a program that is started as @id; 125: it was not. */
static int started(const struct identity *id, const char *command)
{
	struct target_spec spec = {
		.identity = id,
		.page_fd = -1,
		.slots_fd = -1,
		.argv = (char *[]){"sh", "-c", (char *)(uintptr_t)command, NULL}};
	struct target *t = NULL;
	int status;

	if (target_spawn(&spec, &t, NULL) < 0 || target_exec(t, NULL) < 0 ||
	    target_reap(t, &status) < 0)
		return 125;
	target_free(t);
	return target_exit_code(status);
}

#define BIT(capability) (1ULL << (capability))

static int without_a_switch(void)
{
	const struct identity id = {.uid = NOBODY, .gid = NOBODY};

	/* As a unit of a service manager gives them to a user: the program needs one of them, we
	 * the others. */
	if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0 || setresgid(NOBODY, NOBODY, NOBODY) < 0 ||
	    setresuid(NOBODY, NOBODY, NOBODY) < 0 ||
	    !become_capable(BIT(CAP_NET_BIND_SERVICE) | BIT(CAP_BPF) | BIT(CAP_PERFMON) |
			    BIT(CAP_SYS_PTRACE)))
		return 124;
	return started(&id, "grep -q '^CapAmb:.0000000000000400$' /proc/self/status && grep -q "
			    "'^CapPrm:.0000000000000400$' /proc/self/status");
}

static int with_a_switch(void)
{
	const struct identity id = {.uid = NOBODY, .gid = NOBODY, .switches = true};

	/* The kernel leaves all sets as they are when the ids change. */
	if (prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP, 0, 0, 0) < 0 ||
	    !become_capable(BIT(CAP_SETUID) | BIT(CAP_SETGID) | BIT(CAP_NET_BIND_SERVICE) |
			    BIT(CAP_KILL)))
		return 124;
	return started(&id, "for set in Amb Prm Inh Eff; do grep -q \"^Cap$set:.0*$\" "
			    "/proc/self/status || exit 1; done");
}

static void program_gets_no_capability_of_ours(void **state)
{
	int (*const cases[])(void) = {without_a_switch, with_a_switch};

	(void)state;
	/* Root of a container can give nobody what it lacks itself. */
	if (geteuid() != 0 || prctl(PR_CAPBSET_READ, CAP_BPF, 0, 0, 0) != 1)
		skip();
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		int status;
		pid_t pid = fork();

		if (pid == 0)
			_exit(cases[i]());
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_sudo),
		cmocka_unit_test(keeps_root),
		cmocka_unit_test(refuses_nonsense),
		cmocka_unit_test(program_runs_as_the_invoking_user),
		cmocka_unit_test(program_gets_no_capability_of_ours),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
