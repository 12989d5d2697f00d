// SPDX-License-Identifier: BSD-2-Clause
/* The preloaded library's start: it attaches, and the program cannot tell that it did. The program
 * is this one, run again. */
#include "base/cleanup.h"
#include "base/error.h"
#include "shared/shim_abi.h"
#include "target/shim/image.h"
#include "target/internal.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define PRELOADED "libm.so.6"

struct fixture {
	struct shim_page *page;
	int page_fd, slots_fd;
	enum shim_pay pay;
};

static char own_exe[4096];
static char output_name[] = "/tmp/cozbpf-shim-XXXXXX";

static struct fixture make_fixture(enum shim_pay pay)
{
	struct fixture f = {.pay = pay, .slots_fd = memfd_create("slots", MFD_CLOEXEC)};

	assert_int_equal(target_make_page(&f.page_fd, &f.page, NULL), 0);
	assert_true(f.slots_fd >= 0);
	assert_int_equal(ftruncate(f.slots_fd, SHIM_ENTRIES * sizeof(struct shim_slot)), 0);
	return f;
}

static void free_fixture(struct fixture *f)
{
	(void)munmap(f->page, sizeof(struct shim_page));
	(void)close(f->page_fd);
	if (f->slots_fd >= 0)
		(void)close(f->slots_fd);
}

static int run(const struct fixture *f, const struct identity *id, char *const *argv)
{
	struct target_spec spec = {.argv = argv, .identity = id, .page_fd = -1, .slots_fd = -1};
	struct target *t = NULL;
	struct error e = {0};
	int status = 0;

	if (f) {
		spec.shim = shim_image;
		spec.shim_size = shim_image_size;
		spec.page_fd = f->page_fd;
		spec.slots_fd = f->slots_fd;
		spec.pay = f->pay;
		spec.signo = (unsigned int)SIGRTMIN + 8;
	}
	if (target_spawn(&spec, &t, &e) < 0 || target_exec(t, &e) < 0)
		fail_msg("%s", e.text);
	assert_int_equal(target_reap(t, &status), 0);
	target_free(t);
	return target_exit_code(status);
}

/* The program's view of itself: environment, open descriptors, blocked and ignored signals. */
static int child_describe(const char *name, char **envp)
{
	FILE *out = fopen(name, "we"), *status = fopen("/proc/self/status", "re");
	DIR *d = opendir("/proc/self/fd");
	char line[512];

	if (!out || !status || !d)
		return 1;
	(void)fprintf(out, "errno %d\n", errno);
	for (char **p = environ; p && *p; p++)
		(void)fprintf(out, "%s\n", *p);
	for (; *envp; envp++)
		(void)fprintf(out, "main's %s\n", *envp);
	for (struct dirent *entry = readdir(d); entry; entry = readdir(d))
		(void)fprintf(out, "descriptor %s\n", entry->d_name);
	while (fgets(line, sizeof(line), status))
		if (strncmp(line, "SigBlk", 6) == 0 || strncmp(line, "SigIgn", 6) == 0)
			(void)fputs(line, out);
	(void)fclose(status);
	(void)closedir(d);
	return fclose(out) == 0 ? 0 : 1;
}

static char *describe(const struct fixture *f)
{
	_cleanup_fclose_ FILE *in = NULL;
	char *text = calloc(1, 65536);

	assert_int_equal(run(f, NULL, (char *[]){own_exe, "describe", output_name, NULL}), 0);
	in = fopen(output_name, "re");
	assert_non_null(in);
	assert_true(fread(text, 1, 65535, in) > 0);
	return text;
}

static void check_untouched(const char *preload)
{
	struct fixture f = make_fixture(SHIM_PAY_SLEEP);
	_cleanup_free_ char *without = NULL, *with = NULL;

	if (preload)
		setenv("LD_PRELOAD", preload, 1);
	/* Something after it, so that the order shows. */
	setenv("COZBPF_TEST_LAST", "1", 1);
	without = describe(NULL);
	with = describe(&f);
	unsetenv("LD_PRELOAD");
	unsetenv("COZBPF_TEST_LAST");
	assert_string_equal(with, without);
	assert_int_equal(f.page->loaded, 1);
	assert_int_equal(f.page->slots_mapped, 1);
	free_fixture(&f);
}

