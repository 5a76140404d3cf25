/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The writer's table of modules in "<segment>.leaks": the files that return addresses are
 * in, so that a stack can be given names when the process is gone.
 *
 * A page of code is looked up when the first stack goes through it, and the loader is
 * asked when nothing known is there. Cost: a load and a comparison a frame. A library
 * whose place was taken by another, unloaded, one is named as that one.
 *
 * Threads: any; nobody waits: who finds another at the table leaves it to a later stack.
 */
#ifndef RMM_PUBLISH_LEAK_MODULES_H
#define RMM_PUBLISH_LEAK_MODULES_H

#include <stddef.h>

#include "segment/segment_leaks.h"

#define RMM_LEAK_MODULES 1024u

/* Where the table is; once, before any other call. */
void rmm__leak_modules_open(rmm_leaks_header_t *header, rmm_leaks_module_t *table);

/* Tell of the modules of these return addresses. Without a table: nothing. Asks the loader
 * at times: to be called without a lock. */
void rmm__leak_modules_learn(void *const *frames, size_t count);

/* How many frames at the front are the library's own; 0 if it cannot be told. */
size_t rmm__leak_modules_own(void *const *frames, size_t count);

#endif /* RMM_PUBLISH_LEAK_MODULES_H */
