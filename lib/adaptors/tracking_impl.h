/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the two files of the tracking adaptor: tracking_adaptor.c keeps the table,
 * tracking_report.c copies and prints it.
 */
#ifndef RMM_ADAPTORS_TRACKING_IMPL_H
#define RMM_ADAPTORS_TRACKING_IMPL_H

#include <rmm/tracking_adaptor.h>

#include "adaptors/adaptor.h"
#include "adaptors/call_stack.h"
#include "core/pointer_map.h"
#include "publish/leak_rows.h"

typedef struct tracking {
    rmm_adaptor_t adaptor;    /* first member; its lock protects all below but this: */
    uint32_t max_frames;      /* 0: no stacks */
    rmm_pointer_map_t blocks; /* owner: see below */
    rmm_leak_rows_t rows;     /* what /rmm shows of them */
} tracking_t;

/*
 * What a block's `owner` is: its stack, in whose note its row stands; without a stack the
 * row alone, as an odd number, which no pointer is.
 */
static inline rmm_call_stack_t *
rmm__tracking_stack(const rmm_pointer_map_entry_t *block)
{
    return (uintptr_t)block->owner % 2 != 0 ? NULL : block->owner;
}

static inline uint32_t rmm__tracking_row(const rmm_pointer_map_entry_t *block)
{
    const rmm_call_stack_t *stack = rmm__tracking_stack(block);

    return stack != NULL ? stack->note : (uint32_t)((uintptr_t)block->owner / 2);
}

static inline void rmm__tracking_set_row(rmm_pointer_map_entry_t *block, uint32_t row)
{
    rmm_call_stack_t *stack = rmm__tracking_stack(block);

    if (stack != NULL) {
        stack->note = row;
    } else {
        block->owner = (void *)((uintptr_t)row * 2 + 1);
    }
}

/* NULL if mr is not NULL and no tracking adaptor. */
tracking_t *rmm__tracking_from(rmm_resource_t *mr);

/* At the end: an error for each block that is still out. */
void rmm__tracking_report_leaks(tracking_t *self);

#endif /* RMM_ADAPTORS_TRACKING_IMPL_H */
