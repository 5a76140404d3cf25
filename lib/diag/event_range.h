/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ranges of a copy, fill or prefetch, as its event gives them (rmm/sys/diag.h): the first is
 * the one that is written or prefetched, the second, of a copy, the one that is read. And which
 * words of a launch's parameters are no pointers, although they look like some.
 */
#ifndef RMM_DIAG_EVENT_RANGE_H
#define RMM_DIAG_EVENT_RANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rmm/sys/diag.h>

typedef struct rmm_event_range {
    uint64_t start, bytes;
    bool is_write; /* a prefetch changes no byte */
    bool has_gaps; /* some of its bytes are not accessed */
} rmm_event_range_t;

static inline bool rmm__event_has_range(const rmm_diag_event_v1_t *event)
{
    return event->kind == RMM_DIAG_COPY || event->kind == RMM_DIAG_SET ||
           event->kind == RMM_DIAG_PREFETCH;
}

/* They begin at as many words of the event. */
static inline size_t rmm__event_range_count(const rmm_diag_event_v1_t *event)
{
    size_t sides = event->kind == RMM_DIAG_COPY ? 2 : 1;

    return event->word_count < sides ? event->word_count : sides;
}

static inline rmm_event_range_t
rmm__event_range(const rmm_diag_event_v1_t *event, size_t i)
{
    bool has_sizes = event->word_count == 4; /* one for each side */

    return (rmm_event_range_t){
        .start = event->words[i],
        .bytes = has_sizes ? event->words[i + 2] : event->bytes,
        .is_write = i == 0 && event->kind != RMM_DIAG_PREFETCH,
        .has_gaps = has_sizes || event->has_pitch != 0};
}

/* The words that may be errors by themselves. Of a copy, fill or prefetch all. */
static inline size_t rmm__event_judged_words(const rmm_diag_event_v1_t *event)
{
    return event->stale_words < event->word_count
               ? event->word_count - event->stale_words
               : 0;
}

/* A small number in a struct, and behind it padding with the upper half of an old pointer, look
 * together like a pointer to just above a multiple of 4 GiB. They are none unless the block begins
 * there: few blocks cross such a multiple, and fewer are used at that place. cuDNN passes such
 * structs. */
#define RMM_EVENT_NUMBER_MAX ((UINT64_C(1) << 24) - 1)

static inline bool rmm__event_may_be_number(uint64_t word, uint64_t block_start)
{
    uint64_t number = word & UINT32_MAX;

    return number <= RMM_EVENT_NUMBER_MAX && block_start < word - number;
}

#endif /* RMM_DIAG_EVENT_RANGE_H */
