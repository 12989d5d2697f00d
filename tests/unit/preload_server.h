/* SPDX-License-Identifier: BSD-2-Clause */
/* A server of the preloaded library, with its page and slots, for tests of either side of the
 * hand-over. */
#pragma once

#include "tests/unit/shim_child.h"

#include "shared/shim_launch.h"
#include "target/shim/image.h"
#include "target/internal.h"
#include "target/preload.h"

#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

struct fixture {
	char name[SHIM_SERVER_NAME];
	struct shim_page *page;
	int page_fd, slots_fd, image_fd;
	struct target_spec spec;
	struct preload_server *server;
	struct callbacks *heard;
};

/* In memory that the server shares. */
struct callbacks {
	bool turns_away;
	pid_t server;
	pid_t ready[64];
	int n_ready;
};

static inline void on_ready(void *arg, pid_t pid, int has)
{
	struct callbacks *c = arg;

	if (has && c->n_ready < 64)
		c->ready[__atomic_fetch_add(&c->n_ready, 1, __ATOMIC_RELEASE)] = pid;
}

static inline bool may_ask(void *arg, pid_t pid)
{
	struct callbacks *c = arg;

	__atomic_store_n(&c->server, getpid(), __ATOMIC_RELEASE);
	return pid > 0 && !c->turns_away;
}

static inline void make(struct fixture *f)
{
	*f = (struct fixture){.slots_fd = memfd_create("slots", MFD_CLOEXEC), .image_fd = -1};
	f->heard = mmap(NULL, sizeof(*f->heard), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			-1, 0);
	assert_true(f->heard != MAP_FAILED);
	assert_int_equal(target_make_page(&f->page_fd, &f->page, NULL), 0);
	assert_int_equal(ftruncate(f->slots_fd, SHIM_ENTRIES * sizeof(struct shim_slot)), 0);
	assert_int_equal(preload_name(f->name, NULL), 0);
	f->spec = (struct target_spec){.shim = shim_image,
				       .shim_size = shim_image_size,
				       .page_fd = f->page_fd,
				       .slots_fd = f->slots_fd,
				       .server = f->name};
}

static inline void serve(struct fixture *f, int image_fd)
{
	struct preload_options o = {.name = f->name,
				    .page = f->page,
				    .image_fd = image_fd,
				    .page_fd = f->page_fd,
				    .slots_fd = f->slots_fd,
				    .may_ask = may_ask,
				    .ready = on_ready,
				    .arg = f->heard,
				    .arg_fd = -1};
	struct error e = {.text = ""};

	if (preload_serve(&o, &f->server, &e) < 0)
		fail_msg("%s", e.text);
}

static inline void start(struct fixture *f)
{
	make(f);
	assert_int_equal(target_make_image(&f->spec, &f->image_fd, NULL), 0);
	serve(f, f->image_fd);
}

static inline void server_stop(struct fixture *f)
{
	preload_stop(f->server);
	(void)munmap(f->page, sizeof(*f->page));
	(void)munmap(f->heard, sizeof(*f->heard));
	(void)close(f->page_fd);
	(void)close(f->slots_fd);
	if (f->image_fd >= 0)
		(void)close(f->image_fd);
}

/* Starts a program that has the library, and is served. */
static inline struct target *start_program(struct fixture *f, char **argv)
{
	struct error e = {.text = ""};
	struct target *t;

	f->spec.argv = argv;
	if (target_spawn(&f->spec, &t, &e) < 0)
		fail_msg("%s", e.text);
	serve(f, target_image_fd(t));
	if (target_exec(t, &e) < 0)
		fail_msg("%s", e.text);
	return t;
}

static inline int end_of(struct target *t)
{
	int status;

	assert_int_equal(target_reap(t, &status), 0);
	target_free(t);
	return target_exit_code(status);
}

static inline bool connects(int s, const char *name)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	size_t n = strnlen(name, SHIM_SERVER_NAME);

	assert_true(s >= 0 && n > 8 && n < SHIM_SERVER_NAME);
	memcpy(to.sun_path + 1, name, n);
	return connect(s, (const struct sockaddr *)&to,
		       (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n)) == 0;
}

static inline int connect_to(const char *name)
{
	int s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (connects(s, name))
		return s;
	(void)close(s);
	return -1;
}
