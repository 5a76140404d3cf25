/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of devices, of a process on a device, and of resources: each figure by itself, all of them
 * in `stat`, and what identifies a device or a resource.
 */
#include <inttypes.h>

#include "control/control.h"
#include "model/newer_stats.h"
#include "render/parts.h"
#include "render/printers.h"

/* --- what it is ----------------------------------------------------------------------- */

void print_uuid(const subject_t *subject, text_t *text)
{
    render_string(text, subject->device->gpu.uuid);
}

void print_pci_bus_id(const subject_t *subject, text_t *text)
{
    render_string(text, subject->device->gpu.pci_bus_id);
}

void print_name(const subject_t *subject, text_t *text)
{
    render_string(text, subject->device->gpu.name);
}

static uint64_t known(uint64_t figure)
{
    return figure != 0 ? figure : FIGURE_UNKNOWN;
}

void print_capacity_bytes(const subject_t *subject, text_t *text)
{
    render_value(text, known(subject->device->gpu.capacity_bytes));
}

void print_device_processes(const subject_t *subject, text_t *text)
{
    const model_t *model = subject->model;
    text_puts(text, "#pid uid state current_bytes peak_bytes reserved_bytes comm\n");
    for (uint32_t i = 0; i < model->process_count; i++) {
        const process_t *process = model->processes[i];
        figures_t figures;
        if (!process_is_live(process) ||
            !is_shown_to(&model->hiding, process->uid, text) ||
            !figures_of_process(process, subject->node.id, FIGURES_MARKS, &figures)) {
            continue;
        }
        text_printf(
            text, "%s %u %s ", process->name, (unsigned)process->uid,
            process_state(process));
        render_column(text, figures.current_bytes);
        render_column(text, figures.peak_bytes);
        render_column(text, figures.reserved_bytes);
        render_string(text, process_readable_member(process)->segment.header.comm);
    }
}

void print_type(const subject_t *subject, text_t *text)
{
    render_string(text, rmm__record_slot(&subject->slot.record)->type);
}

void print_resource_state(const subject_t *subject, text_t *text)
{
    const figures_t *figures = &subject->figures;

    render_string(
        text, figures->sleep_count > figures->wake_count ? "asleep" : "awake");
}

/* --- figures -------------------------------------------------------------------------- */

#define X(field, kind, unit, help)                                                     \
    void print_##field(const subject_t *subject, text_t *text)                         \
    {                                                                                  \
        render_value(text, subject->figures.field);                                    \
    }
RMM_EACH_STAT(X)
#undef X

void print_current_count(const subject_t *subject, text_t *text)
{
    render_value(text, subject->figures.current_count);
}

void print_cached_bytes(const subject_t *subject, text_t *text)
{
    render_value(text, subject->figures.cached_bytes);
}

void print_peak_upper_bytes(const subject_t *subject, text_t *text)
{
    render_value(text, subject->figures.peak_upper_bytes);
}

void print_fragmentation(const subject_t *subject, text_t *text)
{
    render_fragmentation(text, &subject->figures);
}

void print_device_free_bytes(const subject_t *subject, text_t *text)
{
    render_value(text, known(subject->figures.device_free_bytes));
}

void print_events(const subject_t *subject, text_t *text)
{
    render_key(text, "oom", subject->figures.oom_count);
    render_key(text, "invalid_free", subject->figures.invalid_free_count);
    render_key(text, "limit", subject->figures.limit_count);
}

/* --- stat ----------------------------------------------------------------------------- */

/* Derived figures; those of the records come from the list of statistics itself. */
static void append_derived(text_t *text, const figures_t *figures)
{
    render_key(text, "current_count", figures->current_count);
    render_key(text, "cached_bytes", figures->cached_bytes);
    text_puts(text, "fragmentation ");
    render_fragmentation(text, figures);
}

static void append_newer(text_t *text, const newer_list_t *newer)
{
    for (uint32_t i = 0; i < newer->count; i++) {
        render_key(text, newer->items[i].name, newer->items[i].value);
    }
}

static void
put_location_stat(text_t *text, const figures_t *figures, const newer_list_t *newer)
{
#define X(field, kind, unit, help) render_key(text, #field, figures->field);
    RMM_LOCATION_STATS(X)
    RMM_SLOT_FREE_STATS(X)
#undef X
    append_derived(text, figures);
    append_newer(text, newer);
}

void print_resource_stat(const subject_t *subject, text_t *text)
{
    const figures_t *figures = &subject->figures;
    newer_list_t newer;
    newer_of_resource(&subject->slot, &newer);
#define X(field, kind, unit, help) render_key(text, #field, figures->field);
    RMM_SLOT_STATS(X)
#undef X
    append_derived(text, figures);
    render_key(text, "torn", figures->torn ? 1 : 0);
    append_newer(text, &newer);
}

void print_device_stat(const subject_t *subject, text_t *text)
{
    const figures_t *figures = &subject->figures;
    newer_list_t newer;
    newer_of_device(subject->model, subject->node.id, &newer);
    put_location_stat(text, figures, &newer);
    render_key(text, "peak_upper_bytes", figures->peak_upper_bytes);
    render_key(text, "processes_left_out", figures->left_out);
}

void print_location_stat(const subject_t *subject, text_t *text)
{
    newer_list_t newer;
    newer_of_process(subject->process, subject->node.id, &newer);
    put_location_stat(text, &subject->figures, &newer);
}

/* --- requests ------------------------------------------------------------------------- */

static void put_limit(text_t *text, uint64_t limit_bytes)
{
    if (limit_bytes == RMM_SEGMENT_NO_LIMIT) {
        text_puts(text, "max\n");
    } else {
        render_value(text, limit_bytes);
    }
}

void print_limit_bytes(const subject_t *subject, text_t *text)
{
    put_limit(text, control_process_limit(subject->process, subject->node.id));
}

void print_resource_limit_bytes(const subject_t *subject, text_t *text)
{
    put_limit(text, control_resource_limit(&subject->slot));
}

/* How many trims the program has made. */
void print_trim(const subject_t *subject, text_t *text)
{
    const process_t *process = subject->process;
    uint64_t made = FIGURE_UNKNOWN;
    for (uint32_t i = 0; i < process->member_count; i++) {
        const member_t *member = process->members[i];
        uint32_t seen;
        if (member->state != MEMBER_UNREADABLE &&
            rmm__segment_trim_seen(&member->segment, &seen)) {
            made = made == FIGURE_UNKNOWN ? seen : figure_add(made, seen);
        }
    }
    render_value(text, made);
}

void print_resource_trim(const subject_t *subject, text_t *text)
{
    print_trim(subject, text);
}
