// SPDX-License-Identifier: BSD-2-Clause
#include "program/elf/debug_find.h"
#include "program/dwarf/split.h"
#include "program/dwarf/lines_private.h"
#include "program/dwarf/tree.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/search.h"
#include "program/elf/demangle.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* Deeper trees than any compiler writes are cut: their inner parts count as the function around
 * them. */
#define MAX_DEPTH 512
#define MAX_NAME 4096 /* of a function that is searched for */

struct walk {
	struct line_table *t;
	Dwarf_Debug dwarf;
	struct line_instances *out;
	struct debug_range_source source;
	uint64_t ranges_left;
	size_t instance;		  /* the one whose ranges are being added */
	const struct file_numbers *files; /* of the unit that is walked */
	bool (*wanted)(uint64_t lo, uint64_t hi, void *arg);
	void *arg;
	struct line_search *search; /* NULL: none */
	/* Of the unit that is walked, for the search: it, and where its names are. */
	const struct line_tree *tree;
	struct debug_file *file;
	const struct debug_unit *unit;
	struct debug_root root;
};

static int add_instance_range(uint64_t lo, uint64_t hi, void *arg)
{
	struct walk *w = arg;
	struct line_instances *o = w->out;

	if (!lo || hi <= lo || !elf_object_is_code(w->t->object, lo))
		return 0;
	return array_add(o->ranges, o->n_ranges, (struct instance_range){lo, hi, w->instance});
}

/* Compilers list a function's ranges hot part first; an inlined copy may say where it is entered.
 */
static void find_entry(struct walk *w, Dwarf_Die die, size_t first)
{
	struct line_instances *o = w->out;
	struct line_instance *i = &o->all[w->instance];
	const struct instance_range *r = &o->ranges[first];
	struct debug_value v;
	uint64_t entry;

	i->entry = (struct addr_range){r->lo, r->hi};
	i->entered = r->lo;
	if (o->n_ranges - first == 1 && !w->search)
		return;
	v = line_tree_value(w->dwarf, die, DW_AT_entry_pc);
	if (!v.form)
		return;
	/* A constant counts from the entry's own low address, or from its unit's. */
	if (!debug_address(&w->source, v, &entry)) {
		if (!debug_address(&w->source, line_tree_value(w->dwarf, die, DW_AT_low_pc),
				   &entry))
			entry = w->source.low;
		entry += v.v;
	}
	for (size_t k = first; k < o->n_ranges; k++)
		if (entry >= o->ranges[k].lo && entry < o->ranges[k].hi) {
			i->entry = (struct addr_range){o->ranges[k].lo, o->ranges[k].hi};
			i->entered = entry;
		}
}

static void find_call(struct walk *w, Dwarf_Die die)
{
	struct line_instance *i = &w->out->all[w->instance];
	struct debug_value file = line_tree_value(w->dwarf, die, DW_AT_call_file),
			   line = line_tree_value(w->dwarf, die, DW_AT_call_line);

	if (!file.form || !line.form || file.v >= w->files->n || !line.v || line.v > UINT32_MAX)
		return;
	i->call_file = w->files->ids[file.v];
	i->call_line = (uint32_t)line.v;
}

static uint64_t offset_of(Dwarf_Debug d, Dwarf_Die die)
{
	Dwarf_Error e = NULL;
	Dwarf_Off at;

	if (dwarf_dieoffset(die, &at, &e) == DW_DLV_OK)
		return at;
	dwarf_forget(d, &e);
	return 0;
}

/* Can there be code below an entry that has none itself? Methods of local classes are in their
 * class. */
static bool holds_code(Dwarf_Half tag)
{
	switch (tag) {
	case DW_TAG_subprogram:
	case DW_TAG_lexical_block:
	case DW_TAG_try_block:
	case DW_TAG_catch_block:
	case DW_TAG_namespace:
	case DW_TAG_module:
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
		return true;
	default:
		return false;
	}
}

static bool any_wanted(const struct walk *w, size_t first)
{
	if (!w->wanted)
		return true;
	for (size_t i = first; i < w->out->n_ranges; i++)
		if (w->wanted(w->out->ranges[i].lo, w->out->ranges[i].hi, w->arg))
			return true;
	return false;
}

static bool read_name(const struct walk *w, Dwarf_Die die, Dwarf_Half attribute, char *buf,
		      size_t size)
{
	return debug_value_string(w->file, w->unit, &w->root,
				  line_tree_raw(w->tree, die, attribute, w->unit), buf, size);
}

