/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waiting trims; see trims.h.
 */
#include "trims.h"

#include <errno.h>
#include <stdlib.h>

#include "diag_mode.h"
#include "figures.h"
#include "slots.h"

void trims_init(trims_t *trims)
{
    pthread_mutex_init(&trims->lock, NULL);
    trims->first = NULL;
}

void trims_fini(trims_t *trims)
{
    pthread_mutex_destroy(&trims->lock);
}

trim_t *trim_new(budget_t *budget, uid_t uid, int *error_out)
{
    if (!budget_take(budget, uid, BUDGET_TRIMS, 1)) {
        *error_out = -EDQUOT;
        return NULL;
    }
    trim_t *trim = calloc(1, sizeof(*trim));
    if (trim == NULL) {
        budget_give(budget, uid, BUDGET_TRIMS, 1);
        *error_out = -ENOMEM;
        return NULL;
    }
    trim->budget = budget;
    trim->uid = uid;
    return trim;
}

void trim_free(trim_t *trim)
{
    budget_give(trim->budget, trim->uid, BUDGET_TRIMS, 1);
    free(trim);
}

/* --- asking --------------------------------------------------------------------------- */

/* What the program keeps of what it has reserved. */
static uint64_t kept_of(uint64_t reserved, uint64_t give)
{
    return reserved != FIGURE_UNKNOWN && give < reserved ? reserved - give : 0;
}

static int ask(member_t *member, uint32_t of, uint64_t keep_bytes, trim_t *trim)
{
    trim_target_t *target = &trim->targets[trim->target_count];
    if (member->state != MEMBER_LIVE) {
        return -ESRCH;
    }
    if (!member->has_control || trim->target_count == TRIM_TARGETS_MAX) {
        return -EOPNOTSUPP;
    }
    if (member->control.is_trimming) {
        return -EBUSY;
    }
    *target = (trim_target_t){.serial = member->serial};
    int error =
        rmm_control_begin_trim(&member->control, of, keep_bytes, &target->number);
    trim->target_count += error == 0;
    return error;
}

static int ask_resource(model_t *model, node_t node, uint64_t give, trim_t *trim)
{
    member_t *member = model_member(model, node.serial);
    slot_view_t view;
    figures_t figures;
    if (member == NULL || !slots_find_low(member, node.id, &view)) {
        return -ENOENT;
    }
    figures_of_resource(&view, 0, &figures);
    return ask(
        member, rmm_record_slot(&view.record)->instance_id,
        kept_of(figures.reserved_bytes, give), trim);
}

/* Each segment of the process by itself: together they may give back more than requested. */
static int ask_process(model_t *model, node_t node, uint64_t give, trim_t *trim)
{
    const process_t *process = model_process(model, node.serial);
    if (process == NULL) {
        return -ENOENT;
    }
    int error = process_is_live(process) ? -EOPNOTSUPP : -ESRCH;
    for (uint32_t i = 0; i < process->member_count; i++) {
        member_t *member = process->members[i];
        figures_t figures;
        uint32_t location;
        if (member->state != MEMBER_LIVE ||
            !member_location_on(member, node.id, &location) ||
            !figures_read_location(member, location, 0, &figures)) {
            continue;
        }
        error =
            ask(member, RMM_TRIM_LOCATION | location,
                kept_of(figures.reserved_bytes, give), trim);
        if (error != 0) {
            return error;
        }
    }
    return error;
}

static void end_request(model_t *model, trim_target_t *target, bool is_withdrawn)
{
    member_t *member = model_member(model, (uint32_t)target->serial);
    target->is_over = true;
    if (target->is_mode) {
        return; /* it stays wanted */
    }
    if (member != NULL && member->serial == target->serial && member->has_control) {
        (void)rmm_control_end_trim(&member->control, is_withdrawn);
    }
}

int trim_begin_mode(model_t *model, node_t node, uint32_t modes, trim_t *trim)
{
    trim_target_t *target = &trim->targets[0];
    *target = (trim_target_t){.is_mode = true};
    int error = diag_mode_ask(model, node, modes, &target->serial);
    trim->target_count = error == 0;
    trim->deadline_ns = model_clock_ns() + TRIM_WAIT_NS;
    return error;
}

int trim_begin(model_t *model, node_t node, uint64_t give_bytes, trim_t *trim)
{
    int error = node.dir == DIR_RESOURCE ? ask_resource(model, node, give_bytes, trim)
                                         : ask_process(model, node, give_bytes, trim);
    for (uint32_t i = 0; error != 0 && i < trim->target_count; i++) {
        end_request(model, &trim->targets[i], true);
    }
    trim->deadline_ns = model_clock_ns() + TRIM_WAIT_NS;
    return error;
}

/* --- waiting -------------------------------------------------------------------------- */

void trims_add(trims_t *trims, trim_t *trim)
{
    pthread_mutex_lock(&trims->lock);
    trim->next = trims->first;
    trims->first = trim;
    pthread_mutex_unlock(&trims->lock);
}

static bool is_obeyed(const member_t *member, const trim_target_t *target)
{
    uint32_t seen;
    return rmm_segment_trim_seen(&member->segment, &seen) && seen == target->number;
}

static void
look_at_mode(trim_t *trim, trim_target_t *target, const member_t *member, bool is_late)
{
    int error = diag_mode_answer(member);
    target->is_over = error != -EAGAIN || is_late;
    trim->error = target->is_over && error != -EAGAIN ? error : trim->error;
}

static void look_at(model_t *model, trim_t *trim, trim_target_t *target, bool is_late)
{
    const member_t *member = model_member(model, (uint32_t)target->serial);
    if (member == NULL || member->serial != target->serial ||
        member->state != MEMBER_LIVE) {
        trim->error = -ESRCH;
        end_request(model, target, true);
    } else if (target->is_mode) {
        look_at_mode(trim, target, member, is_late);
    } else if (is_obeyed(member, target)) {
        end_request(model, target, false);
    } else if (is_late) {
        trim->error = trim->error != 0 ? trim->error : -ETIMEDOUT;
        end_request(model, target, true);
    }
}

static bool is_over(model_t *model, trim_t *trim, uint64_t now_ns)
{
    bool over = true;
    for (uint32_t i = 0; i < trim->target_count; i++) {
        if (!trim->targets[i].is_over) {
            look_at(model, trim, &trim->targets[i], now_ns >= trim->deadline_ns);
        }
        over = over && trim->targets[i].is_over;
    }
    return over;
}

trim_t *trims_take_over(trims_t *trims, model_t *model)
{
    uint64_t now_ns = model_clock_ns();
    trim_t *taken = NULL;
    pthread_mutex_lock(&trims->lock);
    for (trim_t **link = &trims->first; *link != NULL;) {
        trim_t *trim = *link;
        if (is_over(model, trim, now_ns)) {
            *link = trim->next;
            trim->next = taken;
            taken = trim;
        } else {
            link = &trim->next;
        }
    }
    pthread_mutex_unlock(&trims->lock);
    return taken;
}

trim_t *trims_take_all(trims_t *trims, int error)
{
    pthread_mutex_lock(&trims->lock);
    trim_t *all = trims->first;
    trims->first = NULL;
    pthread_mutex_unlock(&trims->lock);
    for (trim_t *trim = all; trim != NULL; trim = trim->next) {
        trim->error = error;
    }
    return all;
}

bool trims_any(trims_t *trims)
{
    pthread_mutex_lock(&trims->lock);
    bool any = trims->first != NULL;
    pthread_mutex_unlock(&trims->lock);
    return any;
}
