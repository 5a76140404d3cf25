/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cost: a free reads the clock and the row; one that deserves a verdict probes the table.
 */
#include "diag/verdicts.h"

#include <stddef.h>
#include <time.h>

#include "core/clock.h"
#include "diag/block_groups.h"
#include "diag/row.h"
#include "diag/verdict_rules.h"

typedef struct state {
    /* in the side file; borrowed */
    rmm_diag_header_t *header;
    rmm_diag_verdict_entry_t *entries;
} state_t;

static bool
init(void *state, rmm_diag_engine_t *engine, const rmm_diag_engine_desc_t *desc)
{
    state_t *self = state;

    (void)desc;
    self->header = engine->header;
    self->entries =
        (void *)((unsigned char *)engine->header + engine->header->verdicts.offset);
    return true;
}

enum { PROBES = 64 }; /* of a table: what one free may cost when it is full */

static bool is_of(const rmm_diag_verdict_entry_t *entry, const rmm_diag_group_t *group)
{
    const rmm_diag_group_t its = {
        .verdict = RMM_ROW_GET(entry, verdict),
        .resource_id = RMM_ROW_GET(entry, resource_id),
        .first_user = RMM_ROW_GET(entry, first_user),
        .device = RMM_ROW_GET(entry, device),
        .size_class = RMM_ROW_GET(entry, size_class),
        .site = RMM_ROW_GET(entry, site)};

    return rmm__diag_group_is_like(&its, group);
}

/* Free, or of this kind; NULL: all that are looked at are taken. */
static rmm_diag_verdict_entry_t *
find_entry(const state_t *self, const rmm_diag_group_t *group)
{
    uint32_t at = rmm__diag_group_hash(group);

    for (uint32_t i = 0; i < PROBES; i++) {
        rmm_diag_verdict_entry_t *entry =
            &self->entries[(at + i) % RMM_DIAG_VERDICTS_COUNT];

        if (RMM_ROW_GET(entry, verdict) == 0 || is_of(entry, group)) {
            return entry;
        }
    }
    return NULL;
}

static uint64_t add_up_to_largest(uint64_t a, uint64_t b)
{
    return a + b >= a ? a + b : UINT64_MAX;
}

static void add(rmm_diag_verdict_entry_t *entry, const rmm_diag_group_t *group)
{
    RMM_ROW_BEGIN(entry);
    RMM_ROW_SET(entry, verdict, group->verdict);
    RMM_ROW_SET(entry, resource_id, group->resource_id);
    RMM_ROW_SET(entry, first_user, group->first_user);
    RMM_ROW_SET(entry, device, group->device);
    RMM_ROW_SET(entry, size_class, group->size_class);
    RMM_ROW_SET(entry, site, group->site);
    RMM_ROW_SET(entry, count, RMM_ROW_GET(entry, count) + group->count);
    RMM_ROW_SET(entry, bytes, RMM_ROW_GET(entry, bytes) + group->bytes);
    if (group->largest > RMM_ROW_GET(entry, largest)) {
        RMM_ROW_SET(entry, largest, group->largest);
    }
    RMM_ROW_SET(
        entry, byte_ms, add_up_to_largest(RMM_ROW_GET(entry, byte_ms), group->byte_ms));
    RMM_ROW_END(entry);
}

static void give(
    state_t *self, const rmm_diag_row_t *row, rmm_diag_verdict_t verdict,
    uint64_t wasted_ns)
{
    uint64_t bytes = RMM_ROW_GET(row, bytes);
    rmm_diag_group_t group = {
        .verdict = verdict,
        .resource_id = RMM_ROW_GET(row, resource_id),
        .first_user = RMM_ROW_GET(row, first_user),
        .device = RMM_ROW_GET(row, device),
        .size_class = rmm__diag_size_class(bytes),
        .site = RMM_ROW_GET(row, site),
        .bytes = bytes,
        .count = 1,
        .largest = bytes,
        .byte_ms = rmm__diag_byte_ms(bytes, wasted_ns)};
    rmm_diag_verdict_entry_t *entry = find_entry(self, &group);

    if (entry == NULL && group.site != 0) {
        group.site = 0;
        entry = find_entry(self, &group);
    }
    if (entry == NULL) {
        RMM_ROW_ADD(&self->header->verdicts_dropped, 1);
        return;
    }
    add(entry, &group);
}

static rmm_diag_life_t
life_of(const state_t *self, const rmm_diag_row_t *row, bool is_left)
{
    return (rmm_diag_life_t){
        .fate = is_left ? RMM_DIAG_FATE_LEFT : RMM_DIAG_FATE_FREED,
        .device = RMM_ROW_GET(row, device),
        .allocated_ns = RMM_ROW_GET(row, allocated_ns),
        .first_use_ns = RMM_ROW_GET(row, first_use_ns),
        .last_use_ns = RMM_ROW_GET(row, last_use_ns),
        .allocated_at = RMM_ROW_GET(row, allocated_at),
        .first_use_at = RMM_ROW_GET(row, first_use_at),
        .last_use_at = RMM_ROW_GET(row, last_use_at),
        .end_at = RMM_ROW_GET(self->header, launches)};
}

/* is_left: the block is freed by the end of its resource, as the program has not. A block that is
 * older than since_ns gets no other verdict than that: its uses were not all seen; 0: none are. */
static void
judge(state_t *self, const rmm_diag_row_t *row, bool is_left, uint64_t since_ns)
{
    rmm_diag_life_t life = life_of(self, row, is_left);
    bool is_judged = rmm__diag_is_judged(life.allocated_ns, since_ns);
    uint64_t wasted_ns = 0;

    if (is_left) {
        RMM_ROW_ADD(&self->header->left_count, 1);
        RMM_ROW_ADD(&self->header->left_bytes, RMM_ROW_GET(row, bytes));
        life.end_ns = rmm__clock_ns(CLOCK_MONOTONIC);
    }
    for (int i = RMM_DIAG_NEVER_USED; i <= RMM_DIAG_LEAKED; i++) {
        rmm_diag_verdict_t verdict = (rmm_diag_verdict_t)i;

        if (!is_judged && verdict != RMM_DIAG_LEAKED) {
            continue;
        }
        /* of a freed block the time decides nothing: most need no reading of the clock */
        if (rmm__diag_verdict_applies(&life, verdict, &wasted_ns)) {
            life.end_ns = rmm__clock_ns(CLOCK_MONOTONIC);
            (void)rmm__diag_verdict_applies(&life, verdict, &wasted_ns);
            give(self, row, verdict, wasted_ns);
        }
    }
}

/* A block that is freed into a capture is used by the graph later. */
static void freed(void *state, rmm_diag_call_t *call)
{
    rmm_diag_engine_t *engine = call->engine;
    bool is_left = (call->block->flags & RMM_DIAG_BLOCK_LEFT) != 0;

    if ((call->block->flags & RMM_DIAG_BLOCK_CAPTURED) == 0) {
        judge(
            state, &engine->blocks.rows[call->index], is_left,
            atomic_load_explicit(&engine->modes.judged_since_ns, memory_order_relaxed));
    }
}

const rmm_checker_t rmm__verdicts_checker = {
    .state_bytes = sizeof(state_t), .init = init, .freed = freed};
