// SPDX-License-Identifier: BSD-2-Clause
/* The parts of a payment handler, put into a thread that is stopped, and taken out again: its
 * mappings, and the signal's action. */
#include "target/inject_private.h"

#include "base/cleanup.h"
#include "shared/shim_abi.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SCRATCH 4096 /* behind the blob: what system calls read and write */
#define SLOTS_SIZE (SHIM_ENTRIES * sizeof(struct shim_slot))

#define CALL(...) ((const uint64_t[6]){__VA_ARGS__})

/* A call that must succeed; *ret may be NULL. */
static int call(struct remote *r, long number, const uint64_t arguments[6], uint64_t *ret)
{
	int64_t value;
	int err = remote_call(r, number, arguments, &value);

	if (err < 0)
		return err;
	/* Addresses are no errors. */
	if (value < 0 && value >= -4095)
		return (int)value;
	if (ret)
		*ret = (uint64_t)value;
	return 0;
}

/* The numbers that the helper's next @n descriptors will have. What is in the program's memory its
 * other threads can change at any time, so no number is taken from there: another one could be of a
 * file that hangs whoever closes it. The helper's descriptors are its own. */
static int next_descriptors(struct remote *helper, uint64_t *ret, size_t n)
{
	size_t opened = 0;
	int err = 0, also;

	for (; err == 0 && opened < n; opened += err == 0)
		err = call(helper, SYS_socket, CALL(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC),
			   &ret[opened]);
	while (opened) {
		also = call(helper, SYS_close, CALL(ret[--opened]), NULL);
		err = err < 0 ? err : also;
	}
	return err;
}

/* Maps the slots, in a process that shares memory but not descriptors. */
static int map_slots(const struct inject_options *o, struct remote *helper, uint64_t scratch,
		     uint64_t *ret)
{
	struct {
		struct msghdr m;
		struct iovec part;
		char byte[8];
		union {
			struct cmsghdr head;
			char room[CMSG_SPACE(sizeof(int))];
		} control;
	} there = {0}, here = {0};
	_cleanup_close_ int pidfd = (int)syscall(SYS_pidfd_open, helper->tid, 0), end = -1;
	uint64_t pair[2], slots;
	int err;

	if (pidfd < 0)
		return -errno;
	err = next_descriptors(helper, pair, 2);
	if (err == 0)
		err = call(helper, SYS_socketpair,
			   CALL(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, scratch), NULL);
	if (err < 0)
		return err;
	end = (int)syscall(SYS_pidfd_getfd, pidfd, (int)pair[1], 0);
	if (end < 0)
		return -errno;
	here.part = (struct iovec){here.byte, 1};
	here.m = (struct msghdr){.msg_iov = &here.part,
				 .msg_iovlen = 1,
				 .msg_control = &here.control,
				 .msg_controllen = sizeof(here.control)};
	here.control.head = (struct cmsghdr){.cmsg_level = SOL_SOCKET,
					     .cmsg_type = SCM_RIGHTS,
					     .cmsg_len = CMSG_LEN(sizeof(int))};
	memcpy(CMSG_DATA(&here.control.head), &o->slots_fd, sizeof(int));
	if (sendmsg(end, &here.m, MSG_NOSIGNAL | MSG_DONTWAIT) != 1)
		return -errno;
	there.part =
		(struct iovec){(void *)(uintptr_t)(scratch + offsetof(typeof(there), byte)), 1};
	there.m = (struct msghdr){
		.msg_iov = (void *)(uintptr_t)(scratch + offsetof(typeof(there), part)),
		.msg_iovlen = 1,
		.msg_control = (void *)(uintptr_t)(scratch + offsetof(typeof(there), control)),
		.msg_controllen = sizeof(there.control),
	};
	err = next_descriptors(helper, &slots, 1);
	if (err == 0)
		err = remote_write(helper, scratch, &there, sizeof(there));
	if (err == 0)
		err = call(helper, SYS_recvmsg,
			   CALL(pair[0], scratch, MSG_DONTWAIT | MSG_CMSG_CLOEXEC), NULL);
	return err == 0 ? call(helper, SYS_mmap,
			       CALL(0, SLOTS_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, slots, 0),
			       ret)
			: err;
}

/* l->numbers is filled in. The code is written past its protection: at no time is it writable for
 * the program. */
int inject_map(const struct inject_options *o, struct remote *helper, struct inject_layout *l)
{
	_cleanup_free_ unsigned char *image = malloc(o->size);
	struct shim_blob *head = (struct shim_blob *)image;
	uint64_t scratch;
	int err;

	if (!image)
		return -ENOMEM;
	memcpy(image, o->image, o->size);
	err = call(helper, SYS_mmap,
		   CALL(0, head->end + SCRATCH, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS,
			~0ULL, 0),
		   &l->blob);
	if (err < 0)
		return err;
	scratch = l->blob + head->end;
	l->end = scratch + SCRATCH;
	err = call(
		helper, SYS_mprotect,
		CALL(l->blob + head->data, l->end - (l->blob + head->data), PROT_READ | PROT_WRITE),
		NULL);
	if (err == 0)
		err = map_slots(o, helper, scratch, &l->slots);
	head->slots = l->slots;
	head->pay = o->pay;
	head->numbers = l->numbers;
	return err == 0 ? remote_write(helper, l->blob, image, o->size) : err;
}

int inject_unmap(struct remote *r, const struct inject_layout *l)
{
	int err = l->slots ? call(r, SYS_munmap, CALL(l->slots, SLOTS_SIZE), NULL) : 0, also;

	also = l->blob ? call(r, SYS_munmap, CALL(l->blob, l->end - l->blob), NULL) : 0;
	return err < 0 ? err : also;
}

int inject_set_action(const struct inject_options *o, struct remote *r,
		      const struct inject_layout *l, const struct inject_action *to,
		      struct inject_action *ret)
{
	uint64_t scratch = l->end - SCRATCH;
	int err = to ? remote_write(r, scratch, to, sizeof(*to)) : 0;

	if (err == 0)
		err = call(r, SYS_rt_sigaction,
			   CALL((uint64_t)o->signo, to ? scratch : 0, scratch + sizeof(*to),
				sizeof(to->mask)),
			   NULL);
	return err == 0 ? remote_read(r, scratch + sizeof(*to), ret, sizeof(*ret)) : err;
}

struct inject_action inject_own_action(const struct inject_options *o,
				       const struct inject_layout *l)
{
	struct shim_blob head;

	memcpy(&head, o->image, sizeof(head));
	return (struct inject_action){l->blob + head.handler, head.flags, l->blob + head.restorer,
				      head.mask};
}

int inject_install(const struct inject_options *o, struct remote *r, struct inject_layout *l)
{
	struct inject_action ours = inject_own_action(o, l), there, mine;
	int err = inject_set_action(o, r, l, NULL, &there);

	if (err < 0 || there.handler == ours.handler)
		return err;
	if (there.handler > 1)
		return -EBUSY;
	err = inject_set_action(o, r, l, &ours, &l->former);
	/* Another thread was faster. */
	if (err == 0 && l->former.handler > 1)
		err = inject_set_action(o, r, l, &l->former, &mine) < 0 ? -EIO : -EBUSY;
	return err;
}
