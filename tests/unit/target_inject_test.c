// SPDX-License-Identifier: BSD-2-Clause
/* What is read of a process before a payment handler is put into it, and the handler itself. */
#include "base/error.h"
#include "shared/shim_abi.h"
#include "target/shim/image.h"
#include "target/inject.h"
#include "target/injector.h"
#include "target/remote.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* Those that are asked whether they have a handler; none has. */
static pid_t asked[2];
static size_t n_asked;

const struct inject_layout *__wrap_inject_layout_of(pid_t pid, const struct inject_layout *known,
						    size_t n);
const struct inject_layout *__wrap_inject_layout_of(pid_t pid, const struct inject_layout *known,
						    size_t n)
{
	(void)known, (void)n;
	if (n_asked < 2)
		asked[n_asked] = pid;
	n_asked++;
	return NULL;
}

static void finds_instructions(void **state)
{
	static const unsigned char none[] = {0x0f, 0x0f, 0x04, 0x05},
				   one[] = {0x90, 0x0f, 0x0f, 0x05, 0xc3}, half[] = {0x90, 0x0f};
	uint64_t at = 0;
	size_t where = 99;

	(void)state;
	assert_int_equal(inject_find_syscall(none, sizeof(none), &where), -ENOENT);
	assert_int_equal(inject_find_syscall(half, sizeof(half), &where), -ENOENT);
	assert_int_equal(inject_find_syscall(one, 0, &where), -ENOENT);
	assert_int_equal(where, 99);
	assert_int_equal(inject_find_syscall(one, sizeof(one), &where), 0);
	assert_int_equal(where, 2);
	assert_int_equal(inject_syscall_of(getpid(), &at), 0);
	assert_memory_equal((const void *)(uintptr_t)at, "\x0f\x05", 2);
	assert_int_equal(inject_syscall_of(4194303, &at), -ESRCH);
}

static struct inject_thread place(char state, const char *text)
{
	struct inject_thread t = {.tid = 1};

	inject_thread_place(state, text, &t);
	return t;
}

static void ranks_threads(void **state)
{
	char line[160];
	struct inject_thread t, futex, epoll, connect;

	(void)state;
	(void)snprintf(line, sizeof(line),
		       "%d 0x1 0x80 0x0 0x0 0x0 0x0 0x7ffd00000010 0x7f0000001234\n",
		       (int)SYS_futex);
	futex = place('S', line);
	assert_true(futex.known);
	assert_int_equal(futex.at, 0x7f0000001234);
	(void)snprintf(line, sizeof(line),
		       "%d 0x1 0x80 0x0 0x0 0x0 0x0 0x7ffd00000010 0x7f0000001234\n",
		       (int)SYS_epoll_wait);
	epoll = place('S', line);
	(void)snprintf(line, sizeof(line),
		       "%d 0x1 0x80 0x0 0x0 0x0 0x0 0x7ffd00000010 0x7f0000001234\n",
		       (int)SYS_connect);
	connect = place('S', line);
	t = place('R', "running\n");
	assert_false(t.known);
	assert_true(futex.rank < t.rank && t.rank < epoll.rank && epoll.rank < connect.rank);
	/* Blocked, but not in a call: on the way to somewhere. */
	t = place('S', "-1 0x7ffd00000010 0x7f0000001234\n");
	assert_false(t.known);
	/* In the kernel for good. */
	assert_true(place('D', line).rank > connect.rank);
	t = place('S', "");
	assert_false(t.known);
	t = place('S', "202 nonsense");
	assert_false(t.known);
}

static void knows_calls_that_begin_again(void **state)
{
	(void)state;
	assert_true(remote_begins_again(SYS_epoll_wait));
	assert_true(remote_begins_again(SYS_accept4));
	/* It is done already when it says so, or half. */
	assert_false(remote_begins_again(SYS_close));
	assert_false(remote_begins_again(SYS_connect));
	assert_false(remote_begins_again(-1));
}

