// SPDX-License-Identifier: BSD-2-Clause
/* The library's hand-over: the server's side, and the library's in programs that start others. */
#include "tests/unit/shim_child.h"

#include "shared/shim_launch.h"
#include "shim/image.h"
#include "target/internal.h"
#include "target/preload.h"

#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <spawn.h>
#include <stddef.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

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

static void on_ready(void *arg, pid_t pid, int has)
{
	struct callbacks *c = arg;

	if (has && c->n_ready < 64)
		c->ready[__atomic_fetch_add(&c->n_ready, 1, __ATOMIC_RELEASE)] = pid;
}

static bool may_ask(void *arg, pid_t pid)
{
	struct callbacks *c = arg;

	__atomic_store_n(&c->server, getpid(), __ATOMIC_RELEASE);
	return pid > 0 && !c->turns_away;
}

static void make(struct fixture *f)
{
	*f = (struct fixture){.slots_fd = memfd_create("slots", MFD_CLOEXEC), .image_fd = -1};
	f->heard = mmap(NULL, sizeof(*f->heard), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(f->heard != MAP_FAILED);
	assert_int_equal(target_make_page(&f->page_fd, &f->page, NULL), 0);
	assert_int_equal(ftruncate(f->slots_fd, SHIM_ENTRIES * sizeof(struct shim_slot)), 0);
	assert_int_equal(preload_name(f->name, NULL), 0);
	f->spec = (struct target_spec){
		.shim = shim_image, .shim_size = shim_image_size, .page_fd = f->page_fd, .slots_fd = f->slots_fd, .server = f->name};
}

static void serve(struct fixture *f, int image_fd)
{
	struct preload_options o = {.name = f->name, .page = f->page, .image_fd = image_fd, .page_fd = f->page_fd,
				    .slots_fd = f->slots_fd, .may_ask = may_ask, .ready = on_ready, .arg = f->heard, .arg_fd = -1};
	struct error e = {.text = ""};

	if (preload_serve(&o, &f->server, &e) < 0)
		fail_msg("%s", e.text);
}

static void start(struct fixture *f)
{
	make(f);
	assert_int_equal(target_make_image(&f->spec, &f->image_fd, NULL), 0);
	serve(f, f->image_fd);
}

static void stop(struct fixture *f)
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
static struct target *start_program(struct fixture *f, char **argv)
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

static int end_of(struct target *t)
{
	int status;

	assert_int_equal(target_reap(t, &status), 0);
	target_free(t);
	return target_exit_code(status);
}

static bool connects(int s, const char *name)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	size_t n = strnlen(name, SHIM_SERVER_NAME);

	assert_true(s >= 0 && n > 8 && n < SHIM_SERVER_NAME);
	memcpy(to.sun_path + 1, name, n);
	return connect(s, (const struct sockaddr *)&to, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n)) == 0;
}

static int connect_to(const char *name)
{
	int s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (connects(s, name))
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
	stop(&f);
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
	stop(&f);
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
	stop(&f);
}

/* Without a free descriptor no connection can be accepted; meanwhile the server does not run in circles. */
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
	assert_true((after.tv_sec - before.tv_sec) * 1000000000L + after.tv_nsec - before.tv_nsec < time.tv_nsec / 10);
	/* What waited is answered now. */
	assert_int_equal(send(client, &(char){SHIM_ASK_READY}, 1, MSG_NOSIGNAL), 1);
	assert_int_equal(recv(client, &(char){0}, 1, 0), 1);
	(void)close(client);
	stop(&f);
}

/* A connection with a peer that reads nothing, full, whose end waits for years. */
static int make_lingering(int *ret_peer)
{
	const struct linger years = {.l_onoff = 1, .l_linger = 1000000};
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t size = sizeof(at);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	static const char bytes[65536];

	assert_true(bind(listener, (struct sockaddr *)&at, sizeof(at)) == 0 && listen(listener, 1) == 0 &&
		    getsockname(listener, (struct sockaddr *)&at, &size) == 0 && connect(s, (struct sockaddr *)&at, size) == 0);
	*ret_peer = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	assert_true(*ret_peer >= 0 && setsockopt(s, SOL_SOCKET, SO_LINGER, &years, sizeof(years)) == 0);
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
	} control = {.head = {.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(fd))}};
	struct iovec part = {&(char){SHIM_ASK_READY}, 1};
	struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};

	memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
	if (sendmsg(to, &m, MSG_NOSIGNAL) < 0)
		(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
	(void)close(fd);
}

/* What a stranger sends may take for ever to close, in a connection that is served and in one that is never accepted. */
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
	stop(&f);
}

/* A program that waits for our pipes' ends must not wait for the server, nor the kernel for its probes. */
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
	stop(&f);
}

/* A shell that starts a shell that starts a program: each has the library, and none sees it. */
static void goes_along(void **state)
{
	static const char script[] = "printenv LD_PRELOAD; ls /proc/self/fd | wc -l; "
				     "exec sh -c 'printenv LD_PRELOAD; grep -c cozbpf-shim /proc/self/maps; exec env sh -c \"exit 7\"'";
	char out[] = "/tmp/cozbpf-preload-XXXXXX", text[256] = "", command[512];
	char *argv[] = {(char *)(uintptr_t)"sh", (char *)(uintptr_t)"-c", command, NULL};
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
	stop(&f);
}