/* Where in .debug_info the entry is that an attribute refers to; 0: nowhere. */
static uint64_t read_reference(const struct walk *w, Dwarf_Die die, Dwarf_Half attribute)
{
	struct debug_value v = line_tree_raw(w->tree, die, attribute, w->unit);

	switch (v.form) {
	case DW_FORM_ref1:
	case DW_FORM_ref2:
	case DW_FORM_ref4:
	case DW_FORM_ref8:
	case DW_FORM_ref_udata:
		return w->unit->at + v.v;
	case DW_FORM_ref_addr: /* of another unit, as link-time optimisation has it */
		return v.v;
	default:
		return 0;
	}
}

/* Is it the name that is searched for, as symbols have it or as people write it? */
static bool is_called(const struct walk *w, Dwarf_Die die)
{
	const char *wanted = w->search->name;
	char name[MAX_NAME];
	bool same = false;

	if (!read_name(w, die, DW_AT_name, name, sizeof(name)) || !strstr(wanted, name))
		return false;
	if (!read_name(w, die, DW_AT_linkage_name, name, sizeof(name)))
		return strcmp(wanted, name) == 0;
	same = strcmp(wanted, name) == 0;
	for (int arguments = 0; !same && arguments < 2; arguments++) {
		_cleanup_free_ char *readable = demangle_here(name, arguments, false);

		same = readable && strcmp(readable, wanted) == 0;
	}
	return same;
}

/* A function whose entry others refer to as theirs. Its names may be in the entry of its
 * declaration, as those of methods are. */
static int search_function(struct walk *w, Dwarf_Die die)
{
	struct line_search *s = w->search;
	uint64_t declared = read_reference(w, die, DW_AT_specification), at = w->unit->at;
	Dwarf_Die other = declared > at ? line_tree_die(w->tree, declared - at) : NULL,
		  named = other ?: die;
	struct debug_value file, line;
	int r = 0;

	if (is_called(w, named)) {
		file = line_tree_value(w->dwarf, named, DW_AT_decl_file);
		line = line_tree_value(w->dwarf, named, DW_AT_decl_line);
		if (file.v < w->files->n)
			file.v = w->files->ids[file.v];
		if (s->line && (s->file != file.v || s->line != line.v))
			s->several = true;
		s->file = (uint32_t)file.v;
		s->line = (uint32_t)line.v;
		r = array_add(s->found, s->n, at + offset_of(w->dwarf, die));
	}
	if (other)
		dwarf_dealloc_die(other);
	return r;
}

/* Sets *ret to the instance that @die's children are in, and *ret_deeper if they are to be looked
 * at. */
static int visit(struct walk *w, Dwarf_Die die, size_t parent, size_t *ret, bool *ret_deeper)
{
	struct line_instances *o = w->out;
	size_t before = o->n_ranges;
	Dwarf_Error e = NULL;
	Dwarf_Half tag;
	int r;

	*ret = parent;
	*ret_deeper = false;
	if (dwarf_tag(die, &tag, &e) != DW_DLV_OK) {
		dwarf_forget(w->dwarf, &e);
		return 0;
	}
	*ret_deeper = holds_code(tag);
	if (tag != DW_TAG_subprogram && tag != DW_TAG_inlined_subroutine)
		return 0;
	if (w->search && !w->search->over && tag == DW_TAG_subprogram &&
	    line_tree_value(w->dwarf, die, DW_AT_inline).form) {
		r = search_function(w, die);
		if (r < 0)
			return r;
	}
	if (array_room(o->all, o->n) < 0)
		return -ENOMEM;
	w->instance = o->n;
	r = debug_ranges(&w->source, line_tree_value(w->dwarf, die, DW_AT_low_pc),
			 line_tree_value(w->dwarf, die, DW_AT_high_pc),
			 line_tree_value(w->dwarf, die, DW_AT_ranges), add_instance_range, w);
	if (r < 0 ||
	    o->n_ranges == before) /* a declaration, or the abstract function behind the copies */
		return r;
	*ret_deeper = any_wanted(w, before);
	if (!*ret_deeper) {
		o->n_ranges = before;
		return 0;
	}
	o->all[o->n++] = (struct line_instance){.parent = parent,
						.inlined = tag == DW_TAG_inlined_subroutine,
						.call_file = NO_FILE};
	find_entry(w, die, before);
	if (tag == DW_TAG_inlined_subroutine)
		find_call(w, die);
	if (tag == DW_TAG_inlined_subroutine && w->search)
		o->all[w->instance].origin = read_reference(w, die, DW_AT_abstract_origin);
	*ret = w->instance;
	return 0;
}

static Dwarf_Die next_die(Dwarf_Debug d, Dwarf_Die die, bool child)
{
	Dwarf_Error e = NULL;
	Dwarf_Die next;
	int r = child ? dwarf_child(die, &next, &e) : dwarf_siblingof_b(d, die, true, &next, &e);

	if (r != DW_DLV_OK) {
		dwarf_forget(d, &e);
		return NULL;
	}
	/* A sibling attribute may point anywhere: only forward is an end in sight. */
	if (offset_of(d, next) <= offset_of(d, die)) {
		dwarf_dealloc_die(next);
		return NULL;
	}
	return next;
}

