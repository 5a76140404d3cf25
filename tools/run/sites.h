/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where blocks were allocated: the stacks of allocation sites, each read and named once, because
 * many lines of a report have the same one.
 */
#ifndef RMM_TOOLS_RUN_SITES_H
#define RMM_TOOLS_RUN_SITES_H

#include "run/stacks.h"

typedef struct run_site {
    uint32_t number;
    run_stack_t stack;
} run_site_t;

typedef struct run_sites {
    run_site_t *sites;
    uint32_t count, capacity;
} run_sites_t;

/* Room for so many. False: no memory. run_sites_free() in any case. */
bool run_sites_init(run_sites_t *sites, uint32_t capacity);
void run_sites_free(run_sites_t *sites);

/* The stack of a block's `site`, without frames where it is not known; borrowed, until
 * run_sites_free(). NULL: no memory. */
const run_stack_t *run_sites_find(
    run_sites_t *sites, uint32_t number, const rmm_diag_file_t *file,
    run_symbols_t *symbols);

#endif /* RMM_TOOLS_RUN_SITES_H */
