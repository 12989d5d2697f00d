/* SPDX-License-Identifier: BSD-2-Clause */
/* From what a user wrote to the places of the program where probes go. */
#pragma once

#include "points/point_spec.h"
#include "points/points.h"

/* The compiler may make thousands of copies of a function, or of what is in a header; each place is
 * a link or a part of one. */
#define POINT_MAX_SITES 65536

struct code_map;
struct elf_object;
struct elf_symbol;
struct error;
struct line_table;

struct point_sites {
	struct point_site *all; /* owned */
	size_t n;
	struct code_exit *exits; /* owned; of a point at returns: what the sites are */
	struct elf_symbol *code; /* owned; of a sampled function, which has no sites: its parts */
	size_t n_code;
	size_t n_inlined; /* how many inlined copies are counted instead of a function; 0: none */
	bool by_address;  /* it was not named, but the place where it begins */
	char *shared; /* owned; other functions that the same code is of (elf/names.h); NULL: none
		       */
};

/* Is object @i of the map one that the point can be in? A main executable, if none is named, or
 * what is called so; for lines whatever is in scope; for USDT probes anything. For the kinds of
 * points that have sites. */
bool point_may_be_in(const struct code_map *code, const struct point_spec *p, size_t i);
/* Where the point is in object @i: at least one site, each of which can be probed, cheap ones where
 * one is as good as another unless @p is exact; or code of a function whose samples count. -ENOENT,
 * -EINVAL, ...: it is not, @e names the point, what is wrong and what is near. *ret is the
 * caller's. */
int point_find(struct code_map *code, size_t i, const struct point_spec *p, struct point_sites *ret,
	       struct error *e);
void point_sites_free(struct point_sites *s); /* frees the contents */

/* Finds the first statements of FILE:LINE in the object; their addresses are in *ret, the caller's.
 * On failure @e says what is wrong, without the name of the point. @t may be NULL. */
int point_find_line(const struct elf_object *o, struct line_table *t, const struct point_spec *p,
		    uint64_t **ret, size_t *ret_n, struct error *e);
/* (point_inlined.c) Likewise, the entries of the inlined copies of a function of which there is
 * nothing else. -ENOENT: there are none, and @e is left alone. */
int point_find_inlined(const struct elf_object *o, struct line_table *t, const struct point_spec *p,
		       uint64_t **ret, size_t *ret_n, struct error *e);
/* Likewise, says why there is no function of the name; @err as elf_object_find_function returned
 * it. */
int point_no_function(const struct elf_object *o, const struct point_spec *p, int err,
		      struct error *e);
