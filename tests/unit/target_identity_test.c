// SPDX-License-Identifier: BSD-2-Clause
/* Who the program runs as. The parts that give up root need root. */
#include "base/error.h"
#include "target/identity.h"
#include "target/launch.h"

#include <errno.h>
#include <pwd.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
	static const char *const bad[] = {"", " 1", "1 ", "-1", "+1", "0x10", "1e3", "4294967295", "99999999999999999999", "abc"};
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
	/* Real, effective, saved and filesystem ids all changed, no group of root's is left, and the capabilities are gone. */
	(void)snprintf(command, sizeof(command),
		       "test \"$(id -u):$(id -g):$(id -G)\" = 65534:65534:65534 && test \"$HOME:$USER:$LOGNAME\" = '%s:%s:%s' && "
		       "grep -q '^Uid:.65534.65534.65534.65534$' /proc/self/status && "
		       "grep -q '^Gid:.65534.65534.65534.65534$' /proc/self/status && grep -q '^CapEff:.0*$' /proc/self/status",
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_sudo),
		cmocka_unit_test(keeps_root),
		cmocka_unit_test(refuses_nonsense),
		cmocka_unit_test(program_runs_as_the_invoking_user),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
