/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads and adds figures; see figures.h. The counters of a record are independent: what
 * one formula takes from two of them is clamped at 0, never shown as a huge number.
 */
#include "figures.h"

#include <assert.h>
#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "allowances.h"
#include "log.h"

/* Bytes at one time: more than 57 bits of address space hold. What is added up for a
 * process's life may be more, but no pool hands out so much. */
#define GAUGE_MAX (UINT64_C(1) << 57)
#define COUNTER_MAX (UINT64_C(1) << 63)

/* Where each statistic of a record goes. */
static const size_t location_targets[RMM_LOCATION_STAT_COUNT] = {
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

uint64_t figure_add_known(uint64_t a, uint64_t b)
{
    if (b == FIGURE_UNKNOWN) {
        return a;
    }
    return a == FIGURE_UNKNOWN ? b : figure_add(a, b);
}

bool figure_is_plausible(uint16_t kind, uint64_t value)
{
    return value < (kind == RMM_KIND_COUNTER ? COUNTER_MAX : GAUGE_MAX);
}

/* Logged at the first of a segment. */
static void mark_implausible(member_t *member, const char *name, uint64_t value)
{
    if (!atomic_exchange_explicit(
            &member->is_implausible, true, memory_order_relaxed)) {
        log_warn(
            "segment %s of process %s reports an impossible %s of %" PRIu64
            ": left out of sums",
            member->segment.name,
            member->process != NULL ? member->process->name : "-1", name, value);
    }
}

/* A figure as it was read; unknown if it cannot be true. */
static uint64_t checked(member_t *member, const rmm_stat_desc_t *stat, uint64_t value)
{
    if (figure_is_plausible(stat->kind, value)) {
        return value;
    }
    mark_implausible(member, stat->name, value);
    return FIGURE_UNKNOWN;
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
        *figure_at(out, slot_targets[i]) =
            known ? checked(view->member, &rmm__slot_stats[i], value) : FIGURE_UNKNOWN;
    }
    out->current_count = figure_subtract(out->total_count, out->freed_count);
    out->largest_free_sum = out->largest_free_bytes;
    out->torn = view->torn;
    derive_cached(out);
    if ((want & FIGURES_MARKS) != 0 && view->member->has_control &&
        !view->member->is_settled) {
        rmm_control_slot_t request;
        bool told = slot_request(view, &request);
        uint32_t seen = rmm_record_slot(&view->record)->peak_reset_seen;
        reset_pending(out, told && request.peak_reset != seen);
    }
}

/* --- a location ------------------------------------------------------------------------ */

void figures_add_free(figures_t *location, const figures_t *resource)
{
    location->free_bytes = figure_add(location->free_bytes, resource->free_bytes);
    location->largest_free_sum =
        figure_add(location->largest_free_sum, resource->largest_free_bytes);
    location->largest_free_bytes =
        figure_max(location->largest_free_bytes, resource->largest_free_bytes);
}

typedef struct location_filter {
    uint32_t location;
    figures_t *figures;
} location_filter_t;

static bool add_free_blocks_here(const slot_view_t *view, void *arg)
{
    const location_filter_t *filter = arg;
    figures_t resource;
    if (rmm_record_slot(&view->record)->location == filter->location) {
        figures_of_resource(view, 0, &resource);
        figures_add_free(filter->figures, &resource);
    }
    return true;
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

static_assert(sizeof(sums) / sizeof(sums[0]) <= 32, "device_sum_t.known");

/* What the driver answered, which is not more than there is; 0: unknown. */
static uint64_t checked_free(member_t *member, const rmm_segment_location_t *location)
{
    uint64_t free_bytes = location->device_free_bytes;
    uint64_t most =
        location->capacity_bytes != 0 ? location->capacity_bytes : GAUGE_MAX;
    if (free_bytes > most) {
        mark_implausible(member, "device_free_bytes", free_bytes);
        return 0;
    }
    return free_bytes;
}

static void forget_free(figures_t *figures)
{
    figures->free_bytes = FIGURE_UNKNOWN;
    figures->largest_free_bytes = FIGURE_UNKNOWN;
    figures->largest_free_sum = FIGURE_UNKNOWN;
}

/* allowance: of slots_each_within(). */
static bool read_location(
    member_t *member, uint32_t location, unsigned want, slot_allowance_t *allowance,
    figures_t *out)
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
        *figure_at(out, location_targets[i]) =
            known ? checked(member, &rmm__location_stats[i], value) : FIGURE_UNKNOWN;
    }
    out->current_count = figure_subtract(out->total_count, out->freed_count);
    out->device_free_bytes = checked_free(member, rmm_record_location(&record));
    derive_cached(out);
    if ((want & FIGURES_MARKS) != 0) {
        apply_location_requests(member, location, &record, out);
    }
    if ((want & FIGURES_FREE) != 0) {
        location_filter_t filter = {location, out};
        bool is_whole = slots_each_within(
            member, location, allowance, add_free_blocks_here, &filter);
        if (!is_whole && allowance != NULL) {
            forget_free(out);
        }
    }
    return true;
}

bool figures_read_location(
    member_t *member, uint32_t location, unsigned want, figures_t *out)
{
    return read_location(member, location, want, NULL, out);
}

/* --- a process ---------------------------------------------------------------------- */

