/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which call used which block: rows of the side file, and the names of the users.
 *
 * A launch uses a block if any word of its parameters points into it; a copy, fill or prefetch
 * that succeeded uses the blocks that its ranges begin in. Each event counts a block once.
 *
 * A user is a kernel, or a function of the driver that copies, fills or prefetches. Kernels and
 * functions have a table each; one number names an entry of either (RMM_DIAG_FUNCTION).
 *
 * Not locked: the engine's lock protects it.
 */
#ifndef RMM_DIAG_USES_H
#define RMM_DIAG_USES_H

#include <stdbool.h>
#include <stdint.h>

#include <rmm/sys/diag.h>

#include "diag/diag_format.h"
#include "diag/freed.h"
#include "diag/kernel_table.h"
#include "diag/live_map.h"

#define RMM_DIAG_FUNCTIONS_COUNT 128u /* the driver has fewer that do one of these */

#define RMM_USES_LISTED 64u
#define RMM_USES_STRAYS 16u

typedef struct rmm_uses {
    rmm_live_map_t *map; /* borrowed, as the next */
    const rmm_freed_t *freed;
    rmm_kernel_table_t kernels;
    uint64_t *seen;                    /* per row: the last event that counted it */
    uint32_t used[RMM_USES_LISTED];    /* the blocks that the last event used */
    uint64_t used_at[RMM_USES_LISTED]; /* and the addresses that it was given */
    uint32_t used_count;
    /* Words of the last event that are in no live block, and may be in a freed one. */
    uint64_t strays[RMM_USES_STRAYS];
    uint32_t stray_count;
    uint64_t events;  /* that counted */
    uint64_t last_ns; /* the last rmm__uses_now() */
    /* in the side file; borrowed */
    rmm_diag_header_t *header;
    rmm_diag_kernel_t *kernel_entries;
    rmm_diag_function_t *functions;
    rmm_diag_row_t *rows;
} rmm_uses_t;

/* The borrowed members are set, map and header included. False: no host memory; nothing is left
 * to undo. */
bool rmm__uses_init(
    rmm_uses_t *uses, uint32_t row_count, uint32_t kernel_count,
    rmm_demangle_fn demangle);
void rmm__uses_fini(rmm_uses_t *uses);

/* CLOCK_MONOTONIC; grows from call to call, so that of two blocks one is older. */
uint64_t rmm__uses_now(rmm_uses_t *uses);

/* Row `index` is of this block from now on; of none. */
void rmm__uses_open(rmm_uses_t *uses, uint32_t index, const rmm_diag_block_v1_t *block);
void rmm__uses_close(rmm_uses_t *uses, uint32_t index);

/* The live block of this row, as it was opened; without what order it is in. */
rmm_diag_block_v1_t rmm__uses_block(const rmm_uses_t *uses, uint32_t index);

/* Returns the user. */
uint32_t rmm__uses_launch(rmm_uses_t *uses, const rmm_diag_event_v1_t *event);

/* Strays alone, and the user: the launch is not counted. */
void rmm__uses_look(rmm_uses_t *uses, const rmm_diag_event_v1_t *event);
uint32_t rmm__uses_kernel(rmm_uses_t *uses, const rmm_diag_event_v1_t *event);

/* A launch, copy or fill is captured: `used` and strays, and the user. It is not counted. */
uint32_t rmm__uses_note(rmm_uses_t *uses, const rmm_diag_event_v1_t *event);

/* It runs, on these blocks. */
void rmm__uses_replay(
    rmm_uses_t *uses, uint32_t kind, uint32_t user, const uint32_t *rows,
    uint32_t count);

/* A copy, fill or prefetch that succeeded; the same. */
uint32_t rmm__uses_range(rmm_uses_t *uses, const rmm_diag_event_v1_t *event);

#endif /* RMM_DIAG_USES_H */
