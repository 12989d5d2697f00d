// SPDX-License-Identifier: BSD-2-Clause
/* libdw_touch FILE PREFIX: what tests/e2e/programs/first_touch.c does with our readers, with those
 * of elfutils. What looking up addresses takes once (.debug_aranges, or the roots of all units)
 * counts as opening. cc -O2 libdw_touch.c -ldw */
#include <elfutils/libdwfl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#define MOST 65536

static double now_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	static const Dwfl_Callbacks callbacks = {
		.find_elf = dwfl_build_id_find_elf,
		.find_debuginfo = dwfl_standard_find_debuginfo,
		.section_address = dwfl_offline_section_address,
	};
	static GElf_Addr addresses[MOST];
	static double us[MOST];
	double from = now_ms(), open_ms;
	struct rusage used;
	Dwfl_Module *m;
	Dwarf_Addr bias;
	size_t n = 0;
	Dwfl *d;
	int symbols;

	if (argc != 3)
		return 2;
	d = dwfl_begin(&callbacks);
	m = d ? dwfl_report_offline(d, "", argv[1], -1) : NULL;
	if (!m || dwfl_report_end(d, NULL, NULL) != 0 || !dwfl_module_getdwarf(m, &bias)) {
		(void)fprintf(stderr, "%s: %s\n", argv[1], dwfl_errmsg(-1));
		return 1;
	}
	(void)dwfl_module_addrdie(m, 0, &bias);
	open_ms = now_ms() - from;
	symbols = dwfl_module_getsymtab(m);
	for (int i = 0; i < symbols && n < MOST; i++) {
		GElf_Sym s;
		GElf_Addr at;
		const char *name = dwfl_module_getsym_info(m, i, &s, &at, NULL, NULL, NULL);

		if (name && GELF_ST_TYPE(s.st_info) == STT_FUNC &&
		    strncmp(name, argv[2], strlen(argv[2])) == 0)
			addresses[n++] = at;
	}
	for (size_t i = 0; i < n; i++) {
		Dwfl_Line *line;
		int number;

		from = now_ms();
		line = dwfl_module_getsrc(m, addresses[i]);
		if (!line || !dwfl_lineinfo(line, NULL, &number, NULL, NULL, NULL)) {
			(void)fprintf(stderr, "no line at %llx: %s\n",
				      (unsigned long long)addresses[i], dwfl_errmsg(-1));
			return 1;
		}
		us[i] = (now_ms() - from) * 1e3;
	}
	if (!n)
		return 1;
	qsort(us, n, sizeof(*us), ascending);
	(void)getrusage(RUSAGE_SELF, &used);
	(void)printf("open_ms=%.2f units=%zu median_us=%.1f most_us=%.1f peak_mb=%.1f\n", open_ms,
		     n, us[n / 2], us[n - 1], (double)used.ru_maxrss / 1024);
	dwfl_end(d);
	return 0;
}
