// SPDX-License-Identifier: BSD-2-Clause
#include "collect/database/private.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/error.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define FORM "%Y%m%dT%H%M%SZ"
/* 9999-12-31: years have four digits. */
#define EPOCH_LAST_S 253402214400ULL

void epoch_name(uint64_t begin_s, uint64_t seconds, char ret[EPOCH_NAME])
{
	time_t t = (time_t)begin_s;
	struct tm tm;
	char begin[24] = "";

	if (gmtime_r(&t, &tm))
		(void)strftime(begin, sizeof(begin), FORM, &tm);
	(void)snprintf(ret, EPOCH_NAME, "%s-%" PRIu64, begin, seconds);
}

/* Hours and days that begin where those of UTC do. */
static bool is_known(uint64_t begin_s, uint64_t seconds)
{
	return (seconds == DATABASE_EPOCH_S || seconds == DATABASE_DAY_S) &&
	       begin_s % seconds == 0 && begin_s <= EPOCH_LAST_S;
}

/* A name is taken only as epoch_name() writes it, so that nothing depends on how numbers are read.
 */
bool epoch_parse(const char *name, struct database_epoch *ret)
{
	static const uint64_t lengths[] = {DATABASE_EPOCH_S, DATABASE_DAY_S};
	struct tm tm = {0};
	const char *rest = strptime(name, FORM, &tm);
	time_t begin = rest ? timegm(&tm) : -1;

	for (size_t i = 0; begin >= 0 && i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		struct database_epoch x = {.begin_s = (uint64_t)begin, .seconds = lengths[i]};

		epoch_name(x.begin_s, x.seconds, x.name);
		if (is_known(x.begin_s, x.seconds) && strcmp(x.name, name) == 0) {
			*ret = x;
			return true;
		}
	}
	return false;
}

int epoch_open(struct database *d, const char *name, bool make)
{
	bool made = make && mkdirat(d->fd, name, 0700) == 0;
	int fd;

	if (make && !made && errno != EEXIST)
		return -errno;
	fd = openat(d->fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (made && ((d->group != (gid_t)-1 &&
		      (fchown(fd, (uid_t)-1, d->group) < 0 || fchmod(fd, 0750) < 0)) ||
		     fsync(d->fd) < 0)) {
		int r = -errno;

		(void)close(fd);
		return r;
	}
	return fd;
}

static bool is_called(const char *name, const char *ending)
{
	size_t n = strlen(name), end = ending ? strlen(ending) : 0;

	if (!ending)
		return strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
	return *name != '.' && n > end && strcmp(name + n - end, ending) == 0;
}

struct entries entries_of(int fd, const char *ending)
{
	struct entries x = {.n = fd};
	int n = fd < 0 ? 0 : scandirat(fd, ".", &x.all, NULL, alphasort);

	if (fd >= 0)
		x.n = n < 0 ? -errno : 0;
	for (int i = 0; i < n; i++)
		if (is_called(x.all[i]->d_name, ending))
			x.all[x.n++] = x.all[i];
		else
			free(x.all[i]);
	return x;
}

void entries_free(struct entries *x)
{
	for (int i = 0; i < x->n; i++)
		free(x->all[i]);
	free((void *)x->all);
}

int epoch_entries(struct database *d, const char *epoch, const char *ending, int *ret_fd,
		  struct entries *ret, struct error *e)
{
	*ret_fd = epoch_open(d, epoch, false);
	*ret = entries_of(*ret_fd, ending);
	return ret->n >= 0 || *ret_fd == -ENOENT ? 0
						 : fail(e, -ret->n, "cannot read '%s/%s': %s",
							d->path, epoch, strerror(-ret->n));
}

int epoch_remove(struct database *d, const char *name)
{
	_cleanup_close_ int fd = epoch_open(d, name, false);
	_cleanup_entries_ struct entries in = entries_of(fd, NULL);

	for (int i = 0; i < in.n; i++)
		(void)unlinkat(fd, in.all[i]->d_name, 0);
	if (in.n < 0)
		return in.n;
	return unlinkat(d->fd, name, AT_REMOVEDIR) < 0 ? -errno : 0;
}

/* A longer epoch before those in it. */
static int by_time(const void *a, const void *b)
{
	const struct database_epoch *x = a, *y = b;

	if (x->begin_s != y->begin_s)
		return x->begin_s < y->begin_s ? -1 : 1;
	return x->seconds > y->seconds ? -1 : x->seconds < y->seconds;
}

/* Moves what compacting has replaced, and could not remove yet, behind the rest; returns how many
 * are left. */
static size_t without_replaced(struct database_epoch *all, size_t n)
{
	size_t used = 0;
	uint64_t end = 0;

	for (size_t i = 0; i < n; i++) {
		struct database_epoch x = all[i];

		if (used && x.begin_s + x.seconds <= end)
			continue;
		end = x.begin_s + x.seconds;
		all[i] = all[used];
		all[used++] = x;
	}
	return used;
}

int epochs_list(struct database *d, struct database_epoch **ret, size_t *ret_n, size_t *ret_all,
		struct error *e)
{
	_cleanup_free_ struct database_epoch *found = NULL;
	_cleanup_entries_ struct entries in = entries_of(d->fd, NULL);
	size_t n = 0;

	*ret = NULL;
	*ret_n = *ret_all = 0;
	if (in.n < 0)
		return fail(e, -in.n, "cannot read '%s': %s", d->path, strerror(-in.n));
	for (int i = 0; i < in.n; i++) {
		const char *name = in.all[i]->d_name;
		struct database_epoch x;
		struct stat st;

		if (epoch_parse(name, &x)) {
			if (fstatat(d->fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
			    !S_ISDIR(st.st_mode))
				database_left_out(d, NULL, name, "it is no directory");
			else
				xarray_add(found, n, x);
		} else if (strcmp(name, DATABASE_MARK) != 0 &&
			   strncmp(name, DATABASE_ASIDE, strlen(DATABASE_ASIDE)) != 0) {
			database_left_out(d, NULL, name, "it is no epoch");
		}
	}
	if (n)
		qsort(found, n, sizeof(*found), by_time);
	*ret_n = without_replaced(found, n);
	*ret_all = n;
	*ret = TAKE_PTR(found);
	return 0;
}

int database_epochs(struct database *d, struct database_epoch **ret, size_t *ret_n, struct error *e)
{
	size_t all;

	return epochs_list(d, ret, ret_n, &all, e);
}

int epoch_of(struct database *d, uint64_t begin_s, uint64_t seconds, char ret[EPOCH_NAME],
	     struct error *e)
{
	_cleanup_free_ struct database_epoch *all = NULL;
	size_t n;
	int r = database_epochs(d, &all, &n, e);

	if (r < 0)
		return r;
	if (!is_known(begin_s, seconds))
		return fail(e, EINVAL, "an epoch that is neither an hour nor a day is not written");
	epoch_name(begin_s, seconds, ret);
	for (size_t i = 0; i < n; i++) {
		if (all[i].seconds > seconds && begin_s >= all[i].begin_s &&
		    begin_s < all[i].begin_s + all[i].seconds)
			epoch_name(all[i].begin_s, all[i].seconds, ret);
		else if (all[i].seconds < seconds && all[i].begin_s >= begin_s &&
			 all[i].begin_s < begin_s + seconds)
			return fail(e, EEXIST, "'%s/%s' would hide '%s/%s'", d->path, ret, d->path,
				    all[i].name);
	}
	return 0;
}
