/* SPDX-License-Identifier: BSD-2-Clause */
/* Where the debug information of a program is, if not in itself: by build id and by .gnu_debuglink,
 * in the places that gdb and elfutils look at. A file that is found by its name must also prove
 * that it belongs, and that nobody else can have made it. */
#pragma once

#include "program/elf/debug_file.h"

struct elf_object;
struct error;
struct debug_options;

/* Opens a file that @o's debug information names, with the rights of the program's user.
 * -EKEYREJECTED: it is neither root's nor of the owner of @o's own file (of a server's answer: the
 * invoking user's), or others may write it, and it is in no directory of @options; -ENOEXEC: no ELF
 * file; else as open_file. */
int debug_open_named(const struct elf_object *o, const struct debug_options *options,
		     const char *path);

/* The separate debug file of @o, whose own sections are @self: with line information if @lines,
 * else with symbols. -ENOENT: there is none; @why is then the reason if one was there that does not
 * belong or is damaged, else left alone. */
int debug_find_separate(const struct elf_object *o, const struct debug_file *self,
			const struct debug_options *options, bool lines, struct debug_file **ret,
			struct error *why);

/* Opens what dwz moved out of @f (f->alternate), which is @o or a debug file of it. False: there
 * should be one, and it is missing or not the right one; @why says so. */
bool debug_find_alternate(const struct elf_object *o, struct debug_file *f,
			  const struct debug_options *options, struct error *why);

/* The .dwo file @name of @f (its root entry says whether it is the right one), beside the program
 * @o or where it was built, or NULL; @why says what was wrong with one that was there. */
struct debug_file *debug_find_split(const struct elf_object *o, const struct debug_options *options,
				    const char *comp_dir, const char *name, struct error *why);

/* The package of split units of @f: FILE.dwp beside it or beside the program. NULL: none, or a
 * damaged one (@why). */
struct debug_file *debug_find_package(const struct elf_object *o, const struct debug_file *f,
				      const struct debug_options *options, struct error *why);