static void leaves_no_trace(void **state)
{
	(void)state;
	check_untouched(NULL);
}

static void leaves_other_preloads(void **state)
{
	(void)state;
	check_untouched("");
	check_untouched(PRELOADED);
	check_untouched(PRELOADED " libc.so.6");
	check_untouched(PRELOADED ":libc.so.6");
}

static void few_descriptors(void **state)
{
	struct rlimit old, low;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	low = old;
	low.rlim_cur = 32;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	check_untouched(NULL);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
}

/* What the program sees if it gets the library in another way than from a launch: @image, @page and
 * @slots by number. */
static char *describe_with(int image, int page, int slots)
{
	const int from[] = {image, page, slots};
	char *text = calloc(1, 65536);
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		for (int i = 0; i < SHIM_FDS; i++)
			(void)dup2(from[i], 300 + i);
		setenv("LD_PRELOAD", "/proc/self/fd/300", 1);
		(void)execl(own_exe, own_exe, "describe", output_name, NULL);
		_exit(1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	{
		_cleanup_fclose_ FILE *in = fopen(output_name, "re");

		assert_non_null(in);
		assert_true(fread(text, 1, 65535, in) > 0);
	}
	return text;
}

/* Descriptors that are not what the sealed image names: the library takes none of them, and what is
 * said to the program stays. */
static void strange_descriptors_are_left_alone(void **state)
{
	struct fixture f = make_fixture(SHIM_PAY_SLEEP), other = make_fixture(SHIM_PAY_SLEEP);
	struct target_spec spec = {.shim = shim_image,
				   .shim_size = shim_image_size,
				   .page_fd = f.page_fd,
				   .slots_fd = f.slots_fd};
	int image = -1, unsealed = memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	_cleanup_free_ char *whole = malloc(2 * shim_image_size);
	ssize_t n;
	char *text;

	(void)state;
	assert_int_equal(target_make_image(&spec, &image, NULL), 0);
	n = pread(image, whole, 2 * shim_image_size, 0);
	assert_true(n > (ssize_t)shim_image_size);
	assert_int_equal(write(unsealed, whole, (size_t)n), n);
	/* As it should be. */
	text = describe_with(image, f.page_fd, f.slots_fd);
	assert_null(strstr(text, "LD_PRELOAD"));
	assert_int_equal(f.page->loaded, 1);
	assert_int_equal(f.page->slots_mapped, 1);
	free(text);
	/* Other slots: mapped are none, and they stay open. */
	text = describe_with(image, f.page_fd, other.slots_fd);
	assert_null(strstr(text, "LD_PRELOAD"));
	assert_non_null(strstr(text, "descriptor 302\n"));
	assert_int_equal(f.page->slots_mapped, 0);
	free(text);
	/* Another page, and an image that is not sealed. */
	text = describe_with(image, other.page_fd, f.slots_fd);
	assert_non_null(strstr(text, "LD_PRELOAD=/proc/self/fd/300"));
	assert_non_null(strstr(text, "descriptor 301\n"));
	free(text);
	text = describe_with(unsealed, f.page_fd, other.slots_fd);
	assert_non_null(strstr(text, "LD_PRELOAD=/proc/self/fd/300"));
	free(text);
	assert_int_equal(other.page->loaded, 0);
	(void)close(image);
	(void)close(unsealed);
	free_fixture(&f);
	free_fixture(&other);
}

/* A page that could be cut under the mapping, and slots that are shorter than it. */
static void mappings_cannot_be_cut(void **state)
{
	struct fixture f = make_fixture(SHIM_PAY_SLEEP);
	_cleanup_free_ char *text = NULL;
	int page = f.page_fd;

	(void)state;
	assert_int_equal(ftruncate(f.page_fd, 4096), -1);
	assert_int_equal(ftruncate(f.page_fd, 2 * (off_t)sizeof(*f.page)), -1);
	assert_int_equal(ftruncate(f.slots_fd, 4096), 0);
	text = describe(&f);
	assert_int_equal(f.page->loaded, 1);
	assert_int_equal(f.page->slots_mapped, 0);
	f.page->loaded = 0;
	f.page_fd = memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_int_equal(ftruncate(f.page_fd, sizeof(*f.page)), 0);
	free(text);
	text = describe(&f);
	assert_non_null(strstr(text, "LD_PRELOAD="));
	assert_non_null(strstr(text, "/proc/self/fd/"));
	(void)close(page);
	free_fixture(&f);
}

static void works_without_slots(void **state)
{
	struct fixture f = make_fixture(SHIM_PAY_NONE);
	_cleanup_free_ char *without = NULL, *with = NULL;

	(void)state;
	(void)close(f.slots_fd);
	f.slots_fd = -1;
	without = describe(NULL);
	with = describe(&f);
	assert_string_equal(with, without);
	assert_int_equal(f.page->loaded, 1);
	assert_int_equal(f.page->slots_mapped, 0);
	free_fixture(&f);
}

/* As sudo's invoking user: the loader must be allowed to open what root created, and a real BPF map
 * to be mapped. */
static void unprivileged_program(void **state)
{
	struct identity nobody = {.uid = 65534, .gid = 65534, .switches = true};
	union bpf_attr attr = {.map_type = BPF_MAP_TYPE_ARRAY,
			       .key_size = 4,
			       .value_size = sizeof(struct shim_slot),
			       .max_entries = SHIM_ENTRIES,
			       .map_flags = BPF_F_MMAPABLE};
	struct fixture f;
	int map;

	(void)state;
	if (geteuid() != 0)
		skip();
	f = make_fixture(SHIM_PAY_SLEEP);
	map = (int)syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof(attr));
	if (map >= 0) {
		(void)close(f.slots_fd);
		f.slots_fd = map;
	}
	assert_int_equal(run(&f, &nobody,
			     (char *[]){"sh", "-c",
					"test -z \"$LD_PRELOAD\" && test $(id -u) = 65534", NULL}),
			 0);
	assert_int_equal(f.page->loaded, 1);
	assert_int_equal(f.page->slots_mapped, 1);
	free_fixture(&f);
}

