// SPDX-License-Identifier: BSD-2-Clause
/* The memory files that the program gets: the one it loads the shim from, and the page that it
 * shares with us. */
#include "target/internal.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "base/write_all.h"
#include "shared/shim_launch.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U /* Linux 6.3 */
#endif

static int describe(const struct target_spec *spec, struct shim_launch *ret)
{
	*ret = (struct shim_launch){.magic = SHIM_MAGIC,
				    .pay = spec->pay,
				    .signo = spec->signo,
				    .server_pid = getpid(),
				    .server_uid = geteuid()};
	if (!shim_identify(spec->page_fd, &ret->page) ||
	    (spec->slots_fd >= 0 && !shim_identify(spec->slots_fd, &ret->slots)))
		return -EBADF;
	if (spec->server)
		(void)snprintf(ret->server, sizeof(ret->server), "%s", spec->server);
	return 0;
}

int target_make_image(const struct target_spec *spec, int *ret_fd, struct error *e)
{
	_cleanup_close_ int fd =
		memfd_create("cozbpf-shim", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC);
	struct shim_launch launch;
	int r;

	if (fd < 0 && errno == EINVAL)
		fd = memfd_create("cozbpf-shim", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return fail(e, errno,
			    "cannot create the memory file for the preloaded library: %s%s",
			    strerror(errno),
			    errno == EACCES ? " (sysctl vm.memfd_noexec=1 allows it)" : "");
	r = describe(spec, &launch);
	if (r < 0)
		return fail(e, -r,
			    "cannot tell the page and the slots that are shared with the program "
			    "from other files");
	r = write_all(fd, spec->shim, spec->shim_size);
	if (r == 0)
		r = write_all(fd, &launch, sizeof(launch));
	if (r < 0)
		return fail(e, -r, "cannot fill the preloaded library's memory file: %s",
			    strerror(-r));
	/* The loader opens it again by name, as the user that the program runs as. */
	if (fchmod(fd, 0755) < 0)
		return fail(e, errno, "cannot make the preloaded library readable: %s",
			    strerror(errno));
	if (fcntl(fd, F_ADD_SEALS, SHIM_IMAGE_SEALS) < 0)
		return fail(e, errno, "cannot seal the preloaded library's memory file: %s",
			    strerror(errno));
	*ret_fd = TAKE_FD(fd);
	return 0;
}

int target_make_page(int *ret_fd, struct shim_page **ret, struct error *e)
{
	_cleanup_close_ int fd = memfd_create("cozbpf-page", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct shim_page *page;

	/* Could the program cut it, our next look would end us (SIGBUS). */
	if (fd < 0 || ftruncate(fd, sizeof(*page)) < 0 ||
	    fcntl(fd, F_ADD_SEALS, SHIM_PAGE_SEALS) < 0)
		return fail(e, errno, "cannot make the page shared with the program: %s",
			    strerror(errno));
	page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		return fail(e, errno, "cannot map the page shared with the program: %s",
			    strerror(errno));
	*ret = page;
	*ret_fd = TAKE_FD(fd);
	return 0;
}