/* Gauges and marks leave with a segment that is over; its counters stay. */
static void leave_counters(figures_t *figures)
{
    uint64_t lifetime = figures->lifetime_peak_bytes;
#define X(field, kind, unit, help)                                                     \
    figures->field = RMM_KIND_##kind == RMM_KIND_COUNTER ? figures->field : 0;
    RMM_EACH_STAT(X)
#undef X
    figures->lifetime_peak_bytes = lifetime;
    figures->current_count = 0;
    figures->largest_free_sum = 0;
}

void figures_add_member(figures_t *sum, const member_t *member, const figures_t *part)
{
    figures_t left = *part;
    if (!member_counts(member)) {
        leave_counters(&left);
    }
    figures_add(sum, &left);
}

bool figures_of_process(
    const process_t *process, uint32_t device, unsigned want, figures_t *out)
{
    slot_allowance_t allowance = {
        .slots = FIGURES_OF_PROCESS_SLOTS, .retries = ALLOWANCES_RETRIES};
    bool found = false;
    memset(out, 0, sizeof(*out));
    for (uint32_t i = 0; i < process->member_count; i++) {
        member_t *member = process->members[i];
        figures_t part;
        uint32_t location;
        if (!member_location_on(member, device, &location) ||
            !read_location(member, location, want, &allowance, &part)) {
            continue;
        }
        figures_add_member(out, member, &part);
        found = true;
    }
    return found;
}

/* --- a device ----------------------------------------------------------------------- */

/* Each program queried the driver at some time; which did so last is not known, so the least. */
static uint64_t least_known_free(uint64_t a, uint64_t b)
{
    if (b == 0) {
        return a;
    }
    return a == 0 || b < a ? b : a;
}

static uint64_t max_known(uint64_t a, uint64_t b)
{
    return b != FIGURE_UNKNOWN && b > a ? b : a;
}

/* Each sum of what is known. */
static void add_known(device_sum_t *sum, const figures_t *part)
{
    uint32_t unknown = 0;
    for (uint32_t i = 0; i < sizeof(sums) / sizeof(sums[0]); i++) {
        uint64_t *figure = figure_at(&sum->figures, sums[i]);
        uint64_t value = figure_value(part, sums[i]);
        bool known = value != FIGURE_UNKNOWN;
        *figure = figure_add_known(*figure, value);
        sum->known |= known ? 1u << i : 0;
        unknown |= known ? 0 : 1u << i;
    }
    sum->unknown |= unknown;
    sum->left_out += unknown != 0;
    sum->figures.cached_bytes =
        figure_add_known(sum->figures.cached_bytes, part->cached_bytes);
    sum->figures.largest_free_bytes =
        max_known(sum->figures.largest_free_bytes, part->largest_free_bytes);
}

void figures_end_device(device_sum_t *sum)
{
    uint32_t nobody_knows = sum->unknown & ~sum->known;
    for (uint32_t i = 0; i < sizeof(sums) / sizeof(sums[0]); i++) {
        if ((nobody_knows & 1u << i) != 0) {
            *figure_at(&sum->figures, sums[i]) = FIGURE_UNKNOWN;
        }
    }
    if (sum->figures.free_bytes == FIGURE_UNKNOWN) {
        sum->figures.largest_free_bytes = FIGURE_UNKNOWN;
    }
    if (sum->figures.current_bytes == FIGURE_UNKNOWN ||
        sum->figures.reserved_bytes == FIGURE_UNKNOWN ||
        sum->figures.padding_bytes == FIGURE_UNKNOWN) {
        sum->figures.cached_bytes = FIGURE_UNKNOWN;
    }
    sum->figures.left_out = sum->left_out;
}

void figures_add_to_device(device_sum_t *sum, const figures_t *part)
{
    add_known(sum, part);
    sum->figures.device_free_bytes =
        least_known_free(sum->figures.device_free_bytes, part->device_free_bytes);
    sum->largest_peak_bytes = max_known(sum->largest_peak_bytes, part->node_peak_bytes);
    sum->largest_peak_count = max_known(sum->largest_peak_count, part->node_peak_count);
    sum->largest_lifetime_bytes =
        max_known(sum->largest_lifetime_bytes, part->lifetime_peak_bytes);
    sum->upper_bytes = figure_add_known(
        sum->upper_bytes, figure_max(part->node_peak_bytes, part->current_bytes));
    sum->member_count++;
}

static void sum_process(
    const process_t *process, uint32_t device, unsigned want, allowances_t *allowances,
    device_sum_t *sum)
{
    for (uint32_t i = 0; i < process->member_count; i++) {
        member_t *member = process->members[i];
        figures_t part;
        uint32_t location;
        if (member->state == MEMBER_LIVE &&
            member_location_on(member, device, &location) &&
            read_location(
                member, location, want, allowances_of(allowances, member->segment.uid),
                &part)) {
            figures_add_to_device(sum, &part);
        }
    }
}

void figures_sum_device(
    model_t *model, uint32_t device, unsigned want, device_sum_t *sum)
{
    allowances_t allowances;
    allowances_init(&allowances, &model->budget);
    memset(sum, 0, sizeof(*sum));
    for (uint32_t i = 0; i < model->process_count; i++) {
        sum_process(model->processes[i], device, want, &allowances, sum);
    }
    allowances_tell(&allowances);
    figures_end_device(sum);
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
