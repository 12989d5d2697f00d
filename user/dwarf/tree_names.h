/* SPDX-License-Identifier: BSD-2-Clause */
/* libdwarf renamed the interface through which it reads an object after its 2021 release, which Debian 12 has. Code uses the
 * names of release 0.11, which Debian 13 has; here the older release gets them. Releases before the renaming do not tell
 * their version. */
#pragma once

#include <libdwarf/dwarf.h>
#include <libdwarf/libdwarf.h>

#ifdef DW_LIBDWARF_VERSION_MAJOR
typedef Dwarf_Unsigned dwarf_section_index;
typedef Dwarf_Small dwarf_byte_order;
#define DWARF_ASKS_FILE_SIZE
#else
typedef Dwarf_Half dwarf_section_index;
typedef Dwarf_Endianness dwarf_byte_order;
typedef Dwarf_Obj_Access_Interface Dwarf_Obj_Access_Interface_a;
typedef Dwarf_Obj_Access_Methods Dwarf_Obj_Access_Methods_a;
typedef Dwarf_Obj_Access_Section Dwarf_Obj_Access_Section_a;
#undef DW_END_little
#define DW_END_little DW_OBJECT_LSB
#define ai_object object
#define ai_methods methods
#define as_name name
#define as_type type
#define as_size size
#define om_get_section_info get_section_info
#define om_get_byte_order get_byte_order
#define om_get_length_size get_length_size
#define om_get_pointer_size get_pointer_size
#define om_get_section_count get_section_count
#define om_load_section load_section
#define dwarf_object_finish(dwarf) dwarf_object_finish(dwarf, &(Dwarf_Error){NULL})
#endif
