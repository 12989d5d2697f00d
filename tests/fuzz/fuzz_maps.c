// SPDX-License-Identifier: BSD-2-Clause
/* Mutates /proc/PID/maps texts and checks what the parser promises of its result.
 * An input is an address to look for, and the text. */
#include "fuzz.h"
#include "text_change.h"

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

static bool holds(const struct map_list *l, uint64_t probe)
{
	const struct map_entry *found = map_list_find(l, probe);

	if (found && (probe < found->start || probe >= found->end))
		return false;
	for (size_t i = 0; i < l->n; i++) {
		const struct map_entry *m = &l->entries[i];

		if (m->start >= m->end || (i > 0 && m->start < l->entries[i - 1].end) ||
		    !m->inode || m->path[0] != '/' || m->offset + (m->end - m->start) < m->offset ||
		    map_list_find(l, m->start) != m || map_list_find(l, m->end - 1) != m)
			return false;
	}
	return l->n <= MAP_LIST_MAX;
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
	uint64_t probe = rng_next(r) >> rng_below(r, 64);
	size_t n = sizeof(seed_text) - 1;
	char text[ROOM];

	memcpy(text, seed_text, n);
	for (uint64_t k = rng_below(r, 12); k > 0; k--)
		n = change_text(r, &changes, text, n);
	if (sizeof(probe) + n > room)
		return 0;
	memcpy(out, &probe, sizeof(probe));
	memcpy(out + sizeof(probe), text, n);
	return sizeof(probe) + n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct map_list l = {0};
	uint64_t probe;

	if (size < sizeof(probe))
		return 0;
	memcpy(&probe, data, sizeof(probe));
	fuzz_must(map_list_parse((const char *)data + sizeof(probe), size - sizeof(probe), &l) ==
		  0);
	fuzz_must(holds(&l, probe));
	if (l.n)
		fuzz_read();
	map_list_free(&l);
	return 0;
}