static int walk_unit(struct walk *w, Dwarf_Die unit)
{
	struct level {
		Dwarf_Die die;
		size_t instance;
	} stack[MAX_DEPTH];
	Dwarf_Debug d = w->dwarf;
	size_t depth = 0, inner;
	uint64_t last = offset_of(d, unit);
	Dwarf_Die die = next_die(d, unit, true), child;
	bool deeper;
	int r = 0;

	while (die || depth) {
		if (!die) { /* the children are done: on to what follows their parent */
			depth--;
			die = next_die(d, stack[depth].die, false);
			dwarf_dealloc_die(stack[depth].die);
			/* Also across levels, or a sibling attribute could lead into the children
			 * again and again. */
			if (die && offset_of(d, die) <= last) {
				dwarf_dealloc_die(die);
				die = NULL;
			}
			continue;
		}
		last = offset_of(d, die);
		r = visit(w, die, depth ? stack[depth - 1].instance : SIZE_MAX, &inner, &deeper);
		if (r < 0)
			break;
		child = deeper && depth < MAX_DEPTH ? next_die(d, die, true) : NULL;
		if (child) {
			stack[depth++] = (struct level){die, inner};
			die = child;
		} else {
			child = next_die(d, die, false);
			dwarf_dealloc_die(die);
			die = child;
		}
	}
	if (die)
		dwarf_dealloc_die(die);
	while (depth)
		dwarf_dealloc_die(stack[--depth].die);
	return r;
}

static int outer_first(const void *pa, const void *pb)
{
	const struct instance_range *a = pa, *b = pb;

	/* Parents are numbered before their children. */
	return sort_order(a->lo, b->lo) ?: sort_order(a->instance, b->instance);
}

/* The split unit of a skeleton: from the package, else from its own file. */
static bool find_split(struct line_table *t, const struct debug_unit *u,
		       const struct debug_root *root, struct debug_split *ret)
{
	char comp_dir[PATH_MAX], name[PATH_MAX];
	uint64_t id = debug_skeleton_id(u, root);
	struct error why = {0};
	struct debug_file *dwo;
	bool has_dir;

	if (!t->package_tried) {
		t->package = debug_find_package(t->object, t->debug, &t->options, &why);
		if (!t->package && why.text[0])
			line_table_warn(t, "%s", why.text);
	}
	t->package_tried = true;
	if (t->package && debug_split_packaged(t->package, id, ret))
		return true;
	if (!debug_value_string(t->debug, u, root, root->values[ROOT_DWO_NAME], name, sizeof(name)))
		return false;
	has_dir = debug_value_string(t->debug, u, root, root->values[ROOT_COMP_DIR], comp_dir,
				     sizeof(comp_dir));
	dwo = debug_find_split(t->object, &t->options, has_dir ? comp_dir : NULL, name, &why);
	if (dwo && debug_split_single(dwo, id, ret))
		return true;
	if (dwo)
		line_table_warn(
			t, "%s: of another build; inlined copies are told apart by function only",
			dwo->path);
	else if (why.text[0])
		line_table_warn(t, "%s; inlined copies are told apart by function only", why.text);
	else
		line_table_warn(t,
				"%s: split debug information is missing (give its directory with "
				"--debug-dir); inlined copies are "
				"told apart by function only",
				name);
	debug_file_close(dwo);
	return false;
}

/* Up to what the unit's share has of lists: behind their header, a table of offsets. */
static void use_split(struct walk *w, const struct debug_split *s,
		      const struct debug_root *skeleton)
{
	const struct debug_part *part = &s->parts[DW_SECT_RNGLISTS];
	size_t n;
	const unsigned char *lists = debug_section_bytes(&s->file->sections[DEBUG_RNGLISTS], &n);

	w->source.old_base = skeleton->values[ROOT_OLD_RANGES_BASE].v;
	w->source.word = s->unit.word;
	w->source.lists = NULL;
	w->source.n_lists = 0;
	w->source.lists_base = s->unit.word == 8 ? 20 : 12;
	if (lists && part->at < n && part->size <= n - part->at) {
		w->source.lists = lists + part->at;
		w->source.n_lists = part->size;
	}
}

/* What its own root would say of its texts. */
static struct debug_root split_root(const struct debug_split *s)
{
	struct debug_root root = {0};

	root.values[ROOT_STRINGS_BASE] = (struct debug_value){
		.form = DW_FORM_sec_offset,
		.v = s->parts[DW_SECT_STR_OFFSETS].at +
		     (s->unit.version >= 5 ? 2 * s->unit.word : 0),
	};
	return root;
}

