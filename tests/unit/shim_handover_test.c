// SPDX-License-Identifier: BSD-2-Clause
/* The preloaded library in programs that start others: it goes along, asks nobody but its
 * controller, and touches nothing else. */
#include "tests/unit/preload_server.h"

#include <pthread.h>
#include <spawn.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

/* A shell that starts a shell that starts a program: each has the library, and none sees it. */
static void goes_along(void **state)
{
	static const char script[] = "printenv LD_PRELOAD; ls /proc/self/fd | wc -l; "
				     "exec sh -c 'printenv LD_PRELOAD; grep -c cozbpf-shim "
				     "/proc/self/maps; exec env sh -c \"exit 7\"'";
	char out[] = "/tmp/cozbpf-preload-XXXXXX", text[256] = "", command[512];
	char *argv[] = {(char *)(uintptr_t) "sh", (char *)(uintptr_t) "-c", command, NULL};
	struct fixture f;
	int fd = mkostemp(out, O_CLOEXEC);
	unsigned int descriptors = 0, native = 0, mapped = 0;
	FILE *shell = popen("ls /proc/self/fd | wc -l", "re");

	(void)state;
	assert_true(fd >= 0 && shell);
	assert_int_equal(fscanf(shell, "%u", &native), 1);
	(void)pclose(shell);
	(void)snprintf(command, sizeof(command), "{ %s; } >%s", script, out);
	make(&f);
	assert_int_equal(end_of(start_program(&f, argv)), 7);
	assert_true(read(fd, text, sizeof(text) - 1) > 0);
	(void)close(fd);
	(void)unlink(out);
	/* No LD_PRELOAD is printed by anybody; `grep` has the library. */
	if (sscanf(text, "%u %u", &descriptors, &mapped) != 2)
		fail_msg("%s", text);
	assert_int_equal(descriptors, native);
	assert_true(mapped > 0);
	assert_true(__atomic_load_n(&f.heard->n_ready, __ATOMIC_ACQUIRE) >= 4);
	server_stop(&f);
}

/* What another one answers under the name that was ours. */
struct impostor {
	const char *name;
	int connected;
	int fds[SHIM_FDS + 1];
	int n;
};

/* As anybody can write it: the page says that there is somebody to ask. Ends when nobody asks any
 * more. The result: how many did. */
static int pretend(struct impostor *i, int ready)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	const struct timeval patience = {.tv_sec = 1};
	size_t n = strlen(i->name);
	int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), client, asked = 0;
	char byte = 0;

	memcpy(at.sun_path + 1, i->name, n);
	if (bind(listener, (struct sockaddr *)&at,
		 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n)) < 0 ||
	    listen(listener, 8) < 0)
		return -1;
	(void)setsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	(void)write(ready, &byte, 1);
	while ((client = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
		i->connected++;
		union {
			struct cmsghdr head;
			char room[CMSG_SPACE(sizeof(i->fds))];
		} control = {0};
		struct iovec part = {&byte, 1};
		struct msghdr m = {.msg_iov = &part,
				   .msg_iovlen = 1,
				   .msg_control = &control,
				   .msg_controllen = CMSG_SPACE((size_t)i->n * sizeof(int))};
		struct cmsghdr *c = CMSG_FIRSTHDR(&m);

		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN((size_t)i->n * sizeof(int));
		memcpy(CMSG_DATA(c), i->fds, (size_t)i->n * sizeof(int));
		if (recv(client, &byte, 1, 0) == 1) {
			asked++;
			(void)sendmsg(client, &m, MSG_NOSIGNAL);
		}
		(void)close(client);
	}
	(void)close(listener);
	return asked;
}

static void *pretend_in_thread(void *arg)
{
	struct impostor *i = ((void **)arg)[0];

	return (void *)(intptr_t)pretend(i, (int)(intptr_t)((void **)arg)[1]);
}

