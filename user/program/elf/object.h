/* SPDX-License-Identifier: BSD-2-Clause */
/* An ELF file on disk: what it is, its segments, its symbols. Trusts nothing in the file. Uses
 * libelf. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct error;
struct statx;
struct elf_object;
struct debug_options;
struct file_rights;

struct elf_symbol {
	const char *name;     /* as in the symbol table; owned by the object */
	const char *function; /* the same without what compilers append to the parts and copies that
			       * they make of a function (".cold",
			       * ".part.0", ".isra.0", ...): which function's code it is; owned by
			       * the object */
	uint64_t addr;	      /* virtual address in the file's own numbering */
	uint64_t size;	  /* bytes; the distance to the next symbol (or section end) where the table
			     says 0 */
	bool is_nameless; /* it has no name in any table: see elf_object_has_functions */
	bool is_indirect; /* what stands there is run once, when it is loaded, to choose the
			     function that is called by this name */
};

/* Opens and checks an x86-64 ELF executable or shared object. On success *ret is the caller's
 * (elf_object_close). Errors: -ENOENT, -EACCES, -ENOEXEC (not ELF, truncated, corrupt), -EINVAL
 * (32-bit or another architecture); @e says which in words.
 * @path comes from the user, or is the kernel's link to a file of a process (/proc/PID/exe,
 * map_files) and is opened with our own rights; below /proc/PID/root with those of the process. */
int elf_object_open(const char *path, struct elf_object **ret, struct error *e);
/* The same of a file that @by names, or (NULL) the program: opened with the rights of the program's
 * user. */
int elf_object_open_named(const struct elf_object *by, const char *path, struct elf_object **ret,
			  struct error *e);
/* The same with the rights @rights, which what it names is opened with as well. */
int elf_object_open_as(const struct file_rights *rights, const char *path, struct elf_object **ret,
		       struct error *e);
/* The same of the process @pid's executable, by the kernel's @link; @name is what errors call it.
 */
int elf_object_open_process(pid_t pid, const char *link, const char *name, struct elf_object **ret,
			    struct error *e);
/* The same for an image in memory, of which a copy is made: the vDSO has no file. @name is what
 * errors call it. */
int elf_object_open_image(const char *name, const void *image, size_t size, struct elf_object **ret,
			  struct error *e);
void elf_object_close(struct elf_object *o); /* NULL is allowed */
#define _cleanup_elf_object_ __attribute__((cleanup(elf_object_closep)))
static inline void elf_object_closep(struct elf_object **o)
{
	elf_object_close(*o);
}

/* Where to look for the debug file that has the symbols of a stripped one; @options must outlive
 * the object. */
void elf_object_set_options(struct elf_object *o, const struct debug_options *options);

/* It was opened through a link of the kernel's, but its file is called @path. That is what
 * functions without a name are called after. Before the first question about symbols. Without
 * memory it is as before. */
void elf_object_set_called(struct elf_object *o, const char *path);

const char *elf_object_path(const struct elf_object *o);
/* The last component of what its file is called. */
const char *elf_object_base_name(const struct elf_object *o);
int elf_object_fd(const struct elf_object *o); /* to read; still owned by the object */
/* What stat says of the file: negative errno. */
int elf_object_look_at(const struct elf_object *o, struct statx *ret);
/* The device of the mounted file system, where stat can show another one (btrfs, overlays). False:
 * it is not known. */
bool elf_object_mounted_on(const struct elf_object *o, dev_t *ret);
/* Its path as the kernel calls it, which the caller frees; NULL: it has none. */
char *elf_object_real_path(const struct elf_object *o);
/* Is what is read a copy, as of files on mounts that users make? */
bool elf_object_is_copy(const struct elf_object *o);
/* The path of its dynamic linker; the caller frees. NULL: it has none. */
char *elf_object_interpreter(const struct elf_object *o);
bool elf_object_is_dynamic(const struct elf_object *o); /* has PT_INTERP: LD_PRELOAD can work */
/* Functions in .symtab; without one, in .dynsym and in the separate debug file or in mini debug
 * information (.gnu_debugdata). */
bool elf_object_has_symbols(const struct elf_object *o);
/* Was a debug file looked into that only the container of its process has? Containers share the
 * files of their images, so the root of one must not choose where probes stand in all. */
bool elf_object_has_container_debug(const struct elf_object *o);
/* Opens the file of @o once more: no such file is looked into. */
int elf_object_open_strictly(const struct elf_object *o, struct elf_object **ret, struct error *e);
/* ... or, in a stripped file, functions that are known by their call frame information (.eh_frame)
 * alone. They are called after their place: "libz.so.1+0x2f40", the file and the address in its own
 * numbering, which is the same wherever that build runs. */
