/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waiting writes; see waiting_writes.h.
 */
#include "control/waiting_writes.h"

#include <errno.h>
#include <stdlib.h>

#include "control/diag_mode.h"
#include "model/level_figures.h"
#include "model/slots.h"

void waiting_writes_init(waiting_writes_t *writes)
{
    pthread_mutex_init(&writes->lock, NULL);
    writes->first = NULL;
}

void waiting_writes_fini(waiting_writes_t *writes)
{
    pthread_mutex_destroy(&writes->lock);
}

waiting_write_t *waiting_write_new(budget_t *budget, uid_t uid, int *error_out)
{
    if (!budget_take(budget, uid, BUDGET_TRIMS, 1)) {
        *error_out = -EDQUOT;
        return NULL;
    }
    waiting_write_t *wait = calloc(1, sizeof(*wait));
    if (wait == NULL) {
        budget_give(budget, uid, BUDGET_TRIMS, 1);
        *error_out = -ENOMEM;
        return NULL;
    }
    wait->budget = budget;
    wait->uid = uid;
    return wait;
}

void waiting_write_free(waiting_write_t *wait)
{
    budget_give(wait->budget, wait->uid, BUDGET_TRIMS, 1);
    free(wait);
}

/* --- asking --------------------------------------------------------------------------- */

/* The program keeps so much of what it has reserved. */
static uint64_t kept_of(uint64_t reserved, uint64_t give)
{
    return reserved != FIGURE_UNKNOWN && give < reserved ? reserved - give : 0;
}

static int
ask(member_t *member, uint32_t of, uint64_t keep_bytes, waiting_write_t *wait)
{
    write_target_t *target = &wait->targets[wait->target_count];
    if (member->state != MEMBER_LIVE) {
        return -ESRCH;
    }
    if (!member->has_control || wait->target_count == WRITE_TARGETS_MAX) {
        return -EOPNOTSUPP;
    }
    if (member->control.is_trimming) {
        return -EBUSY;
    }
    *target = (write_target_t){.serial = member->serial};
    int error =
        rmm__control_begin_trim(&member->control, of, keep_bytes, &target->number);
    wait->target_count += error == 0;
    return error;
}

static int
ask_resource(model_t *model, node_t node, uint64_t give, waiting_write_t *wait)
{
    member_t *member = model_member(model, node.serial);
    slot_view_t view;
    figures_t figures;
    if (member == NULL || !slots_find_low(member, node.id, &view)) {
        return -ENOENT;
    }
    figures_of_resource(&view, 0, &figures);
    return ask(
        member, rmm__record_slot(&view.record)->instance_id,
        kept_of(figures.reserved_bytes, give), wait);
}

/* Each segment of the process by itself: together they may give back more than requested. */
static int
ask_process(model_t *model, node_t node, uint64_t give, waiting_write_t *wait)
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
                kept_of(figures.reserved_bytes, give), wait);
        if (error != 0) {
            return error;
        }
    }
    return error;
}

static void end_request(model_t *model, write_target_t *target, bool is_withdrawn)
{
    member_t *member = model_member(model, (uint32_t)target->serial);
    target->is_over = true;
    if (target->is_mode) {
        return; /* it stays wanted */
    }
    if (member != NULL && member->serial == target->serial && member->has_control) {
        (void)rmm__control_end_trim(&member->control, is_withdrawn);
    }
}

int waiting_write_begin_mode(
    model_t *model, node_t node, uint32_t modes, waiting_write_t *wait)
{
    write_target_t *target = &wait->targets[0];
    *target = (write_target_t){.is_mode = true};
    int error = diag_mode_ask(model, node, modes, &target->serial);
    wait->target_count = error == 0;
    wait->deadline_ns = model_clock_ns() + WRITE_WAIT_NS;
    return error;
}

int waiting_write_begin_trim(
    model_t *model, node_t node, uint64_t give_bytes, waiting_write_t *wait)
{
    int error = node.dir == DIR_RESOURCE ? ask_resource(model, node, give_bytes, wait)
                                         : ask_process(model, node, give_bytes, wait);
    for (uint32_t i = 0; error != 0 && i < wait->target_count; i++) {
        end_request(model, &wait->targets[i], true);
    }
    wait->deadline_ns = model_clock_ns() + WRITE_WAIT_NS;
    return error;
}

/* --- waiting -------------------------------------------------------------------------- */

void waiting_writes_add(waiting_writes_t *writes, waiting_write_t *wait)
{
    pthread_mutex_lock(&writes->lock);
    wait->next = writes->first;
    writes->first = wait;
    pthread_mutex_unlock(&writes->lock);
}

static bool is_obeyed(const member_t *member, const write_target_t *target)
{
    uint32_t seen;
    return rmm__segment_trim_seen(&member->segment, &seen) && seen == target->number;
}

static void look_at_mode(
    waiting_write_t *wait, write_target_t *target, const member_t *member, bool is_late)
{
    int error = diag_mode_answer(member);
    target->is_over = error != -EAGAIN || is_late;
    wait->error = target->is_over && error != -EAGAIN ? error : wait->error;
}

static void
look_at(model_t *model, waiting_write_t *wait, write_target_t *target, bool is_late)
{
    const member_t *member = model_member(model, (uint32_t)target->serial);
    if (member == NULL || member->serial != target->serial ||
        member->state != MEMBER_LIVE) {
        wait->error = -ESRCH;
        end_request(model, target, true);
    } else if (target->is_mode) {
        look_at_mode(wait, target, member, is_late);
    } else if (is_obeyed(member, target)) {
        end_request(model, target, false);
    } else if (is_late) {
        wait->error = wait->error != 0 ? wait->error : -ETIMEDOUT;
        end_request(model, target, true);
    }
}

static bool is_over(model_t *model, waiting_write_t *wait, uint64_t now_ns)
{
    bool over = true;
    for (uint32_t i = 0; i < wait->target_count; i++) {
        if (!wait->targets[i].is_over) {
            look_at(model, wait, &wait->targets[i], now_ns >= wait->deadline_ns);
        }
        over = over && wait->targets[i].is_over;
    }
    return over;
}

waiting_write_t *waiting_writes_take_over(waiting_writes_t *writes, model_t *model)
{
    uint64_t now_ns = model_clock_ns();
    waiting_write_t *taken = NULL;
    pthread_mutex_lock(&writes->lock);
    for (waiting_write_t **link = &writes->first; *link != NULL;) {
        waiting_write_t *wait = *link;
        if (is_over(model, wait, now_ns)) {
            *link = wait->next;
            wait->next = taken;
            taken = wait;
        } else {
            link = &wait->next;
        }
    }
    pthread_mutex_unlock(&writes->lock);
    return taken;
}

waiting_write_t *waiting_writes_take_all(waiting_writes_t *writes, int error)
{
    pthread_mutex_lock(&writes->lock);
    waiting_write_t *all = writes->first;
    writes->first = NULL;
    pthread_mutex_unlock(&writes->lock);
    for (waiting_write_t *wait = all; wait != NULL; wait = wait->next) {
        wait->error = error;
    }
    return all;
}

bool waiting_writes_any(waiting_writes_t *writes)
{
    pthread_mutex_lock(&writes->lock);
    bool any = writes->first != NULL;
    pthread_mutex_unlock(&writes->lock);
    return any;
}
