/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Marks and totals of devices; see marks.h.
 */
#include "model/marks.h"

#include <string.h>

#include "model/newer_stats.h"
#include "model/state.h"
#include "model/sums.h"

static uint64_t mark_value(const _Atomic(uint64_t) *mark)
{
    return atomic_load_explicit(mark, memory_order_relaxed);
}

/* True if it rose. Several readers may try at once. */
static bool mark_raise(_Atomic(uint64_t) *mark, uint64_t value)
{
    if (value == FIGURE_UNKNOWN) {
        return false;
    }
    uint64_t seen = mark_value(mark);
    while (value > seen) {
        if (atomic_compare_exchange_weak_explicit(
                mark, &seen, value, memory_order_relaxed, memory_order_relaxed)) {
            return true;
        }
    }
    return false;
}

static void mark_set(_Atomic(uint64_t) *mark, uint64_t value)
{
    atomic_store_explicit(
        mark, value == FIGURE_UNKNOWN ? 0 : value, memory_order_relaxed);
}

/* Others hold what the driver says is used, less what the programs have taken. */
static void see(device_t *device, const figures_t *sum)
{
    uint64_t capacity = device->gpu.capacity_bytes;
    history_see(&device->current_history, sum->current_bytes);
    history_see(&device->reserved_history, sum->reserved_bytes);
    if (capacity != 0 && sum->device_free_bytes != 0 &&
        sum->device_free_bytes < capacity && sum->reserved_bytes < capacity) {
        uint64_t taken = capacity - sum->device_free_bytes;
        history_see(
            &device->others_history,
            taken > sum->reserved_bytes ? taken - sum->reserved_bytes : 0);
    }
}

/* Raises the marks to the sum of this moment, whichever file shows it. True if one rose to a value
 * that no single segment could reproduce. */
static bool raise_to_current(device_t *device, const device_sum_t *sum)
{
    bool rose = mark_raise(&device->peak_bytes, sum->figures.current_bytes);
    rose = mark_raise(&device->peak_count, sum->figures.current_count) || rose;
    see(device, &sum->figures);
    return rose && sum->member_count > 1;
}

static void raise_to_marks(device_t *device, const device_sum_t *sum)
{
    (void)mark_raise(&device->peak_bytes, sum->largest_peak_bytes);
    (void)mark_raise(&device->peak_count, sum->largest_peak_count);
    (void)mark_raise(&device->peak_upper_bytes, sum->upper_bytes);
    (void)mark_raise(&device->peak_upper_bytes, mark_value(&device->peak_bytes));
    (void)mark_raise(&device->lifetime_peak_bytes, sum->largest_lifetime_bytes);
    (void)mark_raise(&device->lifetime_peak_bytes, mark_value(&device->peak_bytes));
}

static void show_marks(const device_t *device, figures_t *out)
{
    out->peak_bytes = mark_value(&device->peak_bytes);
    out->peak_count = mark_value(&device->peak_count);
    out->peak_upper_bytes = mark_value(&device->peak_upper_bytes);
    out->lifetime_peak_bytes = mark_value(&device->lifetime_peak_bytes);
    out->node_peak_bytes = out->peak_bytes;
    out->node_peak_count = out->peak_count;
}