bool elf_object_has_functions(const struct elf_object *o);
/* One line on symbols that should be there and cannot be read (a debug file, mini debug
 * information), or NULL. Owned by the object. */
const char *elf_object_symbol_problem(const struct elf_object *o);
/* Lower-case hex of the GNU build id, or NULL. Owned by the object. */
const char *elf_object_build_id(const struct elf_object *o);
/* That of the open file @fd, which stays the caller's, as the caller's string (free): "" if it has
 * none, is no program, or cannot be read. NULL: out of memory. */
char *elf_file_build_id(int fd);

/* Address translation through PT_LOAD. -ERANGE when the value lies in no loaded segment. */
int elf_object_vaddr_to_offset(const struct elf_object *o, uint64_t vaddr, uint64_t *ret_offset);
int elf_object_offset_to_vaddr(const struct elf_object *o, uint64_t offset, uint64_t *ret_vaddr);
/* What to add to the file's addresses to get those in the process, for an executable mapping that
 * begins at @start with the file's
 * @offset (page-rounded, as /proc/PID/maps prints it). Modulo 2^64. -ERANGE when no executable
 * segment is mapped by it. */
int elf_object_mapping_bias(const struct elf_object *o, uint64_t start, uint64_t offset,
			    uint64_t *ret_bias);
/* Is @vaddr in an executable segment? */
bool elf_object_is_code(const struct elf_object *o, uint64_t vaddr);
/* The lowest address of code, rounded down to a page. */
uint64_t elf_object_code_base(const struct elf_object *o);
/* Copies up to @size bytes of the file's image at @vaddr; returns bytes copied or -ERANGE. */
int elf_object_read(const struct elf_object *o, uint64_t vaddr, void *buf, size_t size);

/* The function called @name: raw symbol first, then demangled with or without its argument list
 * ("ns::f(int)" or "ns::f"). Of a function that is left in parts and copies only, the most
 * complete. -ENOENT none, -EINVAL a data symbol of that name exists. */
int elf_object_find_function(const struct elf_object *o, const char *name, struct elf_symbol *ret);
/* Where the data symbol called @name is. -ENOENT: there is none. */
int elf_object_find_data(const struct elf_object *o, const char *name, uint64_t *ret);
/* Where the function called @name is entered, so that a probe on each counts every call once. That
 * is
 *  - the function itself, and its copies for certain arguments (.isra, .constprop): who calls a
 * copy does not pass the original;
 *  - with Rust, all instances of a generic function: they have one name;
 *  - not its parts (.part) and cold code (.cold): the function itself goes there. But where nothing
 * else of it is left, since the rest was inlined, each part is an entry: those are the calls that
 * can still be seen;
 *  - of several static functions of that name, the one that comes first, and copies from its own
 * source file;
 *  - a name written as it stands in the symbol table, with its suffix or mangled by Rust, is that
 * symbol alone. The first is what elf_object_find_function returns. *ret is the caller's (free).
 * Errors as there; -ENOENT also if all that is left is never entered. */
int elf_object_find_entries(const struct elf_object *o, const char *name, struct elf_symbol **ret,
			    size_t *ret_n);
/* All code of the function called @name: with its copies, parts and cold code, but not those of
 * another static function of that name. A name written as it stands in the symbol table with its
 * suffix is that symbol alone. In address order, *ret is the caller's (free). Errors as of
 * elf_object_find_function; -ENOENT also if only cold code is left. */
int elf_object_find_code(const struct elf_object *o, const char *name, struct elf_symbol **ret,
			 size_t *ret_n);
/* The function that contains @vaddr. -ENOENT when none does. */
int elf_object_function_at(const struct elf_object *o, uint64_t vaddr, struct elf_symbol *ret);
/* Calls @cb for each function in address order until it returns non-zero, and returns that. */
int elf_object_each_function(const struct elf_object *o,
			     int (*cb)(const struct elf_symbol *sym, void *arg), void *arg);
/* The same, with what elf_demangle makes of its function's name. @exported: those that other
 * objects or files can call, which are not local to one. */
int elf_object_each_readable(const struct elf_object *o, bool exported,
			     int (*cb)(const struct elf_symbol *sym, const char *readable,
				       void *arg),
			     void *arg);
/* Up to @max names (raw or demangled, whichever is nearer) close to @name by edit distance or
 * substring, best first; returns how many. The strings are the caller's (free each). For "did you
 * mean". */
size_t elf_object_similar_functions(const struct elf_object *o, const char *name, char **ret,
				    size_t max);

/* Readable C++ or Rust name (a Rust hash is left out), or a copy of @name if it is neither, as Go's
 * are ("main.(*T).Method"). The caller frees. NULL: out of memory. */
char *elf_demangle(const char *name);
