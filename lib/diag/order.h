/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds uses of blocks that are not ordered against each other (clocks.h defines the order).
 *
 * Errors, if not ordered after earlier work on another stream:
 *  - any use of a block, after its allocation;
 *  - its free, after any use;
 *  - a copy or fill, after another one of the same bytes, if one of the two writes;
 *  - a kernel and a fill or copy that writes the whole block, in either order.
 * Two kernels are no error: whether they write, and where, is not known. Nor are a kernel and a
 * copy of a part: parts of one block are often used on streams of their own.
 *
 * A block remembers its last uses: as many as RMM_ORDER_USES on different streams. If there are
 * more, one that is ordered before the latest is forgotten first; an error may be missed then.
 *
 * Not locked: the engine's lock protects it. Memory: 208 bytes for each row, beside the clocks.
 */
#ifndef RMM_DIAG_ORDER_H
#define RMM_DIAG_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rmm/sys/diag.h>

#include "diag/clocks.h"

#define RMM_ORDER_USES 4u
#define RMM_ORDER_REPORTED 2u

typedef enum rmm_order_access {
    RMM_ORDER_NONE = 0,  /* there is no use */
    RMM_ORDER_KERNEL,    /* may read and write anything of the block, or nothing */
    RMM_ORDER_READ,      /* these bytes */
    RMM_ORDER_WRITE,     /* these bytes, all of them */
    RMM_ORDER_SOME_READ, /* bytes between these: rows with a pitch */
    RMM_ORDER_SOME_WRITE
} rmm_order_access_t;

typedef struct rmm_order_use {
    uint64_t time;       /* of its stream */
    uint64_t start, end; /* [start, end) of a copy or fill */
    uint32_t user;       /* who it was, for the caller */
    uint16_t place;      /* of its stream */
    uint8_t access;      /* rmm_order_access_t */
    uint8_t call;        /* rmm_diag_event_kind_t */
} rmm_order_use_t;

/* An error of a block: which stream does not wait for which, and for what that had done by then.
 * What the missing wait would order as well is the same error, and not reported again. */
typedef struct rmm_order_reported {
    uint64_t time; /* 0: none */
    uint16_t place, other;
} rmm_order_reported_t;

typedef struct rmm_order_block {
    uint64_t start, end; /* [start, end) */
    uint64_t allocated;  /* time; 0: anyone may use it */
    uint16_t place;      /* of the stream that it was allocated on */
    bool is_in_order;    /* it is used and freed in the order of streams */
    bool is_gpu_only;    /* the host cannot access it */
    uint8_t next;        /* use to be forgotten if none is to be preferred */
    rmm_order_reported_t reported[RMM_ORDER_REPORTED]; /* the last ones, a ring */
    uint8_t next_reported;
    rmm_order_use_t uses[RMM_ORDER_USES];
} rmm_order_block_t;

typedef struct rmm_order {
    rmm_clocks_t *clocks;
    rmm_order_block_t *blocks; /* of the live map's index */
} rmm_order_t;

/* An earlier operation that a later one is not ordered after. */
typedef struct rmm_order_conflict {
    uint64_t stream_id, other_stream_id;
    uint32_t other_user;
    uint32_t other_call; /* rmm_diag_event_kind_t; 0: the allocation */
} rmm_order_conflict_t;

/* False: no host memory; nothing is left to undo. */
bool rmm__order_init(rmm_order_t *order, uint32_t row_count);
void rmm__order_fini(rmm_order_t *order);

/* Handle an event that uses no block: records, waits, synchronisations, ends. */
void rmm__order_event(rmm_order_t *order, const rmm_diag_event_v1_t *event);

/* The operation that the event reports begins on its stream: `place` and `time` of *use_out. False:
 * it is captured, and never judged. */
bool rmm__order_begin(
    rmm_order_t *order, const rmm_diag_event_v1_t *event, rmm_order_use_t *use_out);

/* It uses this block. True: that is an error. */
bool rmm__order_use(
    rmm_order_t *order, uint32_t index, const rmm_order_use_t *use,
    rmm_order_conflict_t *conflict_out);

void rmm__order_allocated(
    rmm_order_t *order, uint32_t index, const rmm_diag_block_v1_t *block);
/* True: that is an error. */
bool rmm__order_freed(
    rmm_order_t *order, uint32_t index, const rmm_diag_block_v1_t *block,
    rmm_order_conflict_t *conflict_out);

#endif /* RMM_DIAG_ORDER_H */