static void add_exited(const device_t *device, figures_t *out)
{
#define X(field, kind, unit, help)                                                     \
    if (RMM_KIND_##kind == RMM_KIND_COUNTER) {                                         \
        out->field =                                                                   \
            figure_add_known(out->field, device->exited[RMM_LOCATION_STAT_##field]);   \
    }
    RMM_LOCATION_STATS(X)
#undef X
}

static void show_sum(const device_t *device, const device_sum_t *sum, figures_t *out)
{
    *out = sum->figures;
    add_exited(device, out);
    show_marks(device, out);
}

void marks_show_device(model_t *model, uint32_t index, unsigned want, figures_t *out)
{
    device_t *device = model_device(model, index);
    device_sum_t sum;
    sums_of_device(model, index, want, &sum);
    if ((want & FIGURES_MARKS) != 0) {
        raise_to_marks(device, &sum);
    }
    if (raise_to_current(device, &sum)) {
        state_want(model);
    }
    show_sum(device, &sum, out);
}

static void raise_shown(uint64_t *shown, uint64_t current)
{
    if (current != FIGURE_UNKNOWN && current > *shown) {
        *shown = current;
    }
}

void marks_show_parts(
    model_t *model, uint32_t index, const device_sum_t *sum, figures_t *out)
{
    device_t *device = model_device(model, index);
    raise_to_marks(device, sum);
    show_sum(device, sum, out);
    raise_shown(&out->peak_bytes, out->current_bytes);
    raise_shown(&out->peak_count, out->current_count);
    raise_shown(&out->peak_upper_bytes, out->current_bytes);
    raise_shown(&out->lifetime_peak_bytes, out->current_bytes);
    out->node_peak_bytes = out->peak_bytes;
    out->node_peak_count = out->peak_count;
}

/* --- all devices ---------------------------------------------------------------------- */

/* The sums of all devices, of one walk over the programs: 40 KiB. */
typedef struct look {
    device_sum_t gpus[GPUS_MAX], host;
    bool takes_counts; /* the thread is that of event_poll.c */
} look_t;

static device_sum_t *sum_in(look_t *look, uint32_t index)
{
    return index == DEVICE_HOST ? &look->host : &look->gpus[index];
}

static void take_counts(member_t *member, uint32_t at, const figures_t *figures)
{
    location_counts_t *counts = &member->counts[at];
    const location_counts_t now = {
        .oom = figure_add_known(0, figures->oom_count),
        .invalid_free = figure_add_known(0, figures->invalid_free_count),
        .limit = figure_add_known(0, figures->limit_count),
        .peak_bytes = figure_add_known(0, figures->peak_bytes),
        .reserved_bytes = figure_add_known(0, figures->reserved_bytes)};
    if (memcmp(counts, &now, sizeof(now)) != 0) {
        *counts = now;
        member->has_new_counts = true;
    }
}

static void look_at_member(model_t *model, member_t *member, look_t *look)
{
    for (uint32_t i = 0; i < member->location_count; i++) {
        const member_location_t *here = &member->locations[i];
        figures_t part;
        uint32_t first;
        if (model_device(model, here->device) == NULL ||
            !member_location_on(member, here->device, &first) ||
            first != here->location ||
            !figures_read_location(member, here->location, FIGURES_MARKS, &part)) {
            continue;
        }
        figures_add_to_device(sum_in(look, here->device), &part);
        jobs_look_add(member->process, &part, here->device == DEVICE_HOST);
        if (look->takes_counts) {
            take_counts(member, i, &part);
        }
    }
}

static void look_at_all(model_t *model, look_t *look)
{
    memset(look->gpus, 0, model->gpu_count * sizeof(look->gpus[0]));
    memset(&look->host, 0, sizeof(look->host));
    jobs_look_begin(model);
    for (uint32_t i = 0; i < model->member_count; i++) {
        if (model->members[i]->state == MEMBER_LIVE) {
            look_at_member(model, model->members[i], look);
        }
    }
    for (uint32_t i = 0; i < model->gpu_count; i++) {
        figures_end_device(&look->gpus[i]);
    }
    figures_end_device(&look->host);
    jobs_look_end(model);
}

static bool take_device(device_t *device, const device_sum_t *sum)
{
    raise_to_marks(device, sum);
    return raise_to_current(device, sum);
}

void marks_take(model_t *model)
{
    look_t look;
    look.takes_counts = true;
    look_at_all(model, &look);
    bool rose = take_device(&model->host, &look.host);
    for (uint32_t i = 0; i < model->gpu_count; i++) {
        rose = take_device(&model->gpus[i], &look.gpus[i]) || rose;
    }
    if (rose) {
        state_want(model);
    }
}

void marks_note_upper(model_t *model)
{
    look_t look;
    look.takes_counts = false;
    look_at_all(model, &look);
    (void)mark_raise(&model->host.peak_upper_bytes, look.host.upper_bytes);
    for (uint32_t i = 0; i < model->gpu_count; i++) {
        (void)mark_raise(&model->gpus[i].peak_upper_bytes, look.gpus[i].upper_bytes);
    }
}

/* --- ends and resets ------------------------------------------------------------------ */

static void
add_location_totals(model_t *model, member_t *member, member_location_t location)
{
    device_t *device = model_device(model, location.device);
    figures_t left;
    if (device == NULL ||
        !figures_read_location(member, location.location, FIGURES_MARKS, &left)) {
        return;
    }
#define X(field, kind, unit, help)                                                     \
    if (RMM_KIND_##kind == RMM_KIND_COUNTER) {                                         \
        uint64_t *total = &device->exited[RMM_LOCATION_STAT_##field];                  \
        *total = figure_add_known(*total, left.field);                                 \
    }
    RMM_LOCATION_STATS(X)
#undef X
    newer_add_totals(device, member, location.location);
    jobs_note_end(member->process, &left, location.device == DEVICE_HOST);
    (void)mark_raise(&device->peak_bytes, left.node_peak_bytes);
    (void)mark_raise(&device->peak_count, left.node_peak_count);
    (void)mark_raise(&device->lifetime_peak_bytes, left.lifetime_peak_bytes);
}

void marks_add_totals(model_t *model, member_t *member)
{
    for (uint32_t i = 0; i < member->location_count; i++) {
        add_location_totals(model, member, member->locations[i]);
    }
}

void marks_reset_device(model_t *model, uint32_t index)
{
    device_t *device = model_device(model, index);
    device_sum_t sum;
    figures_sum_device(model, index, FIGURES_MARKS, &sum);
    mark_set(&device->peak_bytes, sum.figures.current_bytes);
    mark_set(&device->peak_count, sum.figures.current_count);
    mark_set(&device->peak_upper_bytes, sum.figures.current_bytes);
}

void marks_reset_totals(model_t *model, uint32_t index)
{
    device_t *device = model_device(model, index);
    device_sum_t sum;
    figures_sum_device(model, index, FIGURES_MARKS, &sum);
    memset(device->exited, 0, sizeof(device->exited));
    device->newer.count = 0;
    device->event_changes++;
    model->event_changes++;
    mark_set(&device->lifetime_peak_bytes, sum.largest_lifetime_bytes);
    (void)mark_raise(&device->lifetime_peak_bytes, mark_value(&device->peak_bytes));
}

/* --- histories ------------------------------------------------------------------------ */

static void step_device(device_t *device)
{
    history_step(&device->current_history);
    history_step(&device->reserved_history);
    history_step(&device->others_history);
}

void marks_step_histories(model_t *model)
{
    for (uint32_t i = 0; i < model->gpu_count; i++) {
        step_device(&model->gpus[i]);
    }
    step_device(&model->host);
    for (uint32_t i = 0; i < model->jobs.count; i++) {
        history_step(&model->jobs.items[i]->history);
    }
}
