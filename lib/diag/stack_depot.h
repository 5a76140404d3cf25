/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks of allocations and frees, each kept once: a program makes many calls from few places. A
 * number stands for a stack; 0 for none, also if there is no room for another one.
 *
 * Not locked: the engine's lock protects it. Memory: about 0.9 MB, touched where stacks are.
 */
#ifndef RMM_DIAG_STACK_DEPOT_H
#define RMM_DIAG_STACK_DEPOT_H

#include <stdbool.h>
#include <stdint.h>

#include "diag/stacks.h"

#define RMM_STACK_DEPOT_COUNT 4096u

typedef struct rmm_stack_depot {
    rmm_stack_raw_t *stacks; /* number 1 is the first */
    uint32_t *slots;         /* twice as many: numbers, by hash; 0: free */
    uint32_t count;
    uint64_t serial; /* no other depot of the process has it */
} rmm_stack_depot_t;

/* False: no host memory; nothing is left to undo. */
bool rmm__stack_depot_init(rmm_stack_depot_t *depot);
void rmm__stack_depot_fini(rmm_stack_depot_t *depot);

/* Writes the number into the stack, too: then the next time is short. */
uint32_t rmm__stack_depot_put(rmm_stack_depot_t *depot, rmm_stack_raw_t *stack);

/* False: there is none of that number. */
bool rmm__stack_depot_get(
    const rmm_stack_depot_t *depot, uint32_t number, rmm_stack_raw_t *out);

#endif /* RMM_DIAG_STACK_DEPOT_H */
