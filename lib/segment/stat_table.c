/* SPDX-License-Identifier: Apache-2.0 */
/* The lists of stat_fields.h as tables, for the writer's schema and for readers. */
#include "segment/segment_reader.h"

#include <string.h>

#define ENTRY(record, field, kind_, unit_, help_)                                      \
    {.name = #field,                                                                   \
     .kind = RMM_KIND_##kind_,                                                         \
     .unit = RMM_UNIT_##unit_,                                                         \
     .offset = offsetof(record, field),                                                \
     .help = (help_)},

const rmm_stat_desc_t rmm__location_stats[RMM_LOCATION_STAT_COUNT] = {
#define X(field, kind, unit, help)                                                     \
    ENTRY(rmm_segment_location_t, field, kind, unit, help)
    RMM_LOCATION_STATS(X)
#undef X
};

const rmm_stat_desc_t rmm__slot_stats[RMM_SLOT_STAT_COUNT] = {
#define X(field, kind, unit, help) ENTRY(rmm_segment_slot_t, field, kind, unit, help)
    RMM_SLOT_STATS(X)
#undef X
};

typedef struct striped_stat {
    const char *name;
    rmm_stripe_words_t words;
} striped_stat_t;

#define WORD_NONE RMM_STRIPE_NONE
#define WORD_current_bytes offsetof(rmm_segment_stripe_t, current_bytes)
#define WORD_total_bytes offsetof(rmm_segment_stripe_t, total_bytes)
#define WORD_total_count offsetof(rmm_segment_stripe_t, total_count)
#define WORD_freed_count offsetof(rmm_segment_stripe_t, freed_count)
#define WORD_padding_added offsetof(rmm_segment_stripe_t, padding_added)
#define WORD_padding_removed offsetof(rmm_segment_stripe_t, padding_removed)

static const striped_stat_t striped_stats[] = {
#define X(field, plus, minus) {#field, {WORD_##plus, WORD_##minus}},
    RMM_STRIPED_STATS(X)
#undef X
};

const rmm_stripe_words_t *rmm__stripe_words(const char *name)
{
    for (size_t i = 0; i < sizeof(striped_stats) / sizeof(striped_stats[0]); i++) {
        if (strcmp(striped_stats[i].name, name) == 0) {
            return &striped_stats[i].words;
        }
    }
    return NULL;
}

static_assert(
    RMM_LOCATION_STAT_COUNT + RMM_SLOT_STAT_COUNT <= RMM_SCHEMA_MAX,
    "the schema table holds every statistic");
