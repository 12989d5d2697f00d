// SPDX-License-Identifier: BSD-2-Clause
/* The library's hand-over: the server's side, and the library's in programs that start others. */
#include "base/error.h"
#include "shared/shim_abi.h"
#include "shim/image.h"
#include "target/launch.h"
#include "target/preload.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

struct fixture {
	struct shim_page *page;
	int page_fd, slots_fd;
	struct preload_server *server;
	pid_t ready[64];
	int n_ready;
};

static void on_ready(void *arg, pid_t pid, int has)
{
	struct fixture *f = arg;

	if (has && f->n_ready < 64)
		f->ready[__atomic_fetch_add(&f->n_ready, 1, __ATOMIC_RELEASE)] = pid;
}

static void start(struct fixture *f, uid_t uid)
{
	struct preload_options o = {.shim = shim_image, .shim_size = shim_image_size, .uid = uid, .ready = on_ready, .arg = f};
	struct error e = {.text = ""};

	*f = (struct fixture){.page_fd = memfd_create("page", MFD_CLOEXEC), .slots_fd = memfd_create("slots", MFD_CLOEXEC)};
	assert_int_equal(ftruncate(f->page_fd, sizeof(struct shim_page)), 0);
	assert_int_equal(ftruncate(f->slots_fd, SHIM_SLOTS * sizeof(struct shim_slot)), 0);
	f->page = mmap(NULL, sizeof(*f->page), PROT_READ | PROT_WRITE, MAP_SHARED, f->page_fd, 0);
	assert_ptr_not_equal(f->page, MAP_FAILED);
	f->page->magic = SHIM_MAGIC;
	o.page_fd = f->page_fd;
	o.slots_fd = f->slots_fd;
	if (preload_serve(&o, &f->server, f->page->server, &e) < 0)
		fail_msg("%s", e.text);
}

static void stop(struct fixture *f)
{
	preload_stop(f->server);
	(void)munmap(f->page, sizeof(*f->page));
	(void)close(f->page_fd);
	(void)close(f->slots_fd);
}

static int connect_to(const char *name)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	size_t n = strnlen(name, SHIM_SERVER_NAME);
	int s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	assert_true(s >= 0 && n > 8 && n < SHIM_SERVER_NAME);
	memcpy(to.sun_path + 1, name, n);
	if (connect(s, (const struct sockaddr *)&to, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n)) == 0)
		return s;
	(void)close(s);
	return -1;
}

/* How many descriptors come with the answer; -1: there is none. */
static int asked(const char *name, char what)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(8 * sizeof(int))];
	} control;
	char answer;
	struct iovec part = {&answer, 1};
	struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
	int s = connect_to(name), n = 0;
	struct cmsghdr *c;

	assert_true(s >= 0);
	assert_int_equal(send(s, &what, 1, MSG_NOSIGNAL), 1);
	if (recvmsg(s, &m, MSG_CMSG_CLOEXEC) != 1)
		n = -1;
	(void)close(s);
	c = n == 0 ? CMSG_FIRSTHDR(&m) : NULL;
	if (!c)
		return n;
	n = (int)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
	for (int i = 0; i < n; i++) {
		struct stat st;
		int fd;

		memcpy(&fd, CMSG_DATA(c) + (size_t)i * sizeof(fd), sizeof(fd));
		assert_int_equal(fstat(fd, &st), 0);
		if (i == 0)
			assert_int_equal(st.st_size, shim_image_size);
		if (i == 1)
			assert_int_equal(st.st_size, sizeof(struct shim_page));
		(void)close(fd);
	}
	return n;
}

static void answers_what_it_knows(void **state)
{
	struct fixture f;
	char name[SHIM_SERVER_NAME];

	(void)state;
	start(&f, getuid());
	assert_int_equal(asked(f.page->server, SHIM_ASK_DESCRIPTORS), SHIM_FDS);
	assert_int_equal(asked(f.page->server, SHIM_ASK_READY), 0);
	assert_int_equal(f.n_ready, 1);
	assert_int_equal(f.ready[0], getpid());
	assert_int_equal(asked(f.page->server, 'x'), -1);
	(void)close(connect_to(f.page->server)); /* says nothing */
	assert_int_equal(asked(f.page->server, SHIM_ASK_DESCRIPTORS), SHIM_FDS);
	memcpy(name, f.page->server, sizeof(name));
	stop(&f);
	assert_int_equal(connect_to(name), -1);
}

static void answers_only_its_user(void **state)
{
	struct fixture f;

	(void)state;
	if (getuid() == 0) {
		print_message("root may ask whoever else may\n");
		return;
	}
	start(&f, getuid() + 1);
	assert_int_equal(asked(f.page->server, SHIM_ASK_DESCRIPTORS), -1);
	stop(&f);
}

/* A shell that starts a shell that starts a program: each has the library, and none sees it. */
static void goes_along(void **state)
{
	static const char script[] = "printenv LD_PRELOAD; ls /proc/self/fd | wc -l; "
				     "exec sh -c 'printenv LD_PRELOAD; grep -c cozbpf-shim /proc/self/maps; exec env sh -c \"exit 7\"'";
	char out[] = "/tmp/cozbpf-preload-XXXXXX", text[256] = "", command[512];
	struct target_spec spec = {.shim = shim_image, .shim_size = shim_image_size};
	char *argv[] = {(char *)(uintptr_t)"sh", (char *)(uintptr_t)"-c", command, NULL};
	struct target *t;
	struct error e = {.text = ""};
	struct fixture f;
	int fd = mkostemp(out, O_CLOEXEC), status;
	unsigned int descriptors = 0, native = 0, mapped = 0;
	FILE *shell = popen("ls /proc/self/fd | wc -l", "re");

	(void)state;
	assert_true(fd >= 0 && shell);
	assert_int_equal(fscanf(shell, "%u", &native), 1);
	(void)pclose(shell);
	(void)snprintf(command, sizeof(command), "{ %s; } >%s", script, out);
	start(&f, getuid());
	spec.argv = argv;
	spec.page_fd = f.page_fd;
	spec.slots_fd = f.slots_fd;
	if (target_spawn(&spec, &t, &e) < 0 || target_exec(t, &e) < 0)
		fail_msg("%s", e.text);
	assert_int_equal(target_reap(t, &status), 0);
	target_free(t);
	assert_int_equal(target_exit_code(status), 7);
	assert_true(read(fd, text, sizeof(text) - 1) > 0);
	(void)close(fd);
	(void)unlink(out);
	/* No LD_PRELOAD is printed by anybody; `grep` has the library. */
	if (sscanf(text, "%u %u", &descriptors, &mapped) != 2)
		fail_msg("%s", text);
	assert_int_equal(descriptors, native);
	assert_true(mapped > 0);
	assert_true(__atomic_load_n(&f.n_ready, __ATOMIC_ACQUIRE) >= 4);
	stop(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers_what_it_knows),
		cmocka_unit_test(answers_only_its_user),
		cmocka_unit_test(goes_along),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
