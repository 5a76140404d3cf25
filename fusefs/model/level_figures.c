/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the figures of members; see level_figures.h. */
#include "model/level_figures.h"

#include <inttypes.h>
#include <string.h>

#include "model/allowances.h"
#include "support/daemon_log.h"

/* Logged at the first of a segment. */
static void mark_implausible(member_t *member, const figure_lie_t *lie)
{
    if (lie->name != NULL && !atomic_exchange_explicit(
                                 &member->is_implausible, true, memory_order_relaxed)) {
        log_warn(
            "segment %s of process %s reports an impossible %s of %" PRIu64
            ": left out of sums",
            member->segment.name,
            member->process != NULL ? member->process->name : "-1", lie->name,
            lie->value);
    }
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
    member_t *member = view->member;
    figure_lie_t lie = figures_of_slot(&member->segment, &view->record, out);
    rmm_control_slot_t request;

    mark_implausible(member, &lie);
    out->torn = view->torn;
    if ((want & FIGURES_MARKS) != 0 && member->has_control && !member->is_settled &&
        slot_request(view, &request)) {
        uint32_t seen = rmm__record_slot(&view->record)->peak_reset_seen;

        reset_pending(out, request.peak_reset != seen);
    }
}

/* --- a location --------------------------------------------------------------------- */

typedef struct location_filter {
    uint32_t location;
    figures_t *figures;
} location_filter_t;

static bool add_free_blocks_here(const slot_view_t *view, void *arg)
{
    const location_filter_t *filter = arg;
    figures_t resource;

    if (rmm__record_slot(&view->record)->location == filter->location) {
        figures_of_resource(view, 0, &resource);
        figures_add_free(filter->figures, &resource);
    }
    return true;
}

static void apply_location_requests(
    const member_t *member, uint32_t location, const rmm_record_t *record,
    figures_t *out)
{
    const rmm_segment_location_t *identity = rmm__record_location(record);
    rmm_control_t control = member->control;
    rmm_control_location_t request;

    if (member->is_settled) {
        return;
    }
    if (!member->has_control ||
        rmm__control_read_location(&control, location, &request) != 0) {
        reset_node_pending(out, true);
        return;
    }
    reset_pending(out, request.peak_reset != identity->peak_reset_seen);
    reset_node_pending(out, request.node_peak_reset != identity->node_peak_reset_seen);
}

/* allowance: of slots_each_within(). */
static bool read_location(
    member_t *member, uint32_t location, unsigned want, slot_allowance_t *allowance,
    figures_t *out)
{
    rmm_record_t record;
    figure_lie_t lie;

    if (member->state == MEMBER_UNREADABLE ||
        !rmm__segment_read_location(&member->segment, location, &record)) {
        return false;
    }
    lie = figures_of_location(&member->segment, &record, out);
    mark_implausible(member, &lie);
    if ((want & FIGURES_MARKS) != 0) {
        apply_location_requests(member, location, &record, out);
    }
    if ((want & FIGURES_FREE) != 0) {
        location_filter_t filter = {location, out};
        bool is_whole = slots_each_within(
            member, location, allowance, add_free_blocks_here, &filter);

        if (!is_whole && allowance != NULL) {
            figures_forget_free(out);
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

void figures_add_member(figures_t *sum, const member_t *member, const figures_t *part)
{
    figures_t left = *part;

    if (!member_counts(member)) {
        figures_leave_counters(&left);
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

        if (member_location_on(member, device, &location) &&
            read_location(member, location, want, &allowance, &part)) {
            figures_add_member(out, member, &part);
            found = true;
        }
    }
    return found;
}

/* --- a device ----------------------------------------------------------------------- */

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
