/* SPDX-License-Identifier: BSD-2-Clause */
/* What the unwind*.c files share. */
#pragma once

#include "shared/abi.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

struct error;
struct session;

#define UNWIND_MAX_CHUNKS (ABI_MAX_ROWS / ABI_ROW_CHUNK)

/* An object's rows in the map. */
struct unwind_rows {
	bool added, left_out, kept; /* is it in the map; was there no room for it, or for what came in its stead? */
	unsigned int lo, hi, room;  /* from lo on */
	/* The place for the next table: that of the one before, which nothing has searched since the modules were swapped. */
	unsigned int spare_lo, spare_room;
};

/* A part of the map of modules. */
struct unwind_part {
	unsigned int first, room;
};

/* An address space's modules: those in force, and the place for the next. */
struct unwind_space {
	struct unwind_part now, spare;
};

struct unwind {
	struct abi_row *chunks[UNWIND_MAX_CHUNKS];
	size_t n_chunks, n_rows;
	struct abi_module *modules; /* the map */
	unsigned int n_pool;	    /* of it given away so far */
	struct unwind_part *free;   /* of spaces that are gone */
	size_t n_free;
	struct unwind_space *spaces; /* by the code map's index */
	size_t n_spaces;
	size_t n_surplus_spaces;
	bool moved;		     /* rows of an object that was there already are elsewhere now */
	struct unwind_rows *objects; /* by the code map's index */
	size_t n_objects;
	size_t n_left_out;
	char *left_out; /* the first one's path */
	size_t n_kept;
	char *kept; /* likewise */
	size_t n_surplus_modules;
	/* The first chunk comes into force while unwind_open's caller does something else. */
	pthread_t inserter;
	bool inserting;
	int rows_fd, first_fd, first_error;
};

/* unwind_rows.c. After load; the first chunk is begun with (unwind_opened ends that). A failure leaves what unwind_rows_close frees. */
int unwind_rows_open(struct session *s, struct error *e);
void unwind_rows_close(struct session *s);
/* Takes the rows out of the code map's objects whose tables are new. */
int unwind_add_rows(struct session *s, struct error *e);
