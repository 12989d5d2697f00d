// SPDX-License-Identifier: BSD-2-Clause
#include "profile/record.h"

#include "base/memory.h"

#include <errno.h>
#include <json-c/json.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* '_' and '-' are the same: the two forms and the ages of Coz differ in them. */
static bool same_word(const char *a, size_t n, const char *word)
{
	if (strlen(word) != n)
		return false;
	for (size_t i = 0; i < n; i++)
		if (a[i] != word[i] &&
		    !((a[i] == '-' || a[i] == '_') && (word[i] == '-' || word[i] == '_')))
			return false;
	return true;
}

static int parse_json(struct json_tokener *tok, const char *line, size_t len, struct source *ret)
{
	struct json_object *o, *type;
	size_t end;

	json_tokener_reset(tok);
	o = json_tokener_parse_ex(tok, line, (int)len);
	end = json_tokener_get_parse_end(tok);
	if (!o)
		return -EINVAL;
	while (end < len && (line[end] == ' ' || line[end] == '\t'))
		end++;
	if (end != len || !json_object_is_type(o, json_type_object) ||
	    !json_object_object_get_ex(o, "type", &type) ||
	    !json_object_is_type(type, json_type_string)) {
		json_object_put(o);
		return -EINVAL;
	}
	*ret = (struct source){
		.json = o,
		.type = {json_object_get_string(type), (size_t)json_object_get_string_len(type)}};
	return 0;
}

static int parse_text(const char *line, size_t len, struct source *ret)
{
	const char *end = line + len, *p = line;
	struct source src = {0};

	while (p < end) {
		const char *tab = memchr(p, '\t', (size_t)(end - p));
		const char *stop = tab ? tab : end;
		const char *eq = memchr(p, '=', (size_t)(stop - p));

		if (p == line) {
			src.type = (struct source_slice){p, (size_t)(stop - p)};
		} else if (eq && src.n_pairs < SOURCE_MAX_PAIRS) {
			src.pairs[src.n_pairs].key = (struct source_slice){p, (size_t)(eq - p)};
			src.pairs[src.n_pairs++].value =
				(struct source_slice){eq + 1, (size_t)(stop - eq - 1)};
		}
		p = stop + (tab ? 1 : 0);
	}
	*ret = src;
	return 0;
}

int source_parse(struct json_tokener *tok, const char *line, size_t len, struct source *ret)
{
	if (len == 0)
		return -EINVAL;
	return line[0] == '{' ? parse_json(tok, line, len, ret) : parse_text(line, len, ret);
}

void source_free(struct source *src)
{
	json_object_put(src->json);
	*src = (struct source){0};
}

bool source_is(const struct source *src, const char *type)
{
	return same_word(src->type.s, src->type.n, type);
}

/* A present, non-null member, or NULL. Files by others may spell a key with '-'. */
static struct json_object *member(const struct source *src, const char *key)
{
	struct json_object *v;
	char other[64];
	size_t n = strlen(key);

	if (json_object_object_get_ex(src->json, key, &v))
		return v;
	if (n >= sizeof(other) || !strchr(key, '_'))
		return NULL;
	for (size_t i = 0; i <= n; i++)
		other[i] = key[i] == '_' ? '-' : key[i];
	return json_object_object_get_ex(src->json, other, &v) ? v : NULL;
}

static const struct source_slice *pair(const struct source *src, const char *key)
{
	for (size_t i = 0; i < src->n_pairs; i++)
		if (same_word(src->pairs[i].key.s, src->pairs[i].key.n, key))
			return &src->pairs[i].value;
	return NULL;
}

int source_child(const struct source *src, const char *key, struct source *ret)
{
	struct json_object *v = src->json ? member(src, key) : NULL;

	if (!v || !json_object_is_type(v, json_type_object))
		return -ENOENT;
	*ret = (struct source){.json = json_object_get(v)};
	return 0;
}

struct number {
	bool negative;
	uint64_t whole; /* its magnitude, rounded */
	double value;
};

/* Digits, a point, digits: not strtod, whose decimal point is the locale's. */
static int text_number(const struct source_slice *v, struct number *ret)
{
	const char *p = v->s, *end = v->s + v->n;
	double scale = 1, fraction = 0;

	ret->negative = p < end && *p == '-';
	if (ret->negative)
		p++;
	if (p == end || *p < '0' || *p > '9')
		return -EINVAL;
	ret->whole = 0;
	for (; p < end && *p >= '0' && *p <= '9'; p++)
		if (__builtin_mul_overflow(ret->whole, 10, &ret->whole) ||
		    __builtin_add_overflow(ret->whole, (uint64_t)(*p - '0'), &ret->whole))
			return -EINVAL;
	ret->value = (double)ret->whole;
	/* One division, so that 0.75 is the double 0.75; digits beyond a double's are of no
	 * consequence. */
	if (p < end && *p == '.')
		for (p++; p < end && *p >= '0' && *p <= '9'; p++)
			if (scale < 1e15) {
				fraction = fraction * 10 + (*p - '0');
				scale *= 10;
			}
	ret->value += fraction / scale;
	if (p != end)
		return -EINVAL;
	if (ret->negative)
		ret->value = -ret->value;
	return 0;
}

