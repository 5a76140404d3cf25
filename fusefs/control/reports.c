/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests for reports; see reports.h. What is under way is noted at the member that got
 * the request (model.h), so that all waiters for a process look there.
 */
#include "control/reports.h"

#include <errno.h>
#include <stdlib.h>

#include "segment/segment_blocks.h"

void reports_init(reports_t *reports)
{
    pthread_mutex_init(&reports->answering, NULL);
    pthread_mutex_init(&reports->lock, NULL);
    reports->is_over = false;
    reports->first = NULL;
}

void reports_fini(reports_t *reports)
{
    pthread_mutex_destroy(&reports->lock);
    pthread_mutex_destroy(&reports->answering);
}

bool reports_are_shown_in(node_t node)
{
    return tree_kind(node) == KIND_REPORT;
}

/* --- asking --------------------------------------------------------------------------- */

static const process_t *process_of(const model_t *model, node_t node)
{
    if (node.dir != DIR_RESOURCE) {
        return model_process(model, node.serial);
    }
    const member_t *member = model_member(model, node.serial);
    return member != NULL ? member->process : NULL;
}

static bool is_fresh(const member_report_t *report, uint64_t now_ns)
{
    return report->settled_ns != 0 && now_ns - report->settled_ns < REPORT_FRESH_NS;
}

static void settle(member_t *member, int result, uint64_t now_ns)
{
    member->report.is_pending = false;
    member->report.result = result;
    member->report.settled_ns = now_ns;
    if (member->has_control) {
        (void)rmm__control_end_report(&member->control, result == -ETIMEDOUT);
    }
}

static void ask(member_t *member, uint64_t now_ns)
{
    member_report_t *report = &member->report;
    if (report->is_pending || is_fresh(report, now_ns)) {
        return;
    }
    int error = !member->has_control
                    ? -EOPNOTSUPP
                    : rmm__control_begin_report(
                          &member->control, RMM_BLOCKS_ROWS_MAX, &report->number);
    if (error != 0) {
        settle(member, error, now_ns);
        return;
    }
    report->is_pending = true;
    report->deadline_ns = now_ns + REPORT_WAIT_NS;
}

static void look_at(member_t *member, uint64_t now_ns)
{
    member_report_t *report = &member->report;
    uint32_t seen;
    if (!report->is_pending) {
        return;
    }
    if (member->state != MEMBER_LIVE) {
        settle(member, -ESRCH, now_ns);
    } else if (
        rmm__segment_report_seen(&member->segment, &seen) && seen == report->number) {
        settle(member, 0, now_ns);
    } else if (now_ns >= report->deadline_ns) {
        settle(member, -ETIMEDOUT, now_ns);
    }
}

/* True: a request to one of its segments is under way. */
static bool is_pending(const process_t *process, uint64_t now_ns)
{
    bool pending = false;
    for (uint32_t i = 0; i < process->member_count; i++) {
        look_at(process->members[i], now_ns);
        pending = pending || process->members[i]->report.is_pending;
    }
    return pending;
}

/* True: the process takes a request now, or has one. */
static bool is_due(const process_t *process, uint64_t now_ns)
{
    for (uint32_t i = 0; i < process->member_count; i++) {
        const member_t *member = process->members[i];
        if (member->state == MEMBER_LIVE &&
            (member->report.is_pending || !is_fresh(&member->report, now_ns))) {
            return true;
        }
    }
    return false;
}

static bool may_ask(const model_t *model, const report_open_t *open)
{
    node_owner_t owner;
    return tree_owner(model, open->node, &owner) &&
           tree_may_read(open->node, &owner, open->uid);
}

/* --- waiting -------------------------------------------------------------------------- */

/* NULL: -EDQUOT, -ENOMEM. */
static report_wait_t *
make_wait(model_t *model, const report_open_t *open, int *error_out)
{
    *error_out = -EDQUOT;
    if (!budget_take(&model->budget, open->uid, BUDGET_REPORTS, 1)) {
        return NULL;
    }
    report_wait_t *wait = calloc(1, sizeof(*wait));
    if (wait == NULL) {
        budget_give(&model->budget, open->uid, BUDGET_REPORTS, 1);
        *error_out = -ENOMEM;
        return NULL;
    }
    wait->open = *open;
    wait->budget = &model->budget;
    return wait;
}

void report_wait_free(report_wait_t *wait)
{
    budget_give(wait->budget, wait->open.uid, BUDGET_REPORTS, 1);
    free(wait);
}

static void park(reports_t *reports, report_wait_t *wait)
{
    pthread_mutex_lock(&reports->lock);
    wait->next = reports->first;
    reports->first = wait;
    pthread_mutex_unlock(&reports->lock);
}

int reports_ask(
    reports_t *reports, model_t *model, const report_open_t *open, void *request)
{
    uint64_t now_ns = model_clock_ns();
    const process_t *process = process_of(model, open->node);
    int error;
    if (process == NULL || !may_ask(model, open) || !is_due(process, now_ns)) {
        return 0; /* if it may not be opened the open will say why */
    }
    report_wait_t *wait = make_wait(model, open, &error);
    if (wait == NULL) {
        return error;
    }
    for (uint32_t i = 0; i < process->member_count; i++) {
        if (process->members[i]->state == MEMBER_LIVE) {
            ask(process->members[i], now_ns);
        }
    }
    if (!is_pending(process, now_ns)) {
        report_wait_free(wait);
        return 0;
    }
    wait->request = request;
    wait->serial = process->serial;
    park(reports, wait);
    return 1;
}

report_wait_t *reports_take_over(reports_t *reports, model_t *model)
{
    uint64_t now_ns = model_clock_ns();
    report_wait_t *taken = NULL;
    pthread_mutex_lock(&reports->lock);
    for (report_wait_t **link = &reports->first; *link != NULL;) {
        report_wait_t *wait = *link;
        const process_t *process = model_process(model, (uint32_t)wait->serial);
        if (process == NULL || process->serial != wait->serial ||
            !is_pending(process, now_ns)) {
            *link = wait->next;
            wait->next = taken;
            taken = wait;
        } else {
            link = &wait->next;
        }
    }
    pthread_mutex_unlock(&reports->lock);
    return taken;
}

report_wait_t *reports_take_all(reports_t *reports, model_t *model)
{
    for (uint32_t i = 0; i < model->member_count; i++) {
        if (model->members[i]->report.is_pending) {
            settle(model->members[i], -ETIMEDOUT, model_clock_ns());
        }
    }
    pthread_mutex_lock(&reports->lock);
    report_wait_t *all = reports->first;
    reports->first = NULL;
    pthread_mutex_unlock(&reports->lock);
    return all;
}

bool reports_any(reports_t *reports)
{
    pthread_mutex_lock(&reports->lock);
    bool any = reports->first != NULL;
    pthread_mutex_unlock(&reports->lock);
    return any;
}
