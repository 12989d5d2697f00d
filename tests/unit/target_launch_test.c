// SPDX-License-Identifier: BSD-2-Clause
/* The child's life: stopped before exec, exec and its failures, who dies with whom. */
#include "base/cleanup.h"
#include "base/error.h"
#include "target/launch.h"
#include "target/maps.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

static char script[] = "/tmp/cozbpf-launch-XXXXXX";
static char own_exe[4096];
static char start_signals[2][64]; /* SigBlk and SigIgn when we were started */

static struct target *spawn(char *const *argv)
{
	struct target_spec spec = {.argv = argv, .page_fd = -1, .slots_fd = -1};
	struct target *t = NULL;
	struct error e = {0};
	int r = target_spawn(&spec, &t, &e);

	if (r < 0)
		print_error("%s\n", e.text);
	assert_int_equal(r, 0);
	return t;
}

static bool ended(const struct target *t, int timeout_ms)
{
	struct pollfd p = {.fd = target_pidfd(t), .events = POLLIN};

	return poll(&p, 1, timeout_ms) == 1;
}

static int run(char *const *argv)
{
	struct target *t = spawn(argv);
	int status = 0;

	assert_int_equal(target_exec(t, NULL), 0);
	assert_true(ended(t, 60000));
	assert_int_equal(target_reap(t, &status), 0);
	target_free(t);
	return target_exit_code(status);
}

static int run_shell(const char *command)
{
	return run((char *[]){"sh", "-c", (char *)command, NULL});
}

static void write_script(const void *bytes, size_t n)
{
	int fd = open(script, O_WRONLY | O_TRUNC | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, n), n);
	assert_int_equal(close(fd), 0);
}

static void exit_codes(void **state)
{
	(void)state;
	assert_int_equal(run_shell("exit 0"), 0);
	assert_int_equal(run_shell("exit 7"), 7);
	assert_int_equal(run_shell("kill -TERM $$"), 128 + SIGTERM);
	assert_int_equal(run_shell("ulimit -c 0; kill -SEGV $$"), 128 + SIGSEGV);
}

static void stops_before_exec(void **state)
{
	struct target *t = spawn((char *[]){"true", NULL});
	char link[64], exe[4096];
	ssize_t n;

	(void)state;
	(void)snprintf(link, sizeof(link), "/proc/%d/exe", (int)target_pid(t));
	assert_false(ended(t, 100));
	n = readlink(link, exe, sizeof(exe) - 1);
	assert_true(n > 0);
	exe[n] = '\0';
	assert_string_equal(exe, own_exe);
	assert_int_equal(target_exec(t, NULL), 0);
	assert_int_equal(target_exec(t, NULL), -EINVAL);
	assert_true(ended(t, 60000));
	target_free(t);
}

static void is_mapped_after_exec(void **state)
{
	(void)state;
	for (int i = 0; i < 20; i++) {
		struct target *t = spawn((char *[]){"sleep", "60", NULL});
		struct map_list maps = {0};
		int status;

		assert_int_equal(target_exec(t, NULL), 0);
		assert_int_equal(map_list_read(target_pid(t), &maps, NULL), 0);
		assert_true(maps.n > 0);
		assert_string_not_equal(maps.entries[0].path, own_exe);
		map_list_free(&maps);
		assert_int_equal(kill(target_pid(t), SIGKILL), 0);
		assert_int_equal(target_reap(t, &status), 0);
		target_free(t);
	}
}

static void failures_of_exec(void **state)
{
	static const char missing[] = "#!/nonexistent/interpreter\n",
			  elf[] = "\177ELF\2\1\1\0\0\0\0\0\0\0\0\0junk\n";
	struct error e = {0};
	struct target *t;

	(void)state;
	write_script(missing, strlen(missing));
	t = spawn((char *[]){script, NULL});
	assert_int_equal(target_exec(t, &e), -ENOENT);
	assert_non_null(strstr(e.text, "interpreter"));
	target_free(t);
	write_script(elf, sizeof(elf) - 1);
	t = spawn((char *[]){script, NULL});
	assert_int_equal(target_exec(t, &e), -ENOEXEC);
	assert_non_null(strstr(e.text, "not an executable"));
	target_free(t);
}

/* The kernel keeps an exec that waits for a lease's holder, as it does one that waits for a file
 * system: for 45 seconds. */