/* -ENOENT, -EINVAL. */
static int get_number(const struct source *src, const char *key, struct number *ret)
{
	const struct source_slice *v;
	struct json_object *o;

	if (!src->json) {
		v = pair(src, key);
		return v ? text_number(v, ret) : -ENOENT;
	}
	o = member(src, key);
	if (!o)
		return -ENOENT;
	if (json_object_is_type(o, json_type_int)) {
		int64_t i = json_object_get_int64(o);

		ret->negative = i < 0;
		ret->whole = i < 0 ? 0 - (uint64_t)i : json_object_get_uint64(o);
		ret->value = i < 0 ? (double)i : (double)ret->whole;
		return 0;
	}
	if (!json_object_is_type(o, json_type_double))
		return -EINVAL;
	ret->value = json_object_get_double(o);
	if (!isfinite(ret->value) || fabs(ret->value) >= 0x1p63)
		return -EINVAL;
	ret->negative = ret->value < 0;
	ret->whole = (uint64_t)(fabs(ret->value) + 0.5);
	return 0;
}

/* -EINVAL: not the one spelling that a number below @limit has. */
static int bucket_of(const char *name, uint32_t limit, uint32_t *ret)
{
	char *end;
	unsigned long v = strtoul(name, &end, 10);

	if (*name < '0' || *name > '9' || (*name == '0' && name[1]) || *end || v >= limit)
		return -EINVAL;
	*ret = (uint32_t)v;
	return 0;
}

int source_counts(const struct source *src, const char *key, uint32_t limit,
		  struct profile_bucket **ret, size_t *ret_n)
{
	struct json_object *o = src->json ? member(src, key) : NULL;
	struct profile_bucket *list;
	size_t n = 0, most;

	if (!o)
		return -ENOENT;
	if (!json_object_is_type(o, json_type_object))
		return -EINVAL;
	most = (size_t)json_object_object_length(o);
	if (most > limit) /* then not all of them can be below it */
		return -EINVAL;
	list = xcalloc(most, sizeof(*list));
	json_object_object_foreach(o, name, value)
	{
		if (bucket_of(name, limit, &list[n].bucket) < 0 ||
		    !json_object_is_type(value, json_type_int) ||
		    json_object_get_int64(value) < 0) {
			free(list);
			return -EINVAL;
		}
		list[n].count = json_object_get_uint64(value);
		n += list[n].count > 0;
	}
	*ret = list;
	*ret_n = n;
	return 0;
}

static int get_string(const struct source *src, const char *key, char **ret)
{
	struct json_object *o = src->json ? member(src, key) : NULL;
	const struct source_slice *v = src->json ? NULL : pair(src, key);
	struct source_slice text;

	if (!o && !v)
		return -ENOENT;
	if (o && !json_object_is_type(o, json_type_string))
		return -EINVAL;
	text = v ? *v
		 : (struct source_slice){json_object_get_string(o),
					 (size_t)json_object_get_string_len(o)};
	if (text.n > SOURCE_MAX_STRING || memchr(text.s, '\0', text.n))
		return -EINVAL;
	free(*ret); /* a table may be filled twice */
	*ret = xstrndup(text.s, text.n);
	return 0;
}

/* -EINVAL: out of the field's range. */
static int set_number(enum field_kind kind, const struct number *x, void *at)
{
	if (kind == FIELD_U64) {
		if (x->negative && x->whole)
			return -EINVAL;
		*(uint64_t *)at = x->whole;
	} else if (kind == FIELD_I64) {
		if (x->whole > (uint64_t)INT64_MAX + x->negative)
			return -EINVAL;
		*(int64_t *)at = x->negative ? (int64_t)(0 - x->whole) : (int64_t)x->whole;
	} else {
		if (!(x->value >= 0 && x->value <= 1))
			return -EINVAL;
		*(double *)at = x->value + 0.0; /* -0 is 0 */
	}
	return 0;
}

int source_fill(const struct source *src, const struct field_table *t, void *record)
{
	for (size_t i = 0; i < t->n; i++) {
		const struct field *f = &t->fields[i];
		void *at = (char *)record + f->offset;
		struct number x;
		int r;

		if (f->kind == FIELD_STRING) {
			r = get_string(src, f->key, at);
		} else {
			r = get_number(src, f->key, &x);
			r = r ? r : set_number(f->kind, &x, at);
		}
		if (r == -ENOENT && f->required)
			return -EINVAL;
		if (r && r != -ENOENT)
			return r;
	}
	return 0;
}
