/* SPDX-License-Identifier: Apache-2.0 */
/* The lists of stat_fields.h as tables, for the writer's schema and for readers. */
#include "publish/segment_reader.h"

#define ENTRY(record, field, kind_, unit_, help_)                                      \
    {.name = #field,                                                                   \
     .kind = RMM_KIND_##kind_,                                                         \
     .unit = RMM_UNIT_##unit_,                                                         \
     .offset = offsetof(record, field),                                                \
     .help = (help_)},

const rmm_stat_desc_t rmm__place_stats[RMM_PLACE_STAT_COUNT] = {
#define X(field, kind, unit, help) ENTRY(rmm_segment_place_t, field, kind, unit, help)
    RMM_PLACE_STATS(X)
#undef X
};

const rmm_stat_desc_t rmm__slot_stats[RMM_SLOT_STAT_COUNT] = {
#define X(field, kind, unit, help) ENTRY(rmm_segment_slot_t, field, kind, unit, help)
    RMM_SLOT_STATS(X)
#undef X
};

static_assert(
    RMM_PLACE_STAT_COUNT + RMM_SLOT_STAT_COUNT <= RMM_SCHEMA_MAX,
    "the schema table holds every statistic");
