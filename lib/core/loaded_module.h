/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The module of this process that contains an address, as the loader knows it: return
 * addresses are shown relative to it.
 *
 * Threads: any.
 */
#ifndef RMM_CORE_LOADED_MODULE_H
#define RMM_CORE_LOADED_MODULE_H

#include <link.h>
#include <stddef.h>
#include <stdint.h>

/* All that it has in memory, [begin, end); nothing if begin is not below end. */
void rmm__module_span(
    const struct dl_phdr_info *info, uintptr_t *begin_out, uintptr_t *end_out);

/* Its build id, cut to `room` bytes; returns how many there are, 0: it has none. */
size_t
rmm__module_build_id(const struct dl_phdr_info *info, unsigned char *id, size_t room);

/* The path of the program, which the loader does not name; "" if it is unknown. */
void rmm__program_path(char *path, size_t bytes);

/* What any visible module of the process calls so; NULL: there is none. */
void *rmm__loaded_symbol(const char *name);

#endif /* RMM_CORE_LOADED_MODULE_H */
