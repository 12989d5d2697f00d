// SPDX-License-Identifier: BSD-2-Clause
/* Code of which nothing says the name: what to start the runtime with that makes or interprets it.
 */
#include "report/text.h"

#include "base/cleanup.h"
#include "base/jit.h"
#include "base/memory.h"
#include "base/waits.h"

#include <fnmatch.h>
#include <string.h>

/* Of all samples, to be worth a sentence. */
#define LEAST_UNNAMED 0.01
#define LEAST_INTERPRETED 0.05

static const struct {
	const char *runtime, *remedy;
} runtimes[] = {
	{"node", "start it with `node --perf-basic-prof`, which writes a perf map "
		 "(/tmp/perf-PID.map)"},
	{"java", "`jcmd PID Compiler.perfmap` has it write a perf map (/tmp/perf-PID.map) of what "
		 "it has compiled by then, JDK 17 and later"},
	{"dotnet", "start it with DOTNET_PerfMapEnabled=1 in its environment, which has it write a "
		   "perf map (/tmp/perf-PID.map)"},
	{"php", "start it with `php -d opcache.jit_debug=16`, which writes a perf map "
		"(/tmp/perf-PID.map)"},
	{"python", "no function of Python was found there"},
	{"luajit", "a LuaJIT that was built with -DLUAJIT_USE_PERFTOOLS writes a perf map "
		   "(/tmp/perf-PID.map)"},
};

static const char *remedy_of(const char *runtime)
{
	for (size_t i = 0; i < sizeof(runtimes) / sizeof(runtimes[0]); i++)
		if (!strcmp(runtimes[i].runtime, runtime))
			return runtimes[i].remedy;
	return "its perf map (/tmp/perf-PID.map) does not say what it is";
}

/* Samples of execution, by what is known of their code. */
struct counts {
	double all, named, evaluator;
};

static struct counts count(const struct profile *p)
{
	struct counts c = {0};

	for (size_t i = 0; i < p->n_samples; i++) {
		const struct profile_samples *s = &p->samples[i];
		double n = (double)s->count;

		if (wait_of(s->location, NULL))
			continue;
		c.all += n;
		if (jit_is_name(s->location) && !jit_unnamed(s->location))
			c.named += n;
		else if (strstr(s->function ? s->function : s->location, "PyEval_EvalFrame"))
			c.evaluator += n;
	}
	/* Its library, as it is where that is not in scope. */
	for (size_t i = 0; i < p->n_elsewhere; i++) {
		const struct profile_elsewhere *e = &p->elsewhere[i];

		if (!fnmatch("libpython3*", basename(e->object), 0) &&
		    !(e->location && jit_is_name(e->location)))
			c.evaluator += (double)e->count;
	}
	c.all += (double)p->unattributed;
	return c;
}

void jit_notes(const struct report *r)
{
	struct counts c = count(r->p);

	for (size_t i = 0; i < r->p->n_samples; i++) {
		const char *location = r->p->samples[i].location;
		double samples = (double)r->p->samples[i].count;
		size_t n = jit_unnamed(location);
		_cleanup_free_ char *runtime =
			n ? xstrndup(location + strlen(JIT_UNNAMED), n) : NULL;

		if (!runtime || samples < LEAST_UNNAMED * c.all || samples < c.named)
			continue;
		note(r, NOTE_PLAIN,
		     "%.0f %% of the samples are in code without a name that %s makes as it runs: "
		     "%s.",
		     100 * samples / c.all, strcmp(runtime, "program") ? runtime : "the program",
		     remedy_of(runtime));
	}
	if (c.evaluator > LEAST_INTERPRETED * c.all && c.evaluator > c.named)
		note(r, NOTE_PLAIN,
		     "%.0f %% of the samples are in the evaluator of Python, which runs functions "
		     "without a name here: those of CPython 3.11 to 3.14 have lines, and those of "
		     "later versions names if it is started with `python3 -X perf`.",
		     100 * c.evaluator / c.all);
}