/* A split unit has file numbers of its own. Without such a table it means those of its skeleton. */
static void use_split_files(struct walk *w, const struct line_unit *u, const struct line_tree *tree,
			    const struct debug_split *s, struct file_numbers *room)
{
	struct debug_value program = line_tree_value(tree->dwarf, tree->root, DW_AT_stmt_list);

	if (program.form && program.v < s->parts[DW_SECT_LINE].size &&
	    line_files_read(w->t, u, s->file, s->parts[DW_SECT_LINE].at + program.v, room))
		w->files = room;
}

/* Of the instances of the tree, from @first on, keeps the copies of what was found so far. */
static void keep_found(struct walk *w, size_t first)
{
	struct line_instances *o = w->out;
	size_t kept = 0;

	sort_array(w->search->found, w->search->n, compare_u64);
	for (size_t i = 0; i < o->n_ranges; i++) {
		const struct line_instance *x = &o->all[o->ranges[i].instance];
		size_t at = search_front(w->search->n, k, w->search->found[k] < x->origin);

		if (o->ranges[i].instance < first ||
		    (x->inlined && x->origin && at < w->search->n &&
		     w->search->found[at] == x->origin))
			o->ranges[kept++] = o->ranges[i];
	}
	o->n_ranges = kept;
}

/* Adds what the unit at @at has. Damaged ones add nothing. */
static int read_unit(struct walk *w, const struct line_unit *of, uint64_t at)
{
	struct line_table *t = w->t;
	struct file_numbers files = {0};
	_cleanup_(debug_split_close) struct debug_split split = {0};
	const struct debug_part *part = split.parts;
	struct debug_root root;
	struct debug_unit u;
	struct line_tree tree;
	size_t first = w->out->n;
	bool open;
	int r = 0;

	if (!debug_unit_read(t->debug, at, &u) || !debug_root_read(&t->roots, &u, &root))
		return 0;
	debug_range_source_init(&w->source, t->debug, &u, &root, &w->ranges_left);
	w->files = &of->numbers;
	if (debug_skeleton_id(&u, &root)) {
		if (!find_split(t, &u, &root, &split))
			return 0;
		use_split(w, &split, &root);
		if (!w->wanted && split.unit.end > LINE_MAX_TREE)
			return 0;
		open = line_tree_open(&tree, split.file, part[DW_SECT_INFO].at, split.unit.end,
				      part[DW_SECT_ABBREV].at, part[DW_SECT_ABBREV].size);
	} else {
		open = line_tree_open(&tree, t->debug, u.at, u.end - u.at, 0,
				      t->debug->sections[DEBUG_ABBREV].size);
	}
	if (open) {
		w->dwarf = tree.dwarf;
		w->tree = &tree;
		w->file = split.file ? split.file : t->debug;
		w->unit = split.file ? &split.unit : &u;
		w->root = split.file ? split_root(&split) : root;
		if (split.file)
			use_split_files(w, of, &tree, &split, &files);
		r = walk_unit(w, tree.root);
		line_tree_close(&tree);
		if (r == 0 && w->search)
			keep_found(w, first);
		/* Split units number their entries each by itself. */
		if (w->search && split.file)
			w->search->n = 0;
	} else {
		line_table_warn(t,
				"%s: damaged debug information (unit at 0x%llx); inlined copies "
				"are told apart by function only",
				split.file ? split.file->path : t->debug->path,
				(unsigned long long)at);
	}
	free(files.ids);
	return r;
}

uint64_t line_unit_size(struct line_table *t, const struct line_unit *u)
{
	struct debug_unit header;
	uint64_t size = 0;

	for (size_t i = 0; !t->go && i < u->n_dies; i++)
		if (debug_unit_read(t->debug, u->dies[i], &header))
			size += header.end - header.at;
	return size;
}

int line_instances_read(struct line_table *t, const struct line_unit *u,
			bool (*wanted)(uint64_t lo, uint64_t hi, void *arg), void *arg,
			struct line_search *search, struct line_instances *ret)
{
	struct walk w = {.t = t,
			 .out = ret,
			 .ranges_left = debug_range_budget(t->debug) * 2,
			 .wanted = wanted,
			 .arg = arg,
			 .search = search};
	int r = 0;

	*ret = (struct line_instances){0};
	if (t->go)
		r = line_go_instances(t, u, wanted, arg, ret);
	for (size_t i = 0; r == 0 && !t->go && i < u->n_dies; i++)
		r = read_unit(&w, u, u->dies[i]);
	sort_array(ret->ranges, ret->n_ranges, outer_first);
	if (r < 0)
		line_instances_free(ret);
	return r;
}

void line_instances_free(struct line_instances *i)
{
	free(i->all);
	free(i->ranges);
	*i = (struct line_instances){0};
}
