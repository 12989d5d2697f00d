// SPDX-License-Identifier: BSD-2-Clause
/* first_touch FILE PREFIX: opens the line information of a program and asks for the line of each function whose name begins with PREFIX,
 * once. Prints how long it took, and the most memory: open_ms=X units=N median_us=X most_us=X peak_mb=X. */
#include "program/dwarf/lines.h"
#include "program/elf/object.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/sort.h"

#include <string.h>
#include <sys/resource.h>

#define MOST 65536

struct asked {
	const char *prefix;
	uint64_t addresses[MOST];
	size_t n;
};

static int note(const struct elf_symbol *s, void *arg)
{
	struct asked *a = arg;

	if (a->n < MOST && strncmp(s->name, a->prefix, strlen(a->prefix)) == 0)
		a->addresses[a->n++] = s->addr;
	return 0;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	_cleanup_elf_object_ struct elf_object *o = NULL;
	static struct asked a;
	static double us[MOST];
	static uint64_t units[MOST];
	size_t n_units;
	struct line_location where;
	struct error e = {.text = ""};
	struct line_table *t;
	struct rusage used;
	uint64_t from;
	double open_ms;

	if (argc != 3)
		return 2;
	a.prefix = argv[2];
	from = clock_monotonic_ns();
	if (elf_object_open(argv[1], &o, &e) < 0 || line_table_open(o, NULL, &t, &e) < 0) {
		(void)fprintf(stderr, "%s\n", e.text);
		return 1;
	}
	open_ms = (double)(clock_monotonic_ns() - from) / 1e6;
	(void)elf_object_each_function(o, note, &a);
	for (size_t i = 0; i < a.n; i++) {
		from = clock_monotonic_ns();
		if (line_table_at(t, a.addresses[i], &where) < 0) {
			(void)fprintf(stderr, "no line at %llx\n", (unsigned long long)a.addresses[i]);
			return 1;
		}
		us[i] = (double)(clock_monotonic_ns() - from) / 1e3;
		units[i] = line_table_unit_at(t, a.addresses[i]);
	}
	qsort(us, a.n, sizeof(*us), ascending);
	n_units = sort_unique(units, a.n, sizeof(*units), compare_u64);
	if (!a.n || n_units != a.n) {
		(void)fprintf(stderr, "%zu functions are in %zu units\n", a.n, n_units);
		return 1;
	}
	(void)getrusage(RUSAGE_SELF, &used);
	(void)printf("open_ms=%.2f units=%zu median_us=%.1f most_us=%.1f peak_mb=%.1f\n", open_ms, a.n, us[a.n / 2], us[a.n - 1],
		     (double)used.ru_maxrss / 1024);
	line_table_close(t);
	return 0;
}
