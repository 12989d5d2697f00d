// SPDX-License-Identifier: BSD-2-Clause
#include "export/rows.h"

#include "base/cleanup.h"
#include "base/memory.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <json-c/json.h>
#include <string.h>

static void put_json(FILE *out, const char *s)
{
	_cleanup_free_ char *clean = utf8_clean(s, strlen(s));
	struct json_object *o = or_out_of_memory(json_object_new_string(clean));

	utf8_put_json(out, json_object_to_json_string_ext(
				   o, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE));
	json_object_put(o);
}

void rows_head(FILE *out, bool csv, const struct cell *cells, size_t n)
{
	for (size_t i = 0; csv && i < n; i++)
		(void)fprintf(out, "%s%s", cells[i].column, i + 1 < n ? "," : "\n");
}

void rows_put(FILE *out, bool csv, const struct cell *cells, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (csv)
			(void)fputs(i ? "," : "", out);
		else
			(void)fprintf(out, "%s\"%s\":", i ? "," : "{", cells[i].column);
		if (cells[i].is_share)
			(void)fprintf(out, "%.6f", cells[i].share);
		else if (!cells[i].text)
			(void)fprintf(out, "%" PRIu64, cells[i].number);
		else if (csv)
			(void)utf8_put_csv(out, cells[i].text, true);
		else
			put_json(out, cells[i].text);
	}
	(void)fputs(csv ? "\n" : "}\n", out);
}
