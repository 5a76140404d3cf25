/* SPDX-License-Identifier: Apache-2.0 */
/* What a program holds, is about to take and asks for; see segment_growth.h. */
#include "segment/segment_growth.h"

#include <stdatomic.h>

#include "segment/segment_side.h"

#define IMPLAUSIBLE_BYTES (UINT64_C(1) << 57) /* more than an address space has */

/* The words of a location that a thread writes while it grows. */
typedef struct growth_words {
    uint64_t promised_bytes, wanted_bytes;
    uint32_t wanted_number;
} growth_words_t;

static uint64_t plausible(uint64_t bytes)
{
    return bytes < IMPLAUSIBLE_BYTES ? bytes : 0;
}

bool rmm__segment_growth(
    const rmm_segment_t *segment, uint32_t location, rmm_growth_t *growth_out)
{
    const rmm_segment_header_t *header = &segment->header;
    const uint32_t held_offset =
        segment->location_offset[RMM_LOCATION_STAT_reserved_bytes];
    const uint64_t at =
        header->locations_offset + (uint64_t)header->locations_stride * location;
    growth_words_t words;
    uint64_t held;

    if (location >= header->locations_count || held_offset == UINT32_MAX) {
        return false;
    }
    /* seq_cst: pairs with the fence in limits.c between a promise and the share */
    atomic_thread_fence(memory_order_seq_cst);
    if (!rmm__read_at(
            segment->fd, &words, sizeof(words),
            at + offsetof(rmm_segment_location_t, promised_bytes))) {
        return false;
    }
    /* acquire: what is no longer promised is held */
    atomic_thread_fence(memory_order_acquire);
    if (!rmm__read_at(segment->fd, &held, sizeof(held), at + held_offset)) {
        return false;
    }
    growth_out->used_bytes = plausible(words.promised_bytes) + plausible(held);
    growth_out->wanted_bytes = words.wanted_bytes;
    growth_out->wanted_number = words.wanted_number;
    return true;
}
