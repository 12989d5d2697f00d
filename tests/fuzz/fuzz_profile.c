// SPDX-License-Identifier: BSD-2-Clause
/* Mutates profiles of both forms and checks what the reader promises; what it read goes through
 * analysis and report. An input is a byte, which says whether to report, and the profile. */
#include "fuzz.h"
#include "text_change.h"

#include "base/error.h"
#include "profile/reader.h"
#include "report/report.h"
#include "shared/histogram.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROOM 4096

static const char native[] =
	"{\"type\":\"startup\",\"time\":7,\"cozbpf\":{\"version\":\"1\",\"command\":\"./"
	"a\",\"pay\":\"hold\",\"seed\":42}}\n"
	"{\"type\":\"experiment\",\"selected\":\"/s/"
	"a.c:1\",\"speedup\":0,\"duration\":500,\"selected_samples\":3,\"foreign\":0.5}\n"
	"{\"type\":\"throughput-point\",\"name\":\"p\",\"delta\":4,\"first_ns\":10,\"last_ns\":410,"
	"\"effective_ns\":390}\n"
	"{\"type\":\"experiment\",\"selected\":\"/s/"
	"a.c:1\",\"speedup\":0,\"duration\":510,\"imbalance\":-1}\n"
	"{\"type\":\"throughput-point\",\"name\":\"p\",\"delta\":5,\"first_ns\":10,\"last_ns\":410,"
	"\"effective_ns\":390}\n"
	"{\"type\":\"experiment\",\"selected\":\"/s/"
	"b.c:1\",\"speedup\":0.25,\"duration\":500,\"function\":\"f\",\"elapsed\":600}\n"
	"{\"type\":\"throughput-point\",\"name\":\"p\",\"delta\":4}\n"
	"{\"type\":\"latency-point\",\"name\":\"l\",\"arrivals\":5,\"departures\":4,\"difference\":"
	"-1}\n"
	"{\"type\":\"latency-point\",\"name\":\"m\",\"arrivals\":5,\"departures\":4,\"difference\":"
	"1,\"sum_ns\":900,\"unmatched\":1,"
	"\"unended\":2,\"crossed\":3,\"lost\":0,\"in_flight_begin\":1,\"in_flight_end\":-2,"
	"\"histogram\":{\"70\":3,\"489\":1}}\n"
	"{\"type\":\"runtime\",\"time\":900}\n"
	"{\"type\":\"samples\",\"location\":\"/s/a.c:1\",\"count\":12}\n";
static const char text[] =
	"startup\ttime=1\n"
	"experiment\tselected=a.c:1\tspeedup=0.00\tduration=1000\tselected-samples=2\n"
	"throughput-point\tname=p\tdelta=3\n"
	"experiment\tselected=a.c:1\tspeedup=0.75\tduration=1000\tselected-samples=2\n"
	"progress-point\tname=p\ttype=source\tdelta=4\n"
	"latency-point\tname=l\tarrivals=2\tdepartures=1\tdifference=1\n"
	"runtime\ttime=77\nsamples\tlocation=a.c:1\tcount=8\nshutdown\ttime=9\n";
static const char *const tokens[] = {"\n",
				     "\t",
				     "=",
				     "{",
				     "}",
				     "\"",
				     "[[[[",
				     "-",
				     "NaN",
				     "1e999",
				     "18446744073709551616",
				     ":null,",
				     "\\u0000",
				     "\\ud800",
				     "experiment",
				     "\"type\":\"samples\",",
				     "speedup=1.00",
				     "\033[2J",
				     "\xff"};

static const struct text_change changes = {ROOM, "0123456789", tokens,
					   sizeof(tokens) / sizeof(tokens[0])};

static bool latency_holds(const struct profile_latency *l)
{
	for (size_t i = 0; l && i < l->n_buckets; i++)
		if (l->buckets[i].bucket >= HISTOGRAM_BUCKETS ||
		    (i && l->buckets[i].bucket <= l->buckets[i - 1].bucket))
			return false;
	return true;
}

static bool holds(const struct profile *p)
{
	for (size_t i = 0; i < p->n_experiments; i++) {
		const struct profile_run_experiment *x = &p->experiments[i];

		if (x->run >= p->n_runs || !x->x.selected ||
		    !(x->x.speedup >= 0 && x->x.speedup <= 1) ||
		    !(x->x.foreign >= 0 && x->x.foreign <= 1))
			return false;
		for (size_t j = 0; j < x->n_points; j++)
			if (!latency_holds(x->points[j].latency) || !x->points[j].name ||
			    (x->points[j].timed && x->points[j].delta < 2))
				return false;
	}
	for (size_t i = 1; i < p->n_samples; i++)
		if (strcmp(p->samples[i - 1].location, p->samples[i].location) >= 0)
			return false;
	return (p->bad_lines == 0) == (p->first_bad_line == 0);
}

/* Prints into memory; no control character but newlines may come out. The style and the script of
 * HTML have tabs, too. */
static bool report_is_clean(const struct profile *p, uint64_t seed)
{
	const struct report_options all = {
		.width = 40, .all = true, .verbose = true, .inlined = true, .curves = 9};
	struct analysis a;
	char *out = NULL;
	size_t size = 0, html = 0;
	FILE *f = open_memstream(&out, &size);
	bool clean = true;

	if (!f)
		return false;
	analyse(p, seed, &a);
	report_print(f, p, &a, NULL, NULL);
	report_print(f, p, &a, &all, NULL);
	fuzz_must(report_csv(f, p, &a) == 0 && report_markdown(f, p, &a) == 0);
	report_json(f, p, &a);
	(void)fflush(f);
	html = size;
	fuzz_must(report_html(f, p, &a, NULL) == 0);
	analysis_free(&a);
	(void)fclose(f);
	for (size_t i = 0; i < size; i++)
		clean &= out[i] == '\n' || (i >= html && out[i] == '\t') ||
			 ((unsigned char)out[i] >= 0x20 && out[i] != 0x7f);
	free(out);
	return clean;
}

const unsigned long fuzz_iterations = 12000;

bool fuzz_begin(void)
{
	return true;
}

void fuzz_end(void)
{
}

size_t fuzz_make(struct rng *r, unsigned char *out, size_t room)
{
	bool coz = rng_below(r, 2);
	size_t n = coz ? sizeof(text) - 1 : sizeof(native) - 1;
	char data[ROOM];

	memcpy(data, coz ? text : native, n);
	for (uint64_t k = rng_below(r, 12); k > 0; k--)
		n = change_text(r, &changes, data, n);
	if (n + 1 > room)
		return 0;
	out[0] = (unsigned char)rng_next(r);
	memcpy(out + 1, data, n);
	return n + 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct profile p = {0};
	struct error e = {0};
	int ret;

	if (!size)
		return 0;
	ret = profile_read_buffer(&p, (const char *)data + 1, size - 1, "fuzzed", &e);
	/* On failure: one line of reason, and nothing kept. */
	fuzz_must((ret < 0) == (e.text[0] != '\0'));
	fuzz_must(ret == 0 || (!p.n_runs && !p.n_samples));
	fuzz_must(holds(&p));
	if (data[0] % 4 == 0) /* the report is slower */
		fuzz_must(report_is_clean(&p, data[0]));
	if (p.n_experiments)
		fuzz_read();
	profile_free(&p);
	return 0;
}
