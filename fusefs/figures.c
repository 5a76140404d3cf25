/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads and adds figures; see figures.h. The counters of a record are independent: what
 * one formula takes from two of them is clamped at 0, never shown as a huge number.
 */
#include "figures.h"

#include <stddef.h>
#include <string.h>

/* Where each statistic of a record goes. */
static const size_t place_targets[RMM_LOCATION_STAT_COUNT] = {
#define X(field, kind, unit, help) offsetof(figures_t, field),
    RMM_LOCATION_STATS(X)
#undef X
};
static const size_t slot_targets[RMM_SLOT_STAT_COUNT] = {
#define X(field, kind, unit, help) offsetof(figures_t, field),
    RMM_SLOT_STATS(X)
#undef X
};

/* Sums of what several have. Marks are added too: an upper bound, where it is shown. */
static const size_t sums[] = {
#define X(field, kind, unit, help) offsetof(figures_t, field),
    RMM_COMMON_STATS(X) RMM_LOCATION_ONLY_STATS(X)
#undef X
        offsetof(figures_t, free_bytes),
    offsetof(figures_t, current_count),
    offsetof(figures_t, largest_free_sum),
};

static uint64_t *figure_at(figures_t *figures, size_t offset)
{
    return (uint64_t *)(void *)((char *)figures + offset);
}

static uint64_t figure_value(const figures_t *figures, size_t offset)
{
    return *(const uint64_t *)(const void *)((const char *)figures + offset);
}

uint64_t figure_add(uint64_t a, uint64_t b)
{
    if (a == FIGURE_UNKNOWN || b == FIGURE_UNKNOWN) {
        return FIGURE_UNKNOWN;
    }
    return a > FIGURE_UNKNOWN - 1 - b ? FIGURE_UNKNOWN - 1 : a + b;
}

static uint64_t figure_subtract(uint64_t a, uint64_t b)
{
    if (a == FIGURE_UNKNOWN || b == FIGURE_UNKNOWN) {
        return FIGURE_UNKNOWN;
    }
    return a > b ? a - b : 0;
}

static uint64_t figure_max(uint64_t a, uint64_t b)
{
    if (a == FIGURE_UNKNOWN || b == FIGURE_UNKNOWN) {
        return FIGURE_UNKNOWN;
    }
    return a > b ? a : b;
}

static void derive_cached(figures_t *figures)
{
    uint64_t used = figure_add(figures->current_bytes, figures->padding_bytes);
    figures->cached_bytes = figure_subtract(figures->reserved_bytes, used);
}

void figures_add(figures_t *sum, const figures_t *part)
{
    for (size_t i = 0; i < sizeof(sums) / sizeof(sums[0]); i++) {
        uint64_t *figure = figure_at(sum, sums[i]);
        *figure = figure_add(*figure, figure_value(part, sums[i]));
    }
    sum->largest_free_bytes =
        figure_max(sum->largest_free_bytes, part->largest_free_bytes);
    derive_cached(sum);
}

/* A mark that the process has yet to reset is the current value. */
static void reset_pending(figures_t *figures, bool pending)
{
    if (pending) {
        figures->peak_bytes = figures->current_bytes;
        figures->peak_count = figures->current_count;
    }
}

static void reset_node_pending(figures_t *figures, bool pending)
{
    if (pending) {
        figures->node_peak_bytes = figures->current_bytes;
        figures->node_peak_count = figures->current_count;
    }
}

/* --- a resource --------------------------------------------------------------------- */

void figures_of_resource(const slot_view_t *view, unsigned want, figures_t *out)
{
    const rmm_segment_t *segment = &view->member->segment;
    memset(out, 0, sizeof(*out));
    for (int i = 0; i < RMM_SLOT_STAT_COUNT; i++) {
        uint64_t value;
        bool known =
            rmm_segment_slot_stat(segment, &view->record, (rmm_slot_stat_t)i, &value);
        *figure_at(out, slot_targets[i]) = known ? value : FIGURE_UNKNOWN;
    }
    out->current_count = figure_subtract(out->total_count, out->freed_count);
    out->largest_free_sum = out->largest_free_bytes;
    out->torn = view->torn;
    derive_cached(out);
    if ((want & FIGURES_MARKS) != 0 && view->member->has_control &&
        !view->member->is_settled) {
        rmm_control_t control = view->member->control;
        rmm_control_slot_t request;
        bool told = rmm_control_read_slot(&control, view->index, &request) == 0;
        uint32_t seen = rmm_record_slot(&view->record)->peak_reset_seen;
        reset_pending(out, told && request.peak_reset != seen);
    }
}

/* --- a location ------------------------------------------------------------------------ */

static bool add_free_blocks(const slot_view_t *view, void *arg)
{
    figures_t *location = arg;
    figures_t resource;
    figures_of_resource(view, 0, &resource);
    location->free_bytes = figure_add(location->free_bytes, resource.free_bytes);
    location->largest_free_sum =
        figure_add(location->largest_free_sum, resource.largest_free_bytes);
    location->largest_free_bytes =
        figure_max(location->largest_free_bytes, resource.largest_free_bytes);
    return true;
}

typedef struct place_filter {
    uint32_t location;
    figures_t *figures;
} place_filter_t;

