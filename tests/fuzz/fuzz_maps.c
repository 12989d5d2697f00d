// SPDX-License-Identifier: BSD-2-Clause
/* Mutates /proc/PID/maps texts, which are the inputs, and checks what the parser promises of its
 * result. */
#include "fuzz.h"
#include "text_change.h"

#include "base/cleanup.h"
#include "target/maps.h"

#include <string.h>

#define ROOM 2048

static const char seed_text[] =
	"00400000-00452000 r-xp 00001000 fe:0a 173521      /usr/bin/dbus daemon\n"
	"00651000-00652000 r--p 00051000 fe:0a 173521      /usr/bin/dbus daemon\n"
	"7f00000000-7f00001000 r-xp 00000000 00:1f 12 /tmp/a\\012b (deleted)\n"
	"7f00002000-7f00003000 rwxp 00000000 00:00 0 \n"
	"7fff0000000-7fff0001000 r-xp 00000000 00:00 0 [vdso]\n"
	"7fff8000000-7fff8001000 r-xs 00000000 00:05 77 /memfd:x (deleted)\n"
	"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]\n";

static const char *const tokens[] = {"-",
				     " ",
				     ":",
				     "\n",
				     "/",
				     "\\012",
				     " (deleted)",
				     "0",
				     "ffffffffffffffff",
				     "18446744073709551615",
				     "r-xp",
				     "\\01",
				     "99999999999999999999"};

static const struct text_change changes = {ROOM, "0123456789abcdef", tokens,
					   sizeof(tokens) / sizeof(tokens[0])};

static bool holds(const struct map_list *l)
{
	for (size_t i = 0; i < l->n; i++) {
		const struct map_entry *m = &l->entries[i];

		if (m->start >= m->end || (i > 0 && m->start < l->entries[i - 1].end) ||
		    !m->inode || m->path[0] != '/' || m->offset + (m->end - m->start) < m->offset)
			return false;
	}
	for (size_t i = 0; i < l->n_made; i++)
		if (l->made[i].start >= l->made[i].end ||
		    (i > 0 && l->made[i].start <= l->made[i - 1].end))
			return false;
	return l->n <= MAP_LIST_MAX && l->n_made <= MAP_MADE_MAX;
}

const unsigned long fuzz_iterations = 20000;

bool fuzz_begin(void)
{
	return true;
}

void fuzz_end(void)
{
}

size_t fuzz_make(struct rng *r, unsigned char *out, size_t room)
{
	return make_text(r, &changes, seed_text, sizeof(seed_text) - 1, out, room);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_fclose_ FILE *f = fmemopen((void *)(uintptr_t)data, size, "r");
	struct map_list l = {0};

	fuzz_must(f && map_list_parse(f, &l) == 0);
	fuzz_must(holds(&l));
	if (l.n)
		fuzz_read();
	map_list_free(&l);
	return 0;
}
