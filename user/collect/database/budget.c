// SPDX-License-Identifier: BSD-2-Clause
/* How much of an epoch each owner of images can take. A user can make files, code in them and names
 * without end: that uses up the room of this user alone, and no room that earlier epochs need. */
#include "collect/database/private.h"

#include "base/array.h"
#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <lzma.h>
#include <stdio.h>
#include <string.h>

/* An epoch's parts of what a whole database may take: root's files and the kernel, all other users
 * together, each other user. A month has 720 hours. */
#define ROOT_PART 32
#define USERS_PART 128
#define USER_PART 512
#define HASH_BYTES 20 /* of the 32 that there are */
#define LEAST_BYTES (64ULL << 10)

void database_bound(struct database *d, uint64_t most_bytes)
{
	free(d->budget.all);
	d->budget = (struct budget){.most_bytes = most_bytes};
}

static uint64_t part(const struct database *d, uint64_t of)
{
	uint64_t bytes = d->budget.most_bytes / of;

	return bytes > LEAST_BYTES ? bytes : LEAST_BYTES;
}

/* By owner; the first is root. */
static struct budget_owner *owner_in(struct budget *b, uint32_t owner)
{
	for (size_t i = 0; i < b->n; i++)
		if (b->all[i].owner == owner)
			return &b->all[i];
	xarray_add(b->all, b->n, (struct budget_owner){.owner = owner});
	return &b->all[b->n - 1];
}

/* The owner that the name of a file says (file_name). */
static uint32_t owner_of(const char *name)
{
	const char *at = strstr(name, "-u");
	unsigned int owner = 0;

	return at && sscanf(at, "-u%u", &owner) == 1 ? owner : 0;
}

/* What a file of @size bytes takes of a disk, with its inode, about. */
static uint64_t cost(int64_t size)
{
	return (((uint64_t)size + 4095) & ~4095ULL) + DATABASE_INODE_BYTES;
}

/* What the epoch's files take already. */
static int look(struct budget *b, int epoch_fd, const char *epoch)
{
	_cleanup_entries_ struct entries in = entries_of(epoch_fd, DATABASE_ENDING);

	b->n = 0;
	for (int i = 0; i < in.n; i++) {
		const char *name = in.all[i]->d_name;
		struct budget_owner *o = owner_in(b, owner_of(name));
		struct stat st;

		if (fstatat(epoch_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
			o->bytes += cost(st.st_size);
	}
	(void)snprintf(b->epoch, sizeof(b->epoch), "%s", in.n < 0 ? "" : epoch);
	return in.n < 0 ? in.n : 0;
}

int budget_take(struct database *d, int epoch_fd, const char *epoch, uint32_t owner, int64_t before,
		int64_t size)
{
	struct budget *b = &d->budget;
	uint64_t was = before < 0 ? 0 : cost(before), is = cost(size), users = 0;
	struct budget_owner *o;
	int r = 0;

	if (!b->most_bytes)
		return 0;
	if (strcmp(b->epoch, epoch) != 0)
		r = look(b, epoch_fd, epoch);
	if (r < 0)
		return r;
	o = owner_in(b, owner);
	for (size_t i = 0; i < b->n; i++)
		users += b->all[i].owner ? b->all[i].bytes : 0;
	if (is > was && (o->bytes + is - was > part(d, owner ? USER_PART : ROOT_PART) ||
			 (owner && users + is - was > part(d, USERS_PART))))
		return -E2BIG;
	o->bytes = o->bytes + is - was;
	return 0;
}

/* Users choose all of this: with a hash of which they can find collisions they would have many
 * images' files called alike, each of which has to be read in order to find the one that is meant.
 * SHA-256 is what liblzma computes as the check of a block. */
static int hash_of(const struct counts_image *i, char ret[2 * HASH_BYTES + 1])
{
	lzma_block block = {.check = LZMA_CHECK_SHA256};
	lzma_filter filters[LZMA_FILTERS_MAX + 1] = {{.id = LZMA_VLI_UNKNOWN}};
	_cleanup_free_ char *text = xasprintf("%llu %llu %s", (unsigned long long)i->inode,
					      (unsigned long long)i->changed_ns, i->path);
	size_t n = strlen(text), room = lzma_block_buffer_bound(n), at = 0;
	_cleanup_free_ uint8_t *coded = xcalloc(1, room);

	block.filters = filters;
	if (lzma_block_uncomp_encode(&block, (const uint8_t *)text, n, coded, &at, room) != LZMA_OK)
		return -ENOMEM;
	for (size_t k = 0; k < HASH_BYTES; k++)
		(void)snprintf(ret + 2 * k, 3, "%02x", block.raw_check[k]);
	return 0;
}

int file_name(const struct counts_image *i, int turn, char *ret, size_t size)
{
	const char *kind = counts_kind_name(i->kind);
	char hash[2 * HASH_BYTES + 1];
	int length = kind ? (int)strlen(kind) - 2 : 0;
	char owner[16] = "", suffix[16] = "";

	if (i->owner)
		(void)snprintf(owner, sizeof(owner), "-u%u", i->owner);
	if (turn)
		(void)snprintf(suffix, sizeof(suffix), "-%d", turn);
	if (*i->build_id || i->kind != COUNTS_FILE) {
		(void)snprintf(ret, size, "%.*s%s%s%s%s" DATABASE_ENDING, length,
			       kind ? kind + 1 : "", kind && *i->build_id ? "-" : "", i->build_id,
			       owner, suffix);
		return 0;
	}
	if (hash_of(i, hash) < 0)
		return -ENOMEM;
	(void)snprintf(ret, size, "path-%s%s%s" DATABASE_ENDING, hash, owner, suffix);
	return 0;
}