static unsigned int open_descriptors(void)
{
	unsigned int n = 0;

	for (int fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* The program: when told to, it starts others, and writes what one maps and how many descriptors it
 * has more than before. */
static int starts_programs(const char *fifo, const char *out)
{
	int go = open(fifo, O_RDONLY | O_CLOEXEC), status;
	unsigned int before = open_descriptors();
	char byte, command[256];
	FILE *file;

	if (read(go, &byte, 1) != 1)
		return 1;
	(void)snprintf(command, sizeof(command), "exec grep -c memfd: /proc/self/maps >%s", out);
	status = system(command);
	file = fopen(out, "ae");
	if (!file || !WIFEXITED(status) || system("true") != 0)
		return 1;
	(void)fprintf(file, "%u\n", open_descriptors() - 1 - before);
	return fclose(file) == 0 ? 0 : 1;
}

/* A program has the library, and we have ended. Then the name is @i's, of this process or another
 * one, and the program starts others: what these map, and what it has of descriptors left. Returns
 * how often @i was asked. */
static int deceive(struct fixture *f, struct impostor *i, bool other_process,
		   unsigned int *ret_mapped, unsigned int *ret_left)
{
	char out[] = "/tmp/cozbpf-preload-XXXXXX", fifo[64], text[64] = "", byte;
	char *argv[] = {own_exe, (char *)(uintptr_t) "starts", fifo, out, NULL};
	int fd = mkostemp(out, O_CLOEXEC), ready[2], go, asked = 0;
	struct target *t;
	pthread_t thread;
	pid_t pid = -1;
	void *args[2], *result;

	assert_true(fd >= 0 && pipe2(ready, O_CLOEXEC) == 0);
	(void)snprintf(fifo, sizeof(fifo), "%s.go", out);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	t = start_program(f, argv);
	go = open(fifo, O_WRONLY | O_CLOEXEC); /* it runs now */
	assert_true(go >= 0);
	preload_stop(f->server);
	f->server = NULL;
	f->page->serves = 1;
	i->name = f->name;
	args[0] = i;
	args[1] = (void *)(intptr_t)ready[1];
	if (!other_process)
		assert_int_equal(pthread_create(&thread, NULL, pretend_in_thread, args), 0);
	else if ((pid = fork()) == 0)
		_exit(pretend(i, ready[1]) & 0xff);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_int_equal(write(go, "\n", 1), 1);
	(void)close(go);
	assert_int_equal(end_of(t), 0);
	if (pid > 0) {
		assert_int_equal(waitpid(pid, &asked, 0), pid);
		asked = WEXITSTATUS(asked);
	} else {
		assert_int_equal(pthread_join(thread, &result), 0);
		asked = (int)(intptr_t)result;
	}
	assert_true(read(fd, text, sizeof(text) - 1) > 0);
	if (sscanf(text, "%u %u", ret_mapped, ret_left) != 2)
		fail_msg("%s", text);
	(void)close(fd);
	(void)close(ready[0]);
	(void)close(ready[1]);
	(void)unlink(out);
	(void)unlink(fifo);
	return asked;
}

/* After our end anybody in the network namespace can bind the name. */
static void asks_nobody_else(void **state)
{
	struct impostor *i =
		mmap(NULL, sizeof(*i), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	unsigned int mapped, left;
	struct fixture f, other;

	(void)state;
	assert_true(i != MAP_FAILED);
	start(&other);
	*i = (struct impostor){.fds = {other.image_fd, other.page_fd, other.slots_fd},
			       .n = SHIM_FDS};
	make(&f);
	/* Another process of the same user is not even asked, and the next time nobody connects to
	 * it. */
	assert_int_equal(deceive(&f, i, true, &mapped, &left), 0);
	assert_int_equal(i->connected, 1);
	assert_int_equal(mapped, 0);
	assert_int_equal(left, 0);
	(void)munmap(i, sizeof(*i));
	server_stop(&f);
	server_stop(&other);
}

/* Were it the controller that is deceived: descriptors of other files are neither taken nor kept.
 */
static void takes_nothing_else(void **state)
{
	static const char *const cases[] = {"all others", "the image", "the page",
					    "the slots",  "too few",   "too many"};
	unsigned int mapped, left;
	struct fixture f, other;

	(void)state;
	start(&other);
	for (size_t k = 0; k < sizeof(cases) / sizeof(*cases); k++) {
		struct impostor i;
		int image = -1;

		make(&f);
		/* The contents are the same in every byte: it is not the file that was loaded. */
		assert_int_equal(target_make_image(&f.spec, &image, NULL), 0);
		i = (struct impostor){.fds = {image, f.page_fd, f.slots_fd, f.slots_fd},
				      .n = k == 4   ? 2
					   : k == 5 ? 4
						    : 3};
		if (k == 0 || k == 2)
			i.fds[1] = other.page_fd;
		if (k == 0 || k == 3)
			i.fds[2] = other.slots_fd;
		if (!deceive(&f, &i, false, &mapped, &left) || mapped || left)
			fail_msg("%s: %u mappings, %u descriptors are left", cases[k], mapped,
				 left);
		(void)close(image);
		server_stop(&f);
	}
	server_stop(&other);
}

static void *run_shell(void *fifo)
{
	char command[256];

	(void)snprintf(command, sizeof(command), "exec cat %s", (char *)fifo);
	return (void *)(intptr_t)system(command);
}

/* The program: while one thread waits for a shell, another one puts files of its own where the
 * library has its descriptors. */
static int uses_the_numbers(const char *fifo)
{
	int own = memfd_create("own", MFD_CLOEXEC), first = 0, go;
	bool used[1024], kept = true;
	struct stat st, is;
	pthread_t thread;
	void *status;

	for (int fd = 0; fd < 1024; fd++)
		used[fd] = fcntl(fd, F_GETFD) >= 0;
	CHECK(own >= 0 && fstat(own, &st) == 0 &&
	      pthread_create(&thread, NULL, run_shell, (void *)(uintptr_t)fifo) == 0);
	go = open(fifo, O_WRONLY | O_CLOEXEC); /* the shell reads it now */
	for (int fd = 0; fd < 1024 && !first; fd++)
		if (fd != go && !used[fd] && fcntl(fd, F_GETFD) >= 0)
			first = fd;
	CHECK(first);
	for (int i = 0; i < SHIM_FDS; i++)
		CHECK(dup2(own, first + i) >= 0);
	(void)close(go);
	CHECK(pthread_join(thread, &status) == 0 && status == NULL);
	for (int i = 0; i < SHIM_FDS; i++)
		kept &= fstat(first + i, &is) == 0 && is.st_ino == st.st_ino;
	return !kept;
}

static void leaves_other_files(void **state)
{
	char fifo[] = "/tmp/cozbpf-preload-XXXXXX";
	char *argv[] = {own_exe, (char *)(uintptr_t) "numbers", fifo, NULL};
	struct fixture f;

	(void)state;
	assert_true(mkdtemp(fifo) && rmdir(fifo) == 0 && mkfifo(fifo, 0600) == 0);
	make(&f);
	assert_int_equal(end_of(start_program(&f, argv)), 0);
	(void)unlink(fifo);
	server_stop(&f);
}

static void *spawn_when_cancelled(void *arg)
{
	char *argv[] = {(char *)(uintptr_t) "true", NULL};
	pid_t pid;

	(void)pthread_cancel(pthread_self());
	if (posix_spawnp(&pid, "true", NULL, NULL, argv, environ) == 0)
		*(pid_t *)arg = pid;
	return NULL;
}

/* The program: posix_spawn is no cancellation point, nor is exec. */
static int spawns_when_cancelled(void)
{
	pthread_t thread;
	pid_t pid = 0;

	CHECK(pthread_create(&thread, NULL, spawn_when_cancelled, &pid) == 0 &&
	      pthread_join(thread, NULL) == 0);
	return pid <= 0 || waitpid(pid, NULL, 0) != pid;
}

static void is_no_cancellation_point(void **state)
{
	char *argv[] = {own_exe, (char *)(uintptr_t) "cancelled", NULL};
	struct fixture f;

	(void)state;
	make(&f);
	assert_int_equal(end_of(start_program(&f, argv)), 0);
	/* `true` has the library, too. */
	assert_int_equal(f.heard->n_ready, 1);
	server_stop(&f);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(goes_along),
		cmocka_unit_test(asks_nobody_else),
		cmocka_unit_test(takes_nothing_else),
		cmocka_unit_test(leaves_other_files),
		cmocka_unit_test(is_no_cancellation_point),
	};

	if (argc == 2)
		return spawns_when_cancelled();
	if (argc == 3)
		return uses_the_numbers(argv[2]);
	if (argc == 4)
		return starts_programs(argv[2], argv[3]);
	prepare_children();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
