/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and adds figures; see figures.h. */
#include "node/figures.h"

#include <assert.h>
#include <string.h>

#define COUNTER_MAX (UINT64_C(1) << 63)
#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

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

static_assert(LENGTH(sums) <= 32, "device_sum_t.known has a bit for each");

/* --- by name ------------------------------------------------------------------------------ */

#define NAMED(field) {#field, offsetof(figures_t, field)},
#define DERIVED NAMED(current_count) NAMED(cached_bytes)
#define X(field, kind, unit, help) NAMED(field)

const figure_name_t figures_of_locations[] = {
    RMM_LOCATION_STATS(X) RMM_SLOT_FREE_STATS(X) DERIVED{NULL, 0}};
const figure_name_t figures_of_resources[] = {RMM_SLOT_STATS(X) DERIVED{NULL, 0}};

#undef X

uint64_t *figure_at(figures_t *figures, size_t offset)
{
    return (uint64_t *)(void *)((char *)figures + offset);
}

uint64_t figure_value(const figures_t *figures, size_t offset)
{
    return *(const uint64_t *)(const void *)((const char *)figures + offset);
}

/* --- arithmetic --------------------------------------------------------------------------- */

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

uint64_t figure_subtract(uint64_t a, uint64_t b)
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

/* --- reading ------------------------------------------------------------------------------ */

bool figure_is_plausible(uint16_t kind, uint64_t value)
{
    return value < (kind == RMM_KIND_COUNTER ? COUNTER_MAX : FIGURE_GAUGE_MAX);
}

static void take_figure(
    figures_t *out, size_t offset, const rmm_stat_desc_t *stat, uint64_t value,
    figure_lie_t *lie)
{
    bool is_plausible = figure_is_plausible(stat->kind, value);

    *figure_at(out, offset) = is_plausible ? value : FIGURE_UNKNOWN;
    if (!is_plausible && lie->name == NULL) {
        *lie = (figure_lie_t){stat->name, value};
    }
}

/* Takes the driver's answer if it is not more than the capacity; 0: unknown. */
static void take_device_free(
    figures_t *out, const rmm_segment_location_t *location, figure_lie_t *lie)
{
    uint64_t most =
        location->capacity_bytes != 0 ? location->capacity_bytes : FIGURE_GAUGE_MAX;

    if (location->device_free_bytes <= most) {
        out->device_free_bytes = location->device_free_bytes;
    } else if (lie->name == NULL) {
        *lie = (figure_lie_t){"device_free_bytes", location->device_free_bytes};
    }
}

figure_lie_t figures_of_location(
    const rmm_segment_t *segment, const rmm_record_t *record, figures_t *out)
{
    figure_lie_t lie = {NULL, 0};
    uint64_t value;

    memset(out, 0, sizeof(*out));
    for (int i = 0; i < RMM_LOCATION_STAT_COUNT; i++) {
        if (rmm__segment_location_stat(
                segment, record, (rmm_location_stat_t)i, &value)) {
            take_figure(out, location_targets[i], &rmm__location_stats[i], value, &lie);
        } else {
            *figure_at(out, location_targets[i]) = FIGURE_UNKNOWN;
        }
    }
    out->current_count = figure_subtract(out->total_count, out->freed_count);
    take_device_free(out, rmm__record_location(record), &lie);
    derive_cached(out);
    return lie;
}

figure_lie_t figures_of_slot(
    const rmm_segment_t *segment, const rmm_record_t *record, figures_t *out)
{
    figure_lie_t lie = {NULL, 0};
    uint64_t value;

    memset(out, 0, sizeof(*out));
    for (int i = 0; i < RMM_SLOT_STAT_COUNT; i++) {
        if (rmm__segment_slot_stat(segment, record, (rmm_slot_stat_t)i, &value)) {
            take_figure(out, slot_targets[i], &rmm__slot_stats[i], value, &lie);
        } else {
            *figure_at(out, slot_targets[i]) = FIGURE_UNKNOWN;
        }
    }
    out->current_count = figure_subtract(out->total_count, out->freed_count);
    out->largest_free_sum = out->largest_free_bytes;
    derive_cached(out);
    return lie;
}

/* --- a program ---------------------------------------------------------------------------- */

void figures_add(figures_t *sum, const figures_t *part)
{
    for (size_t i = 0; i < LENGTH(sums); i++) {
        uint64_t *figure = figure_at(sum, sums[i]);

        *figure = figure_add(*figure, figure_value(part, sums[i]));
    }
    sum->largest_free_bytes =
        figure_max(sum->largest_free_bytes, part->largest_free_bytes);
    derive_cached(sum);
}

void figures_add_free(figures_t *location, const figures_t *resource)
{
    location->free_bytes = figure_add(location->free_bytes, resource->free_bytes);
    location->largest_free_sum =
        figure_add(location->largest_free_sum, resource->largest_free_bytes);
    location->largest_free_bytes =
        figure_max(location->largest_free_bytes, resource->largest_free_bytes);
}

void figures_forget_free(figures_t *figures)
{
    figures->free_bytes = FIGURE_UNKNOWN;
    figures->largest_free_bytes = FIGURE_UNKNOWN;
    figures->largest_free_sum = FIGURE_UNKNOWN;
}

void figures_forget_marks(figures_t *figures)
{
#define X(field, kind, unit, help)                                                     \
    figures->field = RMM_KIND_##kind == RMM_KIND_MARK ? FIGURE_UNKNOWN : figures->field;
    RMM_EACH_STAT(X)
#undef X
}

void figures_leave_counters(figures_t *figures)
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

/* --- a device ----------------------------------------------------------------------------- */

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

    for (uint32_t i = 0; i < LENGTH(sums); i++) {
        uint64_t *figure = figure_at(&sum->figures, sums[i]);
        uint64_t value = figure_value(part, sums[i]);
        bool is_known = value != FIGURE_UNKNOWN;

        *figure = figure_add_known(*figure, value);
        sum->known |= is_known ? 1u << i : 0;
        unknown |= is_known ? 0 : 1u << i;
    }
    sum->unknown |= unknown;
    sum->left_out += unknown != 0;
    sum->figures.cached_bytes =
        figure_add_known(sum->figures.cached_bytes, part->cached_bytes);
    sum->figures.largest_free_bytes =
        max_known(sum->figures.largest_free_bytes, part->largest_free_bytes);
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

void figures_end_device(device_sum_t *sum)
{
    figures_t *figures = &sum->figures;
    uint32_t nobody_knows = sum->unknown & ~sum->known;

    for (uint32_t i = 0; i < LENGTH(sums); i++) {
        if ((nobody_knows & 1u << i) != 0) {
            *figure_at(figures, sums[i]) = FIGURE_UNKNOWN;
        }
    }
    if (figures->free_bytes == FIGURE_UNKNOWN) {
        figures->largest_free_bytes = FIGURE_UNKNOWN;
    }
    if (figures->current_bytes == FIGURE_UNKNOWN ||
        figures->reserved_bytes == FIGURE_UNKNOWN ||
        figures->padding_bytes == FIGURE_UNKNOWN) {
        figures->cached_bytes = FIGURE_UNKNOWN;
    }
    figures->left_out = sum->left_out;
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