static void finds_layouts(void **state)
{
	static const struct inject_layout known[] = {
		{.blob = 0x1000, .end = 0x3000, .slots = 0x9000},
		{.blob = 0x60010000, .end = 0x60013000, .slots = 0x60020000},
	};
	static const char ours[] = "55500000-55501000 r-xp 00000000 fe:00 1 /bin/x\n"
				   "60010000-60011000 r-xp 00000000 00:00 0 \n"
				   "60020000-60121000 rw-s 00000000 00:10 5   anon_inode:bpf-map\n";
	static const char *const others[] = {
		"",
		"\n\n",
		/* the code alone, the slots alone */
		"60010000-60011000 r-xp 00000000 00:00 0 \n",
		"60020000-60121000 rw-s 00000000 00:10 5   anon_inode:bpf-map\n",
		/* of two different ones */
		"1000-2000 r-xp 00000000 00:00 0 \n60020000-60121000 rw-s 00000000 00:10 5 "
		"  anon_inode:bpf-map\n",
		/* something else has come there */
		"60010000-60011000 rw-p 00000000 00:00 0 \n60020000-60121000 rw-s "
		"00000000 00:10 5   anon_inode:bpf-map\n",
		"60010000-60011000 r-xp 00000000 00:00 0 \n60020000-60121000 rw-s "
		"00000000 00:10 5   /dev/shm/x\n",
		("60010000-60011000 r-xp 00000000 00:00 0 \n60020000-60121000 rw-s "
		 "00000000 00:10 5   /x\n"
		 "60200000-60301000 rw-s 00000000 00:10 5   anon_inode:bpf-map\n"),
		/* files that are called so */
		"60010000-60011000 r-xp 00000000 00:00 0 \n60020000-60121000 rw-s "
		"00000000 00:10 5   /tmp/anon_inode:bpf-map\n",
		"60010000-60011000 r-xp 00000000 00:00 0 \n60020000-60121000 rw-s "
		"00000000 00:10 5   /tmp/x anon_inode:bpf-map\n",
		"60010000-60011000 r-xp 00000000 00:00 0 \n60020000-60121000 rw-s "
		"00000000 00:10 5   anon_inode:bpf-map (deleted)\n",
		"60010000-",
	};

	/* A low address, where neither the kernel nor a sanitizer has put anything. */
	struct shim_blob *blob =
		mmap((void *)(uintptr_t)known[1].blob, 4096, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	(void)state;
	assert_true(blob != MAP_FAILED);
	*blob = (struct shim_blob){.magic = SHIM_BLOB_MAGIC, .slots = known[1].slots};
	assert_ptr_equal(inject_layout_in(getpid(), ours, known, 2), &known[1]);
	assert_null(inject_layout_in(getpid(), ours, known, 1));
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		assert_null(inject_layout_in(getpid(), others[i], known, 2));
	/* The program's own code and slots in such places. */
	blob->slots = known[0].slots;
	assert_null(inject_layout_in(getpid(), ours, known, 2));
	blob->slots = known[1].slots;
	blob->magic++;
	assert_null(inject_layout_in(getpid(), ours, known, 2));
	assert_int_equal(munmap(blob, 4096), 0);
	assert_null(inject_layout_in(getpid(), ours, known, 2));
}

static void the_handler_is_whole(void **state)
{
	const struct injector_options cut = {
		.image = shim_blob_image, .size = 8, .signo = SIGRTMIN + 8};
	struct injector *i = NULL;
	struct shim_blob head;
	struct error e = {""};

	(void)state;
	assert_true(shim_blob_image_size > sizeof(head));
	memcpy(&head, shim_blob_image, sizeof(head));
	assert_true(head.magic == SHIM_BLOB_MAGIC);
	assert_true(head.handler >= sizeof(head) && head.handler < shim_blob_image_size);
	assert_true(head.restorer >= sizeof(head) && head.restorer < shim_blob_image_size);
	assert_memory_equal(shim_blob_image + head.restorer, "\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x05",
			    9);
	assert_true(head.data % 4096 == 0 && head.end % 4096 == 0 &&
		    head.data >= shim_blob_image_size && head.end > head.data);
	assert_false(head.mask >> (SIGSEGV - 1) & 1);
	assert_true(head.mask >> (SIGALRM - 1) & 1);
	assert_int_equal(injector_start(&cut, &i, &e), -EINVAL);
	assert_null(i);
	assert_int_equal(injector_stop(NULL, &e), 0);
}

static void says_what_it_may_not(void **state)
{
	struct error e = {""};

	(void)state;
	assert_int_equal(inject_allowed(4194303, SIGRTMAX - 4, false, &e), -ESRCH);
	(void)signal(SIGRTMAX - 4, (void (*)(int))_exit);
	assert_int_equal(inject_allowed(getpid(), SIGRTMAX - 4, false, &e), -EBUSY);
	assert_non_null(strstr(e.text, "--signal"));
	(void)signal(SIGRTMAX - 4, SIG_DFL);
}

/* Somebody else's many processes do not keep it from those that were injected, and their children.
 */
static void leaves_its_own_first(void **state)
{
	struct inject_progress progress = {0};
	const struct inject_options o = {.signo = SIGRTMAX - 4, .progress = &progress};
	struct inject_layout known = {.blob = 0x1000, .end = 0x3000, .slots = 0x9000};
	struct error e = {""};
	pid_t child, first[2];
	int ends[2];

	(void)state;
	assert_int_equal(pipe(ends), 0);
	known.pid = fork();
	assert_true(known.pid >= 0);
	if (known.pid == 0) {
		child = fork();
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (child > 0 && write(ends[1], &child, sizeof(child)) < 0)
			_exit(1);
		(void)pause();
		_exit(0);
	}
	assert_int_equal(read(ends[0], &child, sizeof(child)), sizeof(child));
	assert_int_equal(inject_leave(&o, &known, 1, &e), 0);
	memcpy(first, asked, sizeof(first));
	/* Whom it hung in is left alone, and the others are not kept waiting. */
	progress.hung[progress.n_hung++] = known.pid;
	n_asked = 0;
	assert_int_equal(inject_leave(&o, &known, 1, &e), 0);
	assert_int_equal(asked[0], child);
	(void)kill(child, SIGKILL);
	(void)kill(known.pid, SIGKILL);
	(void)waitpid(known.pid, NULL, 0);
	(void)close(ends[0]);
	(void)close(ends[1]);
	assert_true(n_asked > 2);
	assert_true((first[0] == known.pid && first[1] == child) ||
		    (first[0] == child && first[1] == known.pid));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_instructions),
		cmocka_unit_test(ranks_threads),
		cmocka_unit_test(knows_calls_that_begin_again),
		cmocka_unit_test(finds_layouts),
		cmocka_unit_test(the_handler_is_whole),
		cmocka_unit_test(says_what_it_may_not),
		cmocka_unit_test(leaves_its_own_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
