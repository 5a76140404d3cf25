/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics of newer programs, which the schema in their segment names; see figures.h. */
#include "node/figures.h"

#include <string.h>

/* Names that a `stat`, or an object of `json`, has beside its figures. */
static const char *const taken[] = {
    "fragmentation", "peak_upper_bytes", "torn", "processes_left_out",
    "device",        "resource",         "type", "resources",
};

static bool is_known(const rmm_segment_schema_t *entry)
{
    const figure_name_t *known = entry->scope == RMM_SCHEMA_LOCATION
                                     ? figures_of_locations
                                     : figures_of_resources;

    for (; known->name != NULL; known++) {
        if (strcmp(known->name, entry->name) == 0) {
            return true;
        }
    }
    for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++) {
        if (strcmp(taken[i], entry->name) == 0) {
            return true;
        }
    }
    return false;
}

bool figures_has_newer(const rmm_segment_t *segment)
{
    uint32_t known = 0;

    for (int i = 0; i < RMM_LOCATION_STAT_COUNT; i++) {
        known += segment->location_offset[i] != UINT32_MAX;
    }
    for (int i = 0; i < RMM_SLOT_STAT_COUNT; i++) {
        known += segment->slot_offset[i] != UINT32_MAX;
    }
    return segment->header.schema_count > known;
}

void figures_each_newer(
    const rmm_segment_t *segment, uint16_t scope, const rmm_record_t *record,
    newer_figure_fn visit, void *arg)
{
    for (uint32_t i = 0; i < segment->header.schema_count; i++) {
        const rmm_segment_schema_t *entry = &segment->schema[i];
        uint64_t value;

        if (entry->scope == scope && !is_known(entry)) {
            value = rmm__record_schema_value(record, entry);
            if (figure_is_plausible(entry->kind, value)) {
                visit(entry, value, arg);
            }
        }
    }
}