static void ends_when_exec_hangs(void **state)
{
	const struct timespec now = {0};
	sigset_t set, old;
	struct target *t;
	int fd;

	(void)state;
	write_script("#!/bin/sh\n", 10);
	t = spawn((char *[]){script, NULL});
	fd = open(script, O_RDONLY | O_CLOEXEC);
	/* Not every file system has them. */
	if (fcntl(fd, F_SETLEASE, F_WRLCK) < 0) {
		target_free(t);
		(void)close(fd);
		skip();
	}
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGIO);
	(void)sigprocmask(SIG_BLOCK, &set, &old);
	(void)raise(SIGINT);
	(void)alarm(20);
	assert_int_equal(target_exec(t, NULL), -EINTR);
	(void)alarm(0);
	target_free(t);
	(void)close(fd);
	/* It is left to the caller. */
	assert_int_equal(sigtimedwait(&set, NULL, &now), SIGINT);
	while (sigtimedwait(&set, NULL, &now) > 0)
		;
	(void)sigprocmask(SIG_SETMASK, &old, NULL);
}

static void scripts(void **state)
{
	static const char with[] = "#!/bin/sh\nexit $(($1 + 1))\n",
			  without[] = "test $# = 1 && exit $(($1 + 2))\n";

	(void)state;
	write_script(with, strlen(with));
	assert_int_equal(run((char *[]){script, "3", NULL}), 4);
	write_script(without, strlen(without));
	assert_int_equal(run((char *[]){script, "3", NULL}), 5);
}

static void unknown_command(void **state)
{
	struct target_spec spec = {
		.argv = (char *[]){"no-such-command", NULL}, .page_fd = -1, .slots_fd = -1};
	struct target *t = NULL;
	struct error e = {0};

	(void)state;
	assert_int_equal(target_spawn(&spec, &t, &e), -ENOENT);
	assert_null(t);
}

static void free_kills_only_before_exec(void **state)
{
	struct target *t = spawn((char *[]){"sleep", "60", NULL});
	pid_t pid = target_pid(t);
	int status;

	(void)state;
	target_free(t);
	assert_int_equal(kill(pid, 0), -1);
	t = spawn((char *[]){"sleep", "60", NULL});
	pid = target_pid(t);
	assert_int_equal(target_exec(t, NULL), 0);
	target_free(t);
	assert_int_equal(waitpid(pid, &status, WNOHANG), 0);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	target_free(NULL);
}

static void killed_before_exec(void **state)
{
	struct target *t = spawn((char *[]){"true", NULL});
	struct error e = {0};

	(void)state;
	assert_int_equal(kill(target_pid(t), SIGKILL), 0);
	assert_true(ended(t, 60000));
	assert_int_equal(target_exec(t, &e), -ECHILD);
	target_free(t);
}

/* A launcher that is killed; we inherit its child, and return its pid. */
static pid_t orphan(bool exec, char *const *argv)
{
	int answer[2], status;
	pid_t launcher, pid = 0;

	assert_int_equal(pipe2(answer, O_CLOEXEC), 0);
	launcher = fork();
	if (launcher == 0) {
		struct target_spec spec = {.argv = argv, .page_fd = -1, .slots_fd = -1};
		struct target *t;

		if (target_spawn(&spec, &t, NULL) < 0 || (exec && target_exec(t, NULL) < 0))
			_exit(1);
		pid = target_pid(t);
		if (write(answer[1], &pid, sizeof(pid)) != sizeof(pid))
			_exit(1);
		for (;;)
			(void)pause();
	}
	assert_int_equal(read(answer[0], &pid, sizeof(pid)), sizeof(pid));
	assert_int_equal(kill(launcher, SIGKILL), 0);
	assert_int_equal(waitpid(launcher, &status, 0), launcher);
	(void)close(answer[0]);
	(void)close(answer[1]);
	return pid;
}

static void dies_with_the_launcher(void **state)
{
	int status;
	pid_t pid = orphan(false, (char *[]){"sleep", "60", NULL});

	(void)state;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	/* By the death signal, or by itself when it saw the socket close. */
	assert_true((WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) ||
		    (WIFEXITED(status) && WEXITSTATUS(status) == 127));
}

static void program_outlives_the_launcher(void **state)
{
	int in[2], status;
	char command[64];
	pid_t pid;

	(void)state;
	assert_int_equal(pipe(in), 0);
	(void)snprintf(command, sizeof(command), "read x <&%d; exit $x", in[0]);
	pid = orphan(true, (char *[]){"sh", "-c", command, NULL});
	assert_int_equal(write(in[1], "9\n", 2), 2);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(target_exit_code(status), 9);
	(void)close(in[0]);
	(void)close(in[1]);
}