#define RACERS 8
#define RACE_NAMES 24
#define CHECK(c)                                                                      \
	do {                                                                          \
		if (!(c)) {                                                           \
			(void)fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #c); \
			return 1;                                                     \
		}                                                                     \
	} while (0)

typedef struct {
	size_t count, backoff;
} counter_t;
typedef counter_t *get_counter_fn(int type, const char *name);
static get_counter_fn *get_counter;
static pthread_barrier_t barrier;

static void *race(void *found)
{
	counter_t **mine = found;
	char name[32];

	for (int i = 0; i < RACE_NAMES; i++) {
		(void)snprintf(name, sizeof(name), "race%d", i);
		(void)pthread_barrier_wait(&barrier);
		mine[i] = get_counter(1, name);
		if (mine[i])
			(void)__atomic_add_fetch(&mine[i]->count, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

static int child_counters(void)
{
	static counter_t *found[RACERS][RACE_NAMES];
	pthread_t threads[RACERS];
	counter_t *a, *b;
	char name[300];
	void *symbol = dlsym(RTLD_DEFAULT, "_coz_get_counter");

	CHECK(symbol && dlsym(RTLD_DEFAULT, "_coz_add_delays") &&
	      dlsym(RTLD_DEFAULT, "_coz_pre_block") && dlsym(RTLD_DEFAULT, "_coz_post_block"));
	memcpy(&get_counter, &symbol, sizeof(symbol));
	errno = 4711;
	a = get_counter(1, "alpha");
	CHECK(a && a == get_counter(1, "alpha") && errno == 4711);
	b = get_counter(2, "alpha");
	CHECK(b && b != a && b == get_counter(2, "alpha"));
	CHECK(!get_counter(0, "x") && !get_counter(4, "x") && !get_counter(-1, "x") &&
	      !get_counter(1, NULL));
	a->count += 3;
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	a = get_counter(3, name);
	CHECK(a && a == get_counter(3, name));
	CHECK(pthread_barrier_init(&barrier, NULL, RACERS) == 0);
	for (int i = 0; i < RACERS; i++)
		CHECK(pthread_create(&threads[i], NULL, race, found[i]) == 0);
	for (int i = 0; i < RACERS; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	for (int i = 0; i < RACERS; i++)
		for (int k = 0; k < RACE_NAMES; k++)
			CHECK(found[i][k] && found[i][k] == found[0][k]);
	/* Until it is full; what is there stays. */
	for (int i = 0; i < SHIM_MAX_COUNTERS; i++) {
		(void)snprintf(name, sizeof(name), "fill%d", i);
		a = get_counter(1, name);
	}
	CHECK(!a && get_counter(2, "alpha") == b);
	return 0;
}

static void counters(void **state)
{
	struct fixture f = make_fixture(SHIM_PAY_NONE);
	unsigned int seen[RACE_NAMES] = {0}, i;

	(void)state;
	assert_int_equal(run(&f, NULL, (char *[]){own_exe, "counters", NULL}), 0);
	assert_int_equal(f.page->n_counters, SHIM_MAX_COUNTERS);
	assert_true(f.page->lost_counters > 0);
	assert_string_equal(f.page->counters[0].name, "alpha");
	assert_int_equal(f.page->counters[0].type, SHIM_COUNTER_THROUGHPUT);
	assert_int_equal(f.page->counters[0].count, 3);
	assert_int_equal(f.page->counters[1].type, SHIM_COUNTER_BEGIN);
	assert_int_equal(f.page->counters[2].type, SHIM_COUNTER_END);
	assert_int_equal(strlen(f.page->counters[2].name), sizeof(f.page->counters[2].name) - 1);
	/* Every racer counted in the one entry that is published under the name. */
	for (i = 0; i < SHIM_MAX_COUNTERS; i++) {
		const struct shim_counter *c = &f.page->counters[i];
		int k;

		if (c->type == SHIM_COUNTER_FREE)
			assert_int_equal(c->count, 0);
		else if (sscanf(c->name, "race%d", &k) == 1) {
			seen[k]++;
			assert_int_equal(c->count, RACERS);
		}
	}
	for (i = 0; i < RACE_NAMES; i++)
		assert_int_equal(seen[i], 1);
	free_fixture(&f);
}

int main(int argc, char **argv, char **envp)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(leaves_no_trace),
		cmocka_unit_test(leaves_other_preloads),
		cmocka_unit_test(few_descriptors),
		cmocka_unit_test(strange_descriptors_are_left_alone),
		cmocka_unit_test(mappings_cannot_be_cut),
		cmocka_unit_test(works_without_slots),
		cmocka_unit_test(unprivileged_program),
		cmocka_unit_test(counters),
	};
	int fd, r;

	if (argc == 3 && strcmp(argv[1], "describe") == 0)
		return child_describe(argv[2], envp);
	if (argc == 2 && strcmp(argv[1], "counters") == 0)
		return child_counters();
	target_save_signals();
	unsetenv("LD_PRELOAD");
	/* In a sanitized build the runtime objects to any library before it. */
	setenv("ASAN_OPTIONS", "verify_asan_link_order=0", 1);
	fd = mkstemp(output_name);
	if (readlink("/proc/self/exe", own_exe, sizeof(own_exe) - 1) <= 0 || fd < 0)
		return 1;
	(void)close(fd);
	r = cmocka_run_group_tests(tests, NULL, NULL);
	(void)unlink(output_name);
	return r;
}
