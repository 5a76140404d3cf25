/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks at what diagnoses found; see found.h.
 */
#include "programs/found.h"

#include <stdio.h>
#include <string.h>

#include "diag/diag_names.h"
#include "model/level_figures.h"
#include "model/node_events.h"
#include "segments/dirs.h"

#define FIRST_RETRY_NS UINT64_C(100000000)
#define LAST_RETRY_NS UINT64_C(4000000000)
#define PART_OF_DESCRIPTORS 8u

/* --- the file ------------------------------------------------------------------------- */

bool member_open_diag(const member_t *member, rmm_diag_file_t *file)
{
    return member->dir != NULL &&
           rmm__diag_open(
               file, member->dir->fd, member->segment.name, member->segment.uid) == 0;
}

static void try_open(model_t *model, member_t *member, uint64_t now_ns)
{
    member_found_t *found = &member->found;
    found->retry_ns = found->retry_ns == 0 ? FIRST_RETRY_NS : 2 * found->retry_ns;
    found->retry_ns = found->retry_ns < LAST_RETRY_NS ? found->retry_ns : LAST_RETRY_NS;
    found->next_try_ns = now_ns + found->retry_ns;
    if (model->found_open >= model->descriptor_limit / PART_OF_DESCRIPTORS) {
        return;
    }
    found->is_open = member_open_diag(member, &found->file);
    model->found_open += found->is_open;
}

/* --- what is in it -------------------------------------------------------------------- */

void found_each(const rmm_diag_file_t *file, rmm_diag_finding_fn visit, void *arg)
{
    rmm_diag_file_t some = *file; /* its header is as old as the open */
    if (some.header.findings.count > FOUND_ENTRIES) {
        some.header.findings.count = FOUND_ENTRIES;
    }
    atomic_store_explicit(
        &some.header.findings.used, FOUND_ENTRIES, memory_order_relaxed);
    (void)rmm__diag_each_finding(&some, visit, arg);
}

typedef struct classes {
    uint64_t counts[FOUND_CLASSES];
} classes_t;

static bool add_entry(const rmm_diag_finding_info_t *finding, void *arg)
{
    classes_t *classes = arg;
    uint32_t class = finding->kind < FOUND_CLASSES ? finding->kind : 0;
    if (figure_is_plausible(RMM_KIND_COUNTER, finding->count)) {
        classes->counts[class] = figure_add(classes->counts[class], finding->count);
    }
    return true;
}

static void read_classes(const rmm_diag_file_t *file, classes_t *classes)
{
    *classes = (classes_t){.counts = {0}};
    found_each(file, add_entry, classes);
}

static void note(model_t *model, const member_t *member, uint32_t class, uint64_t count)
{
    node_event_t event;
    if (count > 0) {
        const process_t *process = member->process;
        node_event_init(
            &event, EVENT_FINDING, process->uid, process->pid, process->name);
        event.count = count;
        (void)snprintf(
            event.text, sizeof(event.text), "%s", rmm__diag_finding_name(class));
        node_events_note(model->events, &event);
    }
}

/* True: the number of findings is another, and may be true. */
static bool has_risen(member_found_t *found, uint64_t *total_out)
{
    bool is_read = rmm__diag_read_findings_total(&found->file, total_out) &&
                   figure_is_plausible(RMM_KIND_COUNTER, *total_out);
    if (is_read && *total_out < found->total) {
        found->total = *total_out; /* it cannot fall: begin anew */
        return false;
    }
    return is_read && *total_out > found->total;
}

static void tell_risen(model_t *model, member_t *member, uint64_t total)
{
    member_found_t *found = &member->found;
    uint64_t noted = 0, risen = total - found->total;
    classes_t now;
    read_classes(&found->file, &now);
    for (uint32_t i = 1; i < FOUND_CLASSES; i++) {
        uint64_t more =
            now.counts[i] > found->counts[i] ? now.counts[i] - found->counts[i] : 0;
        found->counts[i] = now.counts[i];
        note(model, member, i, more);
        noted = figure_add(noted, more);
    }
    note(model, member, 0, risen > noted ? risen - noted : 0);
    /* Those that came after the total was read are reported already. */
    found->total += risen > noted ? risen : noted;
}

/* --- looking -------------------------------------------------------------------------- */

void found_begin_piece(model_t *model)
{
    model->found_left = FOUND_READ;
}

static void look(model_t *model, member_t *member)
{
    uint64_t total;
    if (member->found.is_open && has_risen(&member->found, &total) &&
        model->found_left > 0) {
        model->found_left--;
        tell_risen(model, member, total);
    }
}

void found_look(model_t *model, member_t *member)
{
    uint64_t now_ns = rmm__clock_ns(CLOCK_MONOTONIC);
    if (!member->found.is_open && now_ns >= member->found.next_try_ns) {
        try_open(model, member, now_ns);
    }
    look(model, member);
}

void found_look_last(model_t *model, member_t *member)
{
    if (!member->found.is_open) {
        try_open(model, member, 0);
    }
    found_begin_piece(model);
    look(model, member);
    model_close_found(model, member);
}

void found_pass_over(model_t *model, member_t *member)
{
    classes_t now;
    uint64_t total;
    try_open(model, member, rmm__clock_ns(CLOCK_MONOTONIC));
    if (member->found.is_open && has_risen(&member->found, &total)) {
        read_classes(&member->found.file, &now);
        memcpy(member->found.counts, now.counts, sizeof(now.counts));
        member->found.total = total;
    }
}
