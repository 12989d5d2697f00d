// SPDX-License-Identifier: BSD-2-Clause
/* Two threads make statements of account, batch by batch, and meet at a barrier after each. One adds up the orders of each customer, which are a list in
 * memory; the other makes check digits for the batch before. See orders.md. With -DPACKED the orders of a customer lie next to each other.
 * usage: orders [SECONDS] */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define KEEP __attribute__((noinline)) /* a function of its own in the profile */
#define CUSTOMERS 100000
#define ORDERS 20 /* of each */
#define BATCH 2500

struct order {
	struct order *next;
	uint64_t cents;
	char item[48];
};

static struct order *first[CUSTOMERS], *orders;
static uint64_t sums[2][BATCH];
static pthread_barrier_t barrier;
static volatile uint64_t check, batches;

static KEEP void add_up(struct order *const *customers, uint64_t *ret)
{
	for (int i = 0; i < BATCH; i++) {
		uint64_t sum = 0;

		for (const struct order *o = customers[i]; o; o = o->next)
			sum += o->cents; /* LINE:sum */
		ret[i] = sum;
	}
}

static KEEP void check_digits(const uint64_t *all)
{
	uint64_t x = 1;

	for (int i = 0; i < BATCH; i++)
		for (int k = 0; k < 150; k++)
			x = x * 31 + all[i]; /* LINE:check */
	check = x;
}

/* The progress point: a batch is done. */
static KEEP void progress(void)
{
	__asm__ volatile("" : : : "memory");
}

static void *adder(void *arg)
{
	for (uint64_t n = 0;; n++) {
		add_up(&first[n * BATCH % CUSTOMERS], sums[n & 1]);
		(void)pthread_barrier_wait(&barrier);
		progress();
		batches++;
	}
	return arg;
}

static void *checker(void *arg)
{
	for (uint64_t n = 1;; n++) {
		check_digits(sums[n & 1]);
		(void)pthread_barrier_wait(&barrier);
	}
	return arg;
}

/* Orders come in by the day: those of a customer are far from each other. */
static int fill(void)
{
	orders = calloc((size_t)CUSTOMERS * ORDERS, sizeof(*orders));
	if (!orders)
		return -1;
	for (size_t i = 0; i < (size_t)CUSTOMERS * ORDERS; i++) {
#ifdef PACKED
		size_t customer = i / ORDERS;
#else
		size_t customer = i * 7919 % CUSTOMERS;
#endif
		orders[i] = (struct order){.next = first[customer], .cents = i % 10007};
		first[customer] = &orders[i];
	}
	return 0;
}

int main(int argc, char **argv)
{
	int seconds = argc > 1 ? atoi(argv[1]) : 0;
	pthread_t t;

	if (fill() || pthread_barrier_init(&barrier, NULL, 2) || pthread_create(&t, NULL, adder, NULL) || pthread_create(&t, NULL, checker, NULL))
		return 1;
	if (seconds <= 0)
		for (;;)
			(void)pause();
	(void)sleep((unsigned int)seconds);
	(void)printf("%.1f batches a second\n", (double)batches / seconds);
	return 0;
}
