// SPDX-License-Identifier: BSD-2-Clause
/* The server that hands the preloaded library on: whom it answers, and that it ends. */
#include "tests/unit/preload_server.h"

#include <netinet/in.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

/* How many descriptors come with the answer; -1: there is none. */
static int asked(const char *name, char what)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(8 * sizeof(int))];
	} control;
	char answer;
	struct iovec part = {&answer, 1};
	struct msghdr m = {.msg_iov = &part,
			   .msg_iovlen = 1,
			   .msg_control = &control,
			   .msg_controllen = sizeof(control)};
	int s = connect_to(name), n = 0;
	struct cmsghdr *c;

	assert_true(s >= 0);
	/* A stranger's connection may be closed already. */
	if (send(s, &what, 1, MSG_NOSIGNAL) != 1 || recvmsg(s, &m, MSG_CMSG_CLOEXEC) != 1)
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
			assert_int_equal(st.st_size, shim_image_size + sizeof(struct shim_launch));
		if (i == 1)
			assert_int_equal(st.st_size, sizeof(struct shim_page));
		(void)close(fd);
	}
	return n;
}

static void answers_what_it_knows(void **state)
{
	struct fixture f;

	(void)state;
	start(&f);
	assert_int_equal(f.page->serves, 1);
	assert_int_equal(asked(f.name, SHIM_ASK_DESCRIPTORS), SHIM_FDS);
	assert_int_equal(asked(f.name, SHIM_ASK_READY), 0);
	assert_int_equal(f.heard->n_ready, 1);
	assert_int_equal(f.heard->ready[0], getpid());
	assert_int_equal(asked(f.name, 'x'), -1);
	(void)close(connect_to(f.name)); /* says nothing */
	assert_int_equal(asked(f.name, SHIM_ASK_DESCRIPTORS), SHIM_FDS);
	preload_stop(f.server);
	f.server = NULL;
	assert_int_equal(f.page->serves, 0);
	assert_int_equal(connect_to(f.name), -1);
	server_stop(&f);
}

static void turns_strangers_away(void **state)
{
	struct fixture f;

	(void)state;
	start(&f);
	f.heard->turns_away = true;
	assert_int_equal(asked(f.name, SHIM_ASK_DESCRIPTORS), -1);
	assert_int_equal(asked(f.name, SHIM_ASK_READY), -1);
	assert_int_equal(f.heard->n_ready, 0);
	server_stop(&f);
}

/* The number of one that has ended may be another's. */
static void answers_the_living(void **state)
{
	int client = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct fixture f;
	pid_t pid;

	(void)state;
	start(&f);
	pid = fork();
	if (pid == 0)
		_exit(!connects(client, f.name));
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	if (send(client, &(char){SHIM_ASK_READY}, 1, MSG_NOSIGNAL) == 1)
		assert_true(recv(client, &(char){0}, 1, 0) <= 0);
	assert_int_equal(f.heard->n_ready, 0);
	(void)close(client);
	server_stop(&f);
}

/* Without a free descriptor no connection can be accepted; meanwhile the server does not run in
 * circles. */
static void waits_for_descriptors(void **state)
{
	const struct timespec time = {.tv_nsec = 400000000};
	struct timespec before, after;
	struct rlimit old, low;
	struct fixture f;
	clockid_t clock;
	int client;

	(void)state;
	start(&f);
	assert_int_equal(asked(f.name, SHIM_ASK_DESCRIPTORS), SHIM_FDS);
	assert_int_equal(clock_getcpuclockid(f.heard->server, &clock), 0);
	assert_int_equal(prlimit(f.heard->server, RLIMIT_NOFILE, NULL, &old), 0);
	low = old;
	low.rlim_cur = 0;
	assert_int_equal(prlimit(f.heard->server, RLIMIT_NOFILE, &low, NULL), 0);
	/* A number may be set aside for the first one already. */
	(void)close(connect_to(f.name));
	client = connect_to(f.name);
	assert_true(client >= 0);
	(void)clock_gettime(clock, &before);
	(void)nanosleep(&time, NULL);
	(void)clock_gettime(clock, &after);
	assert_int_equal(prlimit(f.heard->server, RLIMIT_NOFILE, &old, NULL), 0);
	/* It takes less than a tenth of one CPU. */
	assert_true((after.tv_sec - before.tv_sec) * 1000000000L + after.tv_nsec - before.tv_nsec <
		    time.tv_nsec / 10);
	/* What waited is answered now. */
	assert_int_equal(send(client, &(char){SHIM_ASK_READY}, 1, MSG_NOSIGNAL), 1);
	assert_int_equal(recv(client, &(char){0}, 1, 0), 1);
	(void)close(client);
	server_stop(&f);
}

