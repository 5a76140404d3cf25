/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cost: one clock read and one probe for the user's name an event; for each word two
 * comparisons unless it points near a block.
 */
#include "diag/uses.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/clock.h"
#include "diag/event_range.h"
#include "diag/row.h"

/* --- rows -------------------------------------------------------------------------- */

uint64_t rmm__uses_now(rmm_uses_t *uses)
{
    uint64_t now_ns = rmm__clock_ns(CLOCK_MONOTONIC);

    uses->last_ns = now_ns > uses->last_ns ? now_ns : uses->last_ns + 1;
    return uses->last_ns;
}

void rmm__uses_open(rmm_uses_t *uses, uint32_t index, const rmm_diag_block_v1_t *block)
{
    rmm_diag_row_t *row = &uses->rows[index];

    RMM_ROW_BEGIN(row);
    RMM_ROW_SET(row, address, block->address);
    RMM_ROW_SET(row, bytes, block->bytes);
    RMM_ROW_SET(row, stream_id, block->stream_id);
    RMM_ROW_SET(row, resource_id, block->resource_id);
    RMM_ROW_SET(row, device, block->device);
    RMM_ROW_SET(row, first_user, RMM_DIAG_NO_USER);
    RMM_ROW_SET(row, last_user, RMM_DIAG_NO_USER);
    RMM_ROW_SET(row, launches, 0);
    RMM_ROW_SET(row, copies, 0);
    RMM_ROW_SET(row, fills, 0);
    RMM_ROW_SET(row, prefetches, 0);
    RMM_ROW_SET(row, allocated_ns, rmm__uses_now(uses));
    RMM_ROW_SET(row, first_use_ns, 0);
    RMM_ROW_SET(row, last_use_ns, 0);
    RMM_ROW_SET(row, allocated_at, RMM_ROW_GET(uses->header, launches));
    RMM_ROW_SET(row, first_use_at, 0);
    RMM_ROW_SET(row, last_use_at, 0);
    RMM_ROW_SET(row, site, 0);
    RMM_ROW_SET(row, live, 1);
    RMM_ROW_END(row);
}

void rmm__uses_close(rmm_uses_t *uses, uint32_t index)
{
    rmm_diag_row_t *row = &uses->rows[index];

    RMM_ROW_BEGIN(row);
    RMM_ROW_SET(row, live, 0);
    RMM_ROW_END(row);
}

rmm_diag_block_v1_t rmm__uses_block(const rmm_uses_t *uses, uint32_t index)
{
    const rmm_diag_row_t *row = &uses->rows[index];
    const rmm_live_node_t *node = &uses->map->nodes[index];

    return (rmm_diag_block_v1_t){
        .address = node->start,
        .bytes = node->end - node->start,
        .stream_id = RMM_ROW_GET(row, stream_id),
        .resource_id = RMM_ROW_GET(row, resource_id),
        .device = RMM_ROW_GET(row, device)};
}

/* --- uses -------------------------------------------------------------------------- */

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

static inline void note_stray(rmm_uses_t *uses, uint64_t word)
{
    if (rmm__freed_may_have(uses->freed, word) && uses->stray_count < RMM_USES_STRAYS) {
        uses->strays[uses->stray_count++] = word;
    }
}

/* The first `judged` words may be strays. use NULL: they are listed, and not counted. */
static void use_blocks(
    rmm_uses_t *uses, const uint64_t *words, size_t count, size_t judged,
    const use_t *use)
{
    uses->events++;
    uses->used_count = 0;
    uses->stray_count = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t index = rmm__live_map_find(uses->map, words[i]);

        if (index == RMM_LIVE_NONE) {
            if (i < judged) {
                note_stray(uses, words[i]);
            }
        } else if (uses->seen[index] != uses->events) {
            uses->seen[index] = uses->events;
            if (use != NULL) {
                use_row(&uses->rows[index], use);
            }
            if (uses->used_count < RMM_USES_LISTED) {
                uses->used_at[uses->used_count] = words[i];
                uses->used[uses->used_count++] = index;
            }
        }
    }
}

/* One more launch or call of this user. */
static void count_user(rmm_uses_t *uses, uint32_t kind, uint32_t user)
{
    if (user == RMM_DIAG_NO_USER) {
        if (kind == RMM_DIAG_LAUNCH) {
            RMM_ROW_ADD(&uses->header->launches_unnamed, 1);
        }
    } else if ((user & RMM_DIAG_FUNCTION) != 0) {
        RMM_ROW_ADD(&uses->functions[user & ~RMM_DIAG_FUNCTION].calls, 1);
    } else {
        RMM_ROW_ADD(&uses->kernel_entries[user].launches, 1);
    }
}

/* --- launches ---------------------------------------------------------------------- */

uint32_t rmm__uses_kernel(rmm_uses_t *uses, const rmm_diag_event_v1_t *event)
{
    uint32_t entry =
        rmm__kernel_table_entry(&uses->kernels, event->function, event->name);

    /* release: the entry's name is written; pairs with a reader's load */
    atomic_store_explicit(
        &uses->header->kernels_used, uses->kernels.count, memory_order_release);
    return entry;
}

void rmm__uses_look(rmm_uses_t *uses, const rmm_diag_event_v1_t *event)
{
    uses->stray_count = 0;
    for (size_t i = 0; i < rmm__event_judged_words(event); i++) {
        if (rmm__live_map_find(uses->map, event->words[i]) == RMM_LIVE_NONE) {
            note_stray(uses, event->words[i]);
        }
    }
}

