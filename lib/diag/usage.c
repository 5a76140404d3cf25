/* SPDX-License-Identifier: Apache-2.0 */
/* Uses of blocks; see usage.h. Cost: one clock read an event. */
#include "diag/usage.h"

#include <time.h>

#include "core/clock.h"
#include "diag/row.h"

typedef struct use {
    uint32_t kind; /* rmm_diag_event_kind_t */
    uint32_t user;
    uint64_t when_ns;
    uint64_t launches_before; /* launches seen, this one not counted */
    uint64_t launches;        /* this one counted */
} use_t;

static void count_use(rmm_diag_row_t *row, uint32_t kind)
{
    switch (kind) {
    case RMM_DIAG_COPY:
        RMM_ROW_SET(row, copies, RMM_ROW_GET(row, copies) + 1);
        break;
    case RMM_DIAG_SET:
        RMM_ROW_SET(row, fills, RMM_ROW_GET(row, fills) + 1);
        break;
    case RMM_DIAG_PREFETCH:
        RMM_ROW_SET(row, prefetches, RMM_ROW_GET(row, prefetches) + 1);
        break;
    default:
        RMM_ROW_SET(row, launches, RMM_ROW_GET(row, launches) + 1);
        break;
    }
}

static void use_row(rmm_diag_row_t *row, const use_t *use)
{
    RMM_ROW_BEGIN(row);
    if (RMM_ROW_GET(row, first_use_ns) == 0) {
        RMM_ROW_SET(row, first_user, use->user);
        RMM_ROW_SET(row, first_use_ns, use->when_ns);
        RMM_ROW_SET(row, first_use_at, use->launches_before);
    }
    RMM_ROW_SET(row, last_user, use->user);
    RMM_ROW_SET(row, last_use_ns, use->when_ns);
    RMM_ROW_SET(row, last_use_at, use->launches);
    count_use(row, use->kind);
    RMM_ROW_END(row);
}

static void count_call(rmm_diag_header_t *header, uint32_t kind)
{
    switch (kind) {
    case RMM_DIAG_COPY:
        RMM_ROW_ADD(&header->copies, 1);
        break;
    case RMM_DIAG_SET:
        RMM_ROW_ADD(&header->fills, 1);
        break;
    case RMM_DIAG_PREFETCH:
        RMM_ROW_ADD(&header->prefetches, 1);
        break;
    default:
        RMM_ROW_ADD(&header->launches, 1);
        break;
    }
}

void rmm__usage_count(
    rmm_diag_engine_t *engine, uint32_t kind, uint32_t user, const uint32_t *indexes,
    uint32_t count)
{
    uint64_t launches = RMM_ROW_GET(engine->header, launches);
    const use_t use = {
        .kind = kind,
        .user = user,
        .when_ns = rmm__clock_ns(CLOCK_MONOTONIC),
        .launches_before = launches,
        .launches = launches + (kind == RMM_DIAG_LAUNCH ? 1 : 0)};

    RMM_ASSERT_LOCKED(&engine->lock);
    rmm__users_count(&engine->users, kind, user);
    count_call(engine->header, kind);
    for (uint32_t i = 0; i < count; i++) {
        use_row(&engine->blocks.rows[indexes[i]], &use);
    }
}

static void after(void *state, rmm_diag_call_t *call)
{
    const rmm_diag_event_v1_t *event = call->event;
    rmm_live_blocks_t *blocks = &call->engine->blocks;

    (void)state;
    if ((call->modes & RMM_DIAG_MODES_WITH_USES) == 0 || call->is_captured ||
        (event->kind != RMM_DIAG_LAUNCH && !rmm__event_has_range(event))) {
        return;
    }
    call->user = rmm__users_name(&call->engine->users, event);
    rmm__usage_count(
        call->engine, event->kind, call->user, blocks->used, blocks->used_count);
}

const rmm_checker_t rmm__usage_checker = {.after = after};