/* A connection with a peer that reads nothing, full, whose end waits for years. */
static int make_lingering(int *ret_peer)
{
	const struct linger years = {.l_onoff = 1, .l_linger = 1000000};
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t size = sizeof(at);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0),
	    s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	static const char bytes[65536];

	assert_true(bind(listener, (struct sockaddr *)&at, sizeof(at)) == 0 &&
		    listen(listener, 1) == 0 &&
		    getsockname(listener, (struct sockaddr *)&at, &size) == 0 &&
		    connect(s, (struct sockaddr *)&at, size) == 0);
	*ret_peer = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	assert_true(*ret_peer >= 0 &&
		    setsockopt(s, SOL_SOCKET, SO_LINGER, &years, sizeof(years)) == 0);
	while (send(s, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
	(void)close(listener);
	return s;
}

/* Newer kernels refuse to. */
static void send_away(int to, int fd)
{
	const struct linger none = {0};
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(fd))];
	} control = {.head = {.cmsg_level = SOL_SOCKET,
			      .cmsg_type = SCM_RIGHTS,
			      .cmsg_len = CMSG_LEN(sizeof(fd))}};
	struct iovec part = {&(char){SHIM_ASK_READY}, 1};
	struct msghdr m = {.msg_iov = &part,
			   .msg_iovlen = 1,
			   .msg_control = &control,
			   .msg_controllen = sizeof(control)};

	memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
	if (sendmsg(to, &m, MSG_NOSIGNAL) < 0)
		(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
	(void)close(fd);
}

/* What a stranger sends may take for ever to close, in a connection that is served and in one that
 * is never accepted. */
static void ends_whatever_it_is_sent(void **state)
{
	int clients[8], peers[8];
	struct fixture f;

	(void)state;
	start(&f);
	f.heard->turns_away = true;
	(void)alarm(20);
	for (int i = 0; i < 8; i++) {
		clients[i] = connect_to(f.name);
		assert_true(clients[i] >= 0);
		send_away(clients[i], make_lingering(&peers[i]));
	}
	preload_stop(f.server);
	(void)alarm(0);
	f.server = NULL;
	for (int i = 0; i < 8; i++) {
		(void)close(clients[i]);
		(void)close(peers[i]);
	}
	server_stop(&f);
}

/* A program that waits for our pipes' ends must not wait for the server, nor the kernel for its
 * probes. */
static void keeps_nothing_else(void **state)
{
	int ends[2];
	struct fixture f;
	char path[64], byte;

	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	start(&f);
	assert_int_equal(asked(f.name, SHIM_ASK_DESCRIPTORS), SHIM_FDS);
	(void)close(ends[1]);
	(void)alarm(20);
	assert_int_equal(read(ends[0], &byte, 1), 0);
	(void)alarm(0);
	(void)close(ends[0]);
	(void)snprintf(path, sizeof(path), "/proc/%d", (int)f.heard->server);
	preload_stop(f.server);
	f.server = NULL;
	assert_int_equal(access(path, F_OK), -1);
	server_stop(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers_what_it_knows),    cmocka_unit_test(turns_strangers_away),
		cmocka_unit_test(answers_the_living),	    cmocka_unit_test(waits_for_descriptors),
		cmocka_unit_test(ends_whatever_it_is_sent), cmocka_unit_test(keeps_nothing_else),
	};

	prepare_children();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