static bool add_free_blocks_here(const slot_view_t *view, void *arg)
{
    const place_filter_t *filter = arg;
    if (rmm_record_slot(&view->record)->location != filter->location) {
        return true;
    }
    return add_free_blocks(view, filter->figures);
}

static void apply_location_requests(
    const member_t *member, uint32_t location, const rmm_record_t *record,
    figures_t *out)
{
    rmm_control_t control = member->control;
    rmm_control_location_t request;
    if (member->is_settled) {
        return;
    }
    if (!member->has_control ||
        rmm_control_read_location(&control, location, &request) != 0) {
        reset_node_pending(out, true);
        return;
    }
    const rmm_segment_location_t *identity = rmm_record_location(record);
    reset_pending(out, request.peak_reset != identity->peak_reset_seen);
    reset_node_pending(out, request.node_peak_reset != identity->node_peak_reset_seen);
}

bool figures_read_location(
    member_t *member, uint32_t location, unsigned want, figures_t *out)
{
    rmm_record_t record;
    if (member->state == MEMBER_UNREADABLE ||
        !rmm_segment_read_location(&member->segment, location, &record)) {
        return false;
    }
    memset(out, 0, sizeof(*out));
    for (int i = 0; i < RMM_LOCATION_STAT_COUNT; i++) {
        uint64_t value;
        bool known = rmm_segment_location_stat(
            &member->segment, &record, (rmm_location_stat_t)i, &value);
        *figure_at(out, place_targets[i]) = known ? value : FIGURE_UNKNOWN;
    }
    out->current_count = figure_subtract(out->total_count, out->freed_count);
    out->device_free_bytes = rmm_record_location(&record)->device_free_bytes;
    if ((want & FIGURES_MARKS) != 0) {
        apply_location_requests(member, location, &record, out);
    }
    if ((want & FIGURES_FREE) != 0) {
        place_filter_t filter = {location, out};
        slots_each(member, add_free_blocks_here, &filter);
    }
    return true;
}

/* --- a process ---------------------------------------------------------------------- */

/* Gauges and marks leave with a segment that is over; its counters stay. */
static void leave_counters(figures_t *figures)
{
#define X(field, kind, unit, help)                                                     \
    figures->field = RMM_KIND_##kind == RMM_KIND_COUNTER ? figures->field : 0;
    RMM_EACH_STAT(X)
#undef X
    figures->current_count = 0;
    figures->largest_free_sum = 0;
}

bool figures_of_process(
    const process_t *process, uint32_t device, unsigned want, figures_t *out)
{
    bool found = false;
    memset(out, 0, sizeof(*out));
    for (uint32_t i = 0; i < process->member_count; i++) {
        member_t *member = process->members[i];
        figures_t part;
        uint32_t location;
        if (!member_location_on(member, device, &location) ||
            !figures_read_location(member, location, want, &part)) {
            continue;
        }
        if (!member_counts(member)) {
            uint64_t lifetime = part.lifetime_peak_bytes;
            leave_counters(&part);
            part.lifetime_peak_bytes = lifetime;
        }
        figures_add(out, &part);
        found = true;
    }
    return found;
}

/* --- a device ----------------------------------------------------------------------- */

/* Each asked the driver at some time; who asked last is not known, so the least. */
static uint64_t least_known_free(uint64_t a, uint64_t b)
{
    if (b == 0) {
        return a;
    }
    return a == 0 || b < a ? b : a;
}

static void add_member(device_sum_t *sum, const figures_t *part)
{
    figures_add(&sum->figures, part);
    sum->figures.device_free_bytes =
        least_known_free(sum->figures.device_free_bytes, part->device_free_bytes);
    sum->largest_peak_bytes =
        figure_max(sum->largest_peak_bytes, part->node_peak_bytes);
    sum->largest_peak_count =
        figure_max(sum->largest_peak_count, part->node_peak_count);
    sum->largest_lifetime_bytes =
        figure_max(sum->largest_lifetime_bytes, part->lifetime_peak_bytes);
    sum->upper_bytes = figure_add(
        sum->upper_bytes, figure_max(part->node_peak_bytes, part->current_bytes));
    sum->member_count++;
}

static void
sum_process(const process_t *process, uint32_t device, unsigned want, device_sum_t *sum)
{
    for (uint32_t i = 0; i < process->member_count; i++) {
        member_t *member = process->members[i];
        figures_t part;
        uint32_t location;
        if (member->state == MEMBER_LIVE &&
            member_location_on(member, device, &location) &&
            figures_read_location(member, location, want, &part)) {
            add_member(sum, &part);
        }
    }
}

void figures_sum_device(
    const model_t *model, uint32_t device, unsigned want, device_sum_t *sum)
{
    memset(sum, 0, sizeof(*sum));
    for (uint32_t i = 0; i < model->process_count; i++) {
        sum_process(model->processes[i], device, want, sum);
    }
}

uint64_t figures_fragmentation(const figures_t *figures)
{
    uint64_t free_bytes = figures->free_bytes;
    uint64_t largest = figures->largest_free_sum;
    if (free_bytes == FIGURE_UNKNOWN || largest == FIGURE_UNKNOWN) {
        return FIGURE_UNKNOWN;
    }
    if (free_bytes == 0 || largest >= free_bytes) {
        return 0;
    }
    return (uint64_t)((1.0 - (double)largest / (double)free_bytes) * 1000.0 + 0.5);
}