static void read_signals(char lines[2][64])
{
	FILE *f = fopen("/proc/self/status", "re");
	char line[256];

	while (f && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		if (strncmp(line, "SigBlk:", 7) == 0)
			(void)snprintf(lines[0], 64, "%.63s", line);
		if (strncmp(line, "SigIgn:", 7) == 0)
			(void)snprintf(lines[1], 64, "%.63s", line);
	}
	if (f)
		(void)fclose(f);
}

static void signals_are_as_at_start(void **state)
{
	sigset_t set;

	(void)state;
	(void)signal(SIGUSR2, SIG_IGN);
	(void)signal(SIGHUP, SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	/* No shell in between: some clear the mask. */
	for (int i = 0; i < 2; i++)
		assert_int_equal(
			run((char *[]){"grep", "-qx", start_signals[i], "/proc/self/status", NULL}),
			0);
}

/* 't': stopped by who traces it. */
static char state_of(pid_t pid)
{
	char path[64], text[512] = "";
	_cleanup_close_ int fd = -1;
	const char *at;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0 && read(fd, text, sizeof(text) - 1) > 0);
	at = strrchr(text, ')');
	assert_non_null(at);
	return at[2];
}

/* A program that is held is there, and has not executed anything; signals that came before do not
 * keep it from its exec. */
static void is_held_at_its_exec(void **state)
{
	static const int signals[] = {0, SIGWINCH, SIGCHLD};

	(void)state;
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		struct target *t = spawn((char *[]){"sh", "-c", "exit 7", NULL});
		int status = 0;

		target_hold(t);
		if (signals[i])
			assert_int_equal(kill(target_pid(t), signals[i]), 0);
		assert_int_equal(target_exec(t, NULL), 0);
		assert_false(ended(t, 100));
		assert_int_equal(state_of(target_pid(t)), 't');
		target_release(t);
		assert_true(ended(t, 60000));
		assert_int_equal(target_reap(t, &status), 0);
		assert_int_equal(target_exit_code(status), 7);
		target_free(t);
	}
}

static void what_is_held_may_fail(void **state)
{
	static const char missing[] = "#!/nonexistent/interpreter\n";
	struct target *t = spawn((char *[]){"sh", "-c", "exit 7", NULL});
	struct error e = {0};
	int status = 0;

	(void)state;
	/* Ended by a signal before its exec: no failure of the launch. */
	target_hold(t);
	assert_int_equal(kill(target_pid(t), SIGTERM), 0);
	assert_int_equal(target_exec(t, &e), 0);
	target_release(t);
	assert_true(ended(t, 60000));
	assert_int_equal(target_reap(t, &status), 0);
	assert_int_equal(target_exit_code(status), 128 + SIGTERM);
	target_free(t);
	write_script(missing, strlen(missing));
	t = spawn((char *[]){script, NULL});
	target_hold(t);
	assert_int_equal(target_exec(t, &e), -ENOENT);
	target_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exit_codes),
		cmocka_unit_test(stops_before_exec),
		cmocka_unit_test(is_mapped_after_exec),
		cmocka_unit_test(is_held_at_its_exec),
		cmocka_unit_test(what_is_held_may_fail),
		cmocka_unit_test(failures_of_exec),
		cmocka_unit_test(ends_when_exec_hangs),
		cmocka_unit_test(scripts),
		cmocka_unit_test(unknown_command),
		cmocka_unit_test(free_kills_only_before_exec),
		cmocka_unit_test(killed_before_exec),
		cmocka_unit_test(dies_with_the_launcher),
		cmocka_unit_test(program_outlives_the_launcher),
		cmocka_unit_test(signals_are_as_at_start),
	};
	sigset_t set;
	ssize_t n = readlink("/proc/self/exe", own_exe, sizeof(own_exe) - 1);
	int fd, r;

	/* Something to inherit: one blocked, one ignored. */
	(void)signal(SIGHUP, SIG_IGN);
	sigemptyset(&set);
	sigaddset(&set, SIGWINCH);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	read_signals(start_signals);
	target_save_signals();
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1);
	fd = mkstemp(script);
	if (n <= 0 || fd < 0 || fchmod(fd, 0755) < 0)
		return 1;
	(void)close(fd);
	r = cmocka_run_group_tests(tests, NULL, NULL);
	(void)unlink(script);
	return r;
}
