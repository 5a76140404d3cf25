/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a finding was made first: the stack of the thread that made the call, as offsets in
 * modules, and these modules. Stack i belongs to finding i.
 *
 * Captured once for each entry of the findings, by the thread that made it, and without the
 * engine's lock: the unwinder and the loader have locks of their own. What they load themselves is
 * loaded by rmm__stacks_init().
 *
 * Threads: any.
 */
#ifndef RMM_DIAG_STACKS_H
#define RMM_DIAG_STACKS_H

#include "core/mutex.h"
#include "diag/diag_format.h"

#define RMM_DIAG_MODULES_COUNT 128u

typedef struct rmm_stacks {
    rmm_diag_header_t *header; /* all three in the side file; borrowed */
    rmm_diag_stack_t *entries;
    rmm_diag_module_t *modules;
    rmm_mutex_t lock; /* protects writes to them */
} rmm_stacks_t;

void rmm__stacks_init(rmm_stacks_t *stacks, rmm_diag_header_t *header);
void rmm__stacks_fini(rmm_stacks_t *stacks);

/* The caller's stack is that of the findings [first, end). No lock is held. */
void rmm__stacks_capture(rmm_stacks_t *stacks, uint32_t first, uint32_t end);

#endif /* RMM_DIAG_STACKS_H */
