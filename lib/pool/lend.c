/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lending (lend.h). No stream is ever alone in the lender or a borrower (streams.c): both are
 * shared engines. Lent units are a live block of the lender, tagged TAG_LENT, and a run of the
 * borrower. When a part of them comes back, the block is split.
 */
#include "pool/lend.h"

#include "pool/figures.h"

#define PARTS_AT_ONCE 64
#define LEND_BORROWERS 8 /* about as many have much memory at once */

/* --- lending ------------------------------------------------------------------------- */

/* Where in the borrower the lent units go. */
typedef struct loan {
    rmm_block_t block;
    rmm_heap_t heap;
    uint64_t stamp;
    engine_stream_t *stream; /* NULL: it is clean */
} loan_t;

/* The clean heap first, so that most of what is lent is clean. */
static rmm_blocks_result_t take_loan_locked(
    engine_t *lender, engine_t *borrower, const engine_want_t *want, uint32_t units,
    loan_t *loan)
{
    const rmm_blocks_request_t request = {units, LEND_GRANULE_UNITS, true};
    rmm_blocks_result_t result = rmm__blocks_take(
        lender->blocks, lender->clean, lender->clean, &request, &loan->block);
    const engine_stream_t *own;
    bool is_new;

    *loan = (loan_t){
        .block = loan->block,
        .heap = borrower->clean,
        .stamp = rmm__engine_clean_stamp_locked(borrower)};
    if (result != RMM_BLOCKS_NO_FIT || rmm__engine_captures(want)) {
        return result;
    }
    own = rmm__engine_stream_find_locked(lender, want->key.stream_id);
    if (own == NULL) {
        return result;
    }
    loan->stream =
        rmm__engine_stream_get_locked(borrower, want->key.stream_id, &is_new);
    if (loan->stream == NULL) {
        return RMM_BLOCKS_NO_STORAGE;
    }
    loan->heap = loan->stream->heap;
    loan->stamp = borrower->streams.stamp;
    result =
        rmm__blocks_take(lender->blocks, own->heap, own->heap, &request, &loan->block);
    if (result == RMM_BLOCKS_OK) {
        loan->stream->is_doubtful |= own->is_doubtful && !loan->stream->is_native;
    }
    return result;
}

/* It was not used: return it to the heap that it came from. */
static void
undo_loan_locked(engine_t *lender, const engine_want_t *want, const loan_t *loan)
{
    const engine_stream_t *own =
        loan->stream != NULL
            ? rmm__engine_stream_find_locked(lender, want->key.stream_id)
            : NULL;

    rmm__blocks_free(
        lender->blocks, loan->block, own != NULL ? own->heap : lender->clean,
        own != NULL ? lender->streams.stamp : 0);
}

static rmm_blocks_result_t lend_locked(
    engine_t *lender, engine_t *borrower, const engine_want_t *want, uint32_t units,
    const engine_loan_ops_t *ops)
{
    loan_t loan = {0};
    rmm_blocks_result_t result = take_loan_locked(lender, borrower, want, units, &loan);
    uint64_t unit;

    if (result != RMM_BLOCKS_OK) {
        return result;
    }
    unit = rmm__blocks_look_at(lender->blocks, loan.block)->unit;
    result = rmm__blocks_add(borrower->blocks, loan.heap, unit, units, loan.stamp);
    if (result != RMM_BLOCKS_OK) {
        undo_loan_locked(lender, want, &loan);
    } else {
        rmm__blocks_look_at(lender->blocks, loan.block)->tag = TAG_LENT;
        ops->moved(ops->context, unit, units, true);
        /* bounds what no event covers (open_frees.c); there are several borrowers */
        borrower->figures.reserved_bytes =
            lender->figures.reserved_bytes / LEND_BORROWERS;
        if (loan.stream != NULL && units > borrower->stream_largest) {
            borrower->stream_largest = units;
        }
    }
    rmm__engine_show_locked(lender);
    rmm__engine_show_locked(borrower);
    return result;
}