/* What another one answers under the name that was ours. */
struct impostor {
	const char *name;
	int connected;
	int fds[SHIM_FDS + 1];
	int n;
};

/* As anybody can write it: the page says that there is somebody to ask. Ends when nobody asks any more. The result: how many did. */
static int pretend(struct impostor *i, int ready)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	const struct timeval patience = {.tv_sec = 1};
	size_t n = strlen(i->name);
	int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), client, asked = 0;
	char byte = 0;

	memcpy(at.sun_path + 1, i->name, n);
	if (bind(listener, (struct sockaddr *)&at, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n)) < 0 || listen(listener, 8) < 0)
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
		struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = CMSG_SPACE((size_t)i->n * sizeof(int))};
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

/* The program: when told to, it starts others, and writes what one maps and how many descriptors it has more than before. */
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

/* A program has the library, and we have ended. Then the name is @i's, of this process or another one, and the program starts others: what
 * these map, and what it has of descriptors left. Returns how often @i was asked. */
static int deceive(struct fixture *f, struct impostor *i, bool other_process, unsigned int *ret_mapped, unsigned int *ret_left)
{
	char out[] = "/tmp/cozbpf-preload-XXXXXX", fifo[64], text[64] = "", byte;
	char *argv[] = {own_exe, (char *)(uintptr_t)"starts", fifo, out, NULL};
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
	struct impostor *i = mmap(NULL, sizeof(*i), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	unsigned int mapped, left;
	struct fixture f, other;

	(void)state;
	assert_true(i != MAP_FAILED);
	start(&other);
	*i = (struct impostor){.fds = {other.image_fd, other.page_fd, other.slots_fd}, .n = SHIM_FDS};
	make(&f);
	/* Another process of the same user is not even asked, and the next time nobody connects to it. */
	assert_int_equal(deceive(&f, i, true, &mapped, &left), 0);
	assert_int_equal(i->connected, 1);
	assert_int_equal(mapped, 0);
	assert_int_equal(left, 0);
	(void)munmap(i, sizeof(*i));
	stop(&f);
	stop(&other);
}

/* Were it the controller that is deceived: descriptors of other files are neither taken nor kept. */
static void takes_nothing_else(void **state)
{
	static const char *const cases[] = {"all others", "the image", "the page", "the slots", "too few", "too many"};
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
		i = (struct impostor){.fds = {image, f.page_fd, f.slots_fd, f.slots_fd}, .n = k == 4 ? 2 : k == 5 ? 4 : 3};
		if (k == 0 || k == 2)
			i.fds[1] = other.page_fd;
		if (k == 0 || k == 3)
			i.fds[2] = other.slots_fd;
		if (!deceive(&f, &i, false, &mapped, &left) || mapped || left)
			fail_msg("%s: %u mappings, %u descriptors are left", cases[k], mapped, left);
		(void)close(image);
		stop(&f);
	}
	stop(&other);
}

static void *run_shell(void *fifo)
{
	char command[256];

	(void)snprintf(command, sizeof(command), "exec cat %s", (char *)fifo);
	return (void *)(intptr_t)system(command);
}

/* The program: while one thread waits for a shell, another one puts files of its own where the library has its descriptors. */
static int uses_the_numbers(const char *fifo)
{
	int own = memfd_create("own", MFD_CLOEXEC), first = 0, go;
	bool used[1024], kept = true;
	struct stat st, is;
	pthread_t thread;
	void *status;

	for (int fd = 0; fd < 1024; fd++)
		used[fd] = fcntl(fd, F_GETFD) >= 0;
	CHECK(own >= 0 && fstat(own, &st) == 0 && pthread_create(&thread, NULL, run_shell, (void *)(uintptr_t)fifo) == 0);
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
	char *argv[] = {own_exe, (char *)(uintptr_t)"numbers", fifo, NULL};
	struct fixture f;

	(void)state;
	assert_true(mkdtemp(fifo) && rmdir(fifo) == 0 && mkfifo(fifo, 0600) == 0);
	make(&f);
	assert_int_equal(end_of(start_program(&f, argv)), 0);
	(void)unlink(fifo);
	stop(&f);
}

static void *spawn_when_cancelled(void *arg)
{
	char *argv[] = {(char *)(uintptr_t)"true", NULL};
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

	CHECK(pthread_create(&thread, NULL, spawn_when_cancelled, &pid) == 0 && pthread_join(thread, NULL) == 0);
	return pid <= 0 || waitpid(pid, NULL, 0) != pid;
}

static void is_no_cancellation_point(void **state)
{
	char *argv[] = {own_exe, (char *)(uintptr_t)"cancelled", NULL};
	struct fixture f;

	(void)state;
	make(&f);
	assert_int_equal(end_of(start_program(&f, argv)), 0);
	/* `true` has the library, too. */
	assert_int_equal(f.heard->n_ready, 1);
	stop(&f);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers_what_it_knows),
		cmocka_unit_test(turns_strangers_away),
		cmocka_unit_test(answers_the_living),
		cmocka_unit_test(waits_for_descriptors),
		cmocka_unit_test(ends_whatever_it_is_sent),
		cmocka_unit_test(keeps_nothing_else),
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
