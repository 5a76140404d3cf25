/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The writer's table of modules in "<segment>.leaks": the files that return addresses are
 * in, to print stacks with names after the process has ended.
 *
 * The first stack through a page of code looks the page up in the table. If the page is
 * unknown, the writer asks the loader. Cost: a load and a comparison a frame. If a library is
 * loaded at the address of an unloaded one, its frames get the name of the unloaded one.
 *
 * Threads: any. No thread waits: if another thread writes the table, a later stack adds the
 * module.
 */
#ifndef RMM_PUBLISH_LEAK_MODULES_H
#define RMM_PUBLISH_LEAK_MODULES_H

#include <stddef.h>

#include "segment/segment_leaks.h"

#define RMM_LEAK_MODULES 1024u

/* Where the table is; once, before any other call. */
void rmm__leak_modules_open(rmm_leaks_header_t *header, rmm_leaks_module_t *table);

/* Add the modules of these return addresses. Does nothing without a table. May ask the loader:
 * call it without a lock. */
void rmm__leak_modules_learn(void *const *frames, size_t count);

/* How many frames at the front are the library's own; 0 if that is unknown. */
size_t rmm__leak_modules_own(void *const *frames, size_t count);

#endif /* RMM_PUBLISH_LEAK_MODULES_H */