rmm_blocks_result_t rmm__engine_lend(
    engine_t *lender, engine_t *borrower, const engine_want_t *want, uint32_t units,
    const engine_loan_ops_t *ops)
{
    rmm_blocks_result_t result;

    rmm__mutex_lock(&borrower->lock);
    rmm__mutex_lock(&lender->lock);
    result = lend_locked(lender, borrower, want, units, ops);
    rmm__mutex_unlock(&lender->lock);
    rmm__mutex_unlock(&borrower->lock);
    return result;
}

/* --- giving back --------------------------------------------------------------------- */

/* Whole granules of clean blocks. */
typedef struct parts {
    uint32_t count;
    struct {
        uint64_t unit;
        uint32_t units;
    } part[PARTS_AT_ONCE];
} parts_t;

static bool collect(void *context, uint64_t unit, uint32_t units)
{
    parts_t *parts = context;
    uint32_t pad = rmm__index_pad(unit, LEND_GRANULE_UNITS);
    uint32_t whole =
        units > pad ? (units - pad) / LEND_GRANULE_UNITS * LEND_GRANULE_UNITS : 0;

    if (whole != 0) {
        parts->part[parts->count].unit = unit + pad;
        parts->part[parts->count].units = whole;
        parts->count++;
    }
    return parts->count < PARTS_AT_ONCE;
}

/* The lender's block that has this granule; it begins at a granule, not far below. */
static rmm_block_t find_lent(const engine_t *lender, uint64_t unit)
{
    rmm_block_t block = rmm__blocks_find(lender->blocks, unit);

    while (block == RMM_BLOCK_NONE) {
        unit -= LEND_GRANULE_UNITS;
        block = rmm__blocks_find(lender->blocks, unit);
    }
    RMM_ASSERT(rmm__blocks_look_at(lender->blocks, block)->tag == TAG_LENT);
    return block;
}

/* At most to the end of one lent block: a clean block of the borrower may span several. */
static uint32_t
give_back_locked(engine_t *lender, engine_t *borrower, uint64_t unit, uint32_t units)
{
    rmm_block_t block = find_lent(lender, unit);
    const rmm_block_node_t *node = rmm__blocks_look_at(lender->blocks, block);
    uint64_t end = node->unit + node->units;

    units = unit + units > end ? (uint32_t)(end - unit) : units;
    if (!rmm__blocks_reserve(borrower->blocks) ||
        !rmm__blocks_free_part(lender->blocks, block, unit, units, lender->clean, 0)) {
        return 0;
    }
    /* cannot fail: nodes are reserved */
    (void)rmm__blocks_cut(borrower->blocks, borrower->clean, unit, units);
    return units;
}

static bool give_back_some_locked(
    engine_t *lender, engine_t *borrower, const engine_loan_ops_t *ops)
{
    parts_t parts = {.count = 0};
    bool any = false;

    rmm__blocks_walk_free(
        borrower->blocks, borrower->clean, LEND_GRANULE_UNITS, collect, &parts);
    for (uint32_t i = 0; i < parts.count; i++) {
        uint64_t unit = parts.part[i].unit;
        uint64_t end = unit + parts.part[i].units;
        uint32_t units = 1;

        while (unit < end && units != 0) {
            units = give_back_locked(lender, borrower, unit, (uint32_t)(end - unit));
            if (units != 0) {
                ops->moved(ops->context, unit, units, false);
            }
            unit += units;
            any |= units != 0;
        }
    }
    return any && parts.count == PARTS_AT_ONCE;
}

void rmm__engine_give_back(
    engine_t *lender, engine_t *borrower, const engine_loan_ops_t *ops)
{
    rmm__mutex_lock(&borrower->lock);
    rmm__mutex_lock(&lender->lock);
    RMM_ASSERT(borrower->streams.alone == NULL);
    while (give_back_some_locked(lender, borrower, ops)) {
    }
    rmm__engine_show_locked(lender);
    rmm__engine_show_locked(borrower);
    rmm__mutex_unlock(&lender->lock);
    rmm__mutex_unlock(&borrower->lock);
}