uint32_t rmm__uses_launch(rmm_uses_t *uses, const rmm_diag_event_v1_t *event)
{
    uint64_t launches = RMM_ROW_GET(uses->header, launches);
    const use_t use = {
        .kind = RMM_DIAG_LAUNCH,
        .user = rmm__uses_kernel(uses, event),
        .when_ns = rmm__clock_ns(CLOCK_MONOTONIC),
        .launches_before = launches,
        .launches = launches + 1};

    count_user(uses, RMM_DIAG_LAUNCH, use.user);
    RMM_ROW_ADD(&uses->header->launches, 1);
    use_blocks(
        uses, event->words, event->word_count, rmm__event_judged_words(event), &use);
    return use.user;
}

/* --- copies, fills, prefetches ----------------------------------------------------- */

static void add_function(rmm_uses_t *uses, uint32_t entry, const char *name)
{
    char *to = uses->functions[entry].name;
    size_t i = 0;

    for (; i + 1 < sizeof(uses->functions[0].name) && name[i] != '\0'; i++) {
        to[i] = name[i];
    }
    /* release: the name is written; pairs with a reader's first look */
    atomic_store_explicit(
        &uses->header->functions_used, entry + 1, memory_order_release);
}

static bool is_called(const rmm_diag_function_t *function, const char *name)
{
    return strncmp(function->name, name, sizeof(function->name) - 1) == 0;
}

/* RMM_DIAG_NO_USER: all entries are taken, or the function has no name. */
static uint32_t name_function(rmm_uses_t *uses, const char *name)
{
    uint32_t used = RMM_ROW_GET(uses->header, functions_used);
    uint32_t i = 0;

    if (name == NULL || name[0] == '\0') {
        return RMM_DIAG_NO_USER;
    }
    used = used < RMM_DIAG_FUNCTIONS_COUNT ? used : RMM_DIAG_FUNCTIONS_COUNT;
    while (i < used && !is_called(&uses->functions[i], name)) {
        i++;
    }
    if (i == RMM_DIAG_FUNCTIONS_COUNT) {
        return RMM_DIAG_NO_USER;
    }
    if (i == used) {
        add_function(uses, i, name);
    }
    return RMM_DIAG_FUNCTION | i;
}

static void count_call(rmm_diag_header_t *header, uint32_t kind)
{
    if (kind == RMM_DIAG_COPY) {
        RMM_ROW_ADD(&header->copies, 1);
    } else if (kind == RMM_DIAG_SET) {
        RMM_ROW_ADD(&header->fills, 1);
    } else {
        RMM_ROW_ADD(&header->prefetches, 1);
    }
}

uint32_t rmm__uses_range(rmm_uses_t *uses, const rmm_diag_event_v1_t *event)
{
    uint64_t launches = RMM_ROW_GET(uses->header, launches);
    const use_t use = {
        .kind = event->kind,
        .user = name_function(uses, event->name),
        .when_ns = rmm__clock_ns(CLOCK_MONOTONIC),
        .launches_before = launches,
        .launches = launches};

    count_user(uses, event->kind, use.user);
    count_call(uses->header, event->kind);
    if (event->bytes > 0) {
        size_t count = rmm__event_range_count(event);

        use_blocks(uses, event->words, count, count, &use);
    }
    return use.user;
}

/* --- graphs ------------------------------------------------------------------------ */

uint32_t rmm__uses_note(rmm_uses_t *uses, const rmm_diag_event_v1_t *event)
{
    bool is_launch = event->kind == RMM_DIAG_LAUNCH;
    size_t count = is_launch || event->bytes > 0 ? event->word_count : 0;

    if (!is_launch && count > 0) {
        count = rmm__event_range_count(event);
    }
    use_blocks(uses, event->words, count, rmm__event_judged_words(event), NULL);
    return is_launch ? rmm__uses_kernel(uses, event) : name_function(uses, event->name);
}

void rmm__uses_replay(
    rmm_uses_t *uses, uint32_t kind, uint32_t user, const uint32_t *rows,
    uint32_t count)
{
    uint64_t launches = RMM_ROW_GET(uses->header, launches);
    bool is_launch = kind == RMM_DIAG_LAUNCH;
    const use_t use = {
        .kind = kind,
        .user = user,
        .when_ns = rmm__clock_ns(CLOCK_MONOTONIC),
        .launches_before = launches,
        .launches = launches + (is_launch ? 1 : 0)};

    count_user(uses, kind, user);
    if (is_launch) {
        RMM_ROW_ADD(&uses->header->launches, 1);
    } else {
        count_call(uses->header, kind);
    }
    for (uint32_t i = 0; i < count; i++) {
        use_row(&uses->rows[rows[i]], &use);
    }
}

/* --- making ------------------------------------------------------------------------ */

bool rmm__uses_init(
    rmm_uses_t *uses, uint32_t row_count, uint32_t kernel_count,
    rmm_demangle_fn demangle)
{
    uses->seen = calloc(row_count, sizeof(*uses->seen));
    if (uses->seen == NULL) {
        return false;
    }
    if (!rmm__kernel_table_init(
            &uses->kernels, uses->kernel_entries, kernel_count, demangle)) {
        free(uses->seen);
        return false;
    }
    return true;
}

void rmm__uses_fini(rmm_uses_t *uses)
{
    rmm__kernel_table_fini(&uses->kernels);
    free(uses->seen);
}
