// SPDX-License-Identifier: BSD-2-Clause
/* Ten kernels, whose blocks execute often and rarely, and wait for memory, branches, divisions, or
 * nothing. NAME REPETITIONS; each repetition starts from the same random numbers, so it executes
 * the same. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KERNEL __attribute__((noinline))
#define TEXT (1 << 18)

static uint64_t state;
static volatile uint64_t sink;
static unsigned char text[TEXT];

/* xorshift64 (Marsaglia, 2003) */
static uint64_t number(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

KERNEL void insert(int *a, long n)
{
	for (long i = 1; i < n; i++) {
		int v = a[i];
		long j = i;

		for (; j > 0 && a[j - 1] > v; j--)
			a[j] = a[j - 1];
		a[j] = v;
	}
}

KERNEL void quicksort(int *a, long n)
{
	while (n > 16) {
		int pivot = a[n / 2];
		long i = 0, j = n - 1;

		while (i <= j) {
			while (a[i] < pivot)
				i++;
			while (a[j] > pivot)
				j--;
			if (i <= j) {
				int t = a[i];

				a[i++] = a[j];
				a[j--] = t;
			}
		}
		quicksort(a, j + 1);
		a += i;
		n -= i;
	}
	insert(a, n);
}

static void sort(void)
{
	static int a[100000];

	for (int i = 0; i < 100000; i++)
		a[i] = (int)number();
	quicksort(a, 100000);
	sink = (uint64_t)a[7];
}

KERNEL void multiply(const double *a, const double *b, double *c, int n)
{
	for (int i = 0; i < n; i++)
		for (int j = 0; j < n; j++) {
			double sum = 0;

			for (int k = 0; k < n; k++)
				sum += a[i * n + k] * b[k * n + j];
			c[i * n + j] = sum;
		}
}

static void matrices(void)
{
	static double a[160 * 160], b[160 * 160], c[160 * 160];

	for (int i = 0; i < 160 * 160; i++)
		a[i] = b[i] = i;
	multiply(a, b, c, 160);
	sink = (uint64_t)c[5];
}

#define SLOTS 65536
static struct {
	uint64_t key, n;
} slots[SLOTS];

KERNEL void put(uint64_t key)
{
	uint64_t at = key * 0x9e3779b97f4a7c15ULL >> 48;

	while (slots[at].key && slots[at].key != key)
		at = (at + 1) % SLOTS;
	slots[at].key = key;
	slots[at].n++;
}

KERNEL uint64_t get(uint64_t key)
{
	for (uint64_t at = key * 0x9e3779b97f4a7c15ULL >> 48; slots[at].key; at = (at + 1) % SLOTS)
		if (slots[at].key == key)
			return slots[at].n;
	return 0;
}

static void hash(void)
{
	uint64_t sum = 0;

	memset(slots, 0, sizeof(slots));
	for (int i = 0; i < 50000; i++)
		put(1 + number() % 45000);
	for (int i = 0; i < 100000; i++)
		sum += get(1 + number() % 60000);
	sink = sum;
}

KERNEL void cross_out(char *prime, int n)
{
	for (int i = 2; i < n; i++)
		prime[i] = 1;
	for (int i = 2; i * i < n; i++)
		for (int j = prime[i] ? i * i : n; j < n; j += i)
			prime[j] = 0;
}

static void sieve(void)
{
	static char prime[200000];

	cross_out(prime, 200000);
	sink = (uint64_t)prime[199999];
}

KERNEL uint32_t checksum(const unsigned char *p, long n)
{
	uint32_t c = ~0U;

	for (long i = 0; i < n; i++) {
		c ^= p[i];
		for (int k = 0; k < 8; k++)
			c = c & 1 ? 0xedb88320U ^ (c >> 1) : c >> 1;
	}
	return ~c;
}

static void crc(void)
{
	uint32_t c = 0;

	for (long i = 0; i < TEXT; i += 4096)
		c ^= checksum(text + i, 4096);
	sink = c;
}

KERNEL int distance(const unsigned char *a, const unsigned char *b, int n)
{
	static int row[1001];

	for (int j = 0; j <= n; j++)
		row[j] = j;
	for (int i = 1; i <= n; i++) {
		int before = row[0];

		row[0] = i;
		for (int j = 1; j <= n; j++) {
			int cost = before + (a[i - 1] != b[j - 1]);

			before = row[j];
			if (row[j] + 1 < cost)
				cost = row[j] + 1;
			if (row[j - 1] + 1 < cost)
				cost = row[j - 1] + 1;
			row[j] = cost;
		}
	}
	return row[n];
}

static void edits(void)
{
	sink = (uint64_t)distance(text, text + 5000, 1000);
}

KERNEL long pack(const unsigned char *p, long n, unsigned char *out)
{
	long w = 0;

	for (long i = 0; i < n;) {
		long run = 1;

		while (i + run < n && p[i + run] == p[i] && run < 255)
			run++;
		if (run > 3) {
			out[w++] = 0;
			out[w++] = (unsigned char)run;
			out[w++] = p[i];
			i += run;
		} else {
			out[w++] = p[i++];
		}
	}
	return w;
}

static void runs(void)
{
	static unsigned char in[TEXT], out[TEXT];

	for (long i = 0; i < TEXT;) {
		uint64_t run = number() % 4 ? 1 : number() % 40;
		unsigned char c = (unsigned char)(1 + number() % 20);

		while (run-- && i < TEXT)
			in[i++] = c;
	}
	sink = (uint64_t)pack(in, TEXT, out);
}

struct body {
	double x, y, z, vx, vy, vz, mass;
};

KERNEL void attract(struct body *p, int n, double dt)
{
	for (int i = 0; i < n; i++)
		for (int j = i + 1; j < n; j++) {
			double dx = p[i].x - p[j].x, dy = p[i].y - p[j].y, dz = p[i].z - p[j].z;
			double square = dx * dx + dy * dy + dz * dz + 1e-3,
			       force = dt / (square * sqrt(square));

			p[i].vx -= dx * p[j].mass * force;
			p[i].vy -= dy * p[j].mass * force;
			p[i].vz -= dz * p[j].mass * force;
			p[j].vx += dx * p[i].mass * force;
			p[j].vy += dy * p[i].mass * force;
			p[j].vz += dz * p[i].mass * force;
		}
	for (int i = 0; i < n; i++) {
		p[i].x += dt * p[i].vx;
		p[i].y += dt * p[i].vy;
		p[i].z += dt * p[i].vz;
	}
}

static void bodies(void)
{
	static struct body p[40];

	for (int i = 0; i < 40; i++)
		p[i] = (struct body){i, i * i % 7, i % 5, 0, 0, 0, 1 + i % 3};
	for (int k = 0; k < 100; k++)
		attract(p, 40, 0.001);
	sink = (uint64_t)p[3].x;
}

/* Horspool, 1980 */
KERNEL int find(const unsigned char *in, long n, const unsigned char *word, long m)
{
	long skip[256];
	int found = 0;

	for (int i = 0; i < 256; i++)
		skip[i] = m;
	for (long i = 0; i < m - 1; i++)
		skip[word[i]] = m - 1 - i;
	for (long i = 0; i + m <= n; i += skip[in[i + m - 1]]) {
		long k = m - 1;

		while (k >= 0 && in[i + k] == word[k])
			k--;
		found += k < 0;
	}
	return found;
}

static void search(void)
{
	sink = (uint64_t)(find(text, TEXT, text + 1000, 6) + find(text, TEXT, text + 33333, 4) +
			  find(text, TEXT, text + 77777, 9));
}

KERNEL int longest(int n)
{
	int best = 0;

	for (int i = 1; i < n; i++) {
		int steps = 0;

		for (uint64_t x = (uint64_t)i; x != 1; steps++)
			x = x & 1 ? 3 * x + 1 : x >> 1;
		if (steps > best)
			best = steps;
	}
	return best;
}

static void collatz(void)
{
	sink = (uint64_t)longest(5000);
}

static const struct {
	const char *name;
	void (*run)(void);
} all[] = {
	{"sort", sort},	    {"matrices", matrices}, {"hash", hash}, {"sieve", sieve},
	{"crc", crc},	    {"edits", edits},	    {"runs", runs}, {"bodies", bodies},
	{"search", search}, {"collatz", collatz},
};

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	state = 88172645463325252ULL;
	for (size_t i = 0; i < TEXT; i++)
		text[i] = (unsigned char)"etaoin shrdlucmfwypvbgkjqxz,.\n"[number() % 30 *
									   (number() % 30) / 30];
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		for (long r = strcmp(argv[1], all[i].name) == 0 ? atol(argv[2]) : 0; r > 0; r--) {
			state = 88172645463325252ULL;
			all[i].run();
		}
	return 0;
}
