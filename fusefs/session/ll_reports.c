/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens of files that show a report of blocks (reports.h): they wait until the program has
 * made it, or was too long in making it, and then are opens like others, in their user's queue.
 */
#include "session/ll_session.h"

#include <errno.h>
#include <fcntl.h>

/* True: the open waits, or is answered. */
static bool wait_for_report(fuse_req_t req, node_t node, int flags)
{
    session_t *session = fuse_req_userdata(req);
    const report_open_t open = {node, fuse_req_ctx(req)->uid, flags};
    model_t *model = watch_begin_change(session->watch);
    int answer = reports_ask(&session->reports, model, &open, req);
    watch_end(session->watch);
    if (answer < 0) {
        fuse_reply_err(req, -answer);
    } else if (answer > 0) {
        waiters_wake(&session->waiters);
    }
    return answer != 0;
}

void ll_open_reporting(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    node_t node;
    if (node_from_inode(ino, &node) && reports_are_shown_in(node) &&
        (fi->flags & O_ACCMODE) != O_WRONLY && wait_for_report(req, node, fi->flags)) {
        return;
    }
    ll_open(req, ino, fi);
}

static void open_those_over(session_t *session)
{
    model_t *model = watch_begin_change(session->watch);
    report_wait_t *wait = reports_take_over(&session->reports, model);
    watch_end(session->watch);
    while (wait != NULL) {
        report_wait_t *next = wait->next;
        struct fuse_file_info fi = {.flags = wait->open.flags};
        ll_open(wait->request, node_to_inode(wait->open.node), &fi);
        report_wait_free(wait);
        wait = next;
    }
}

void look_at_reports(session_t *session)
{
    reports_t *reports = &session->reports;
    if (!reports_any(reports)) {
        return;
    }
    pthread_mutex_lock(&reports->answering);
    if (!reports->is_over) {
        open_those_over(session);
    }
    pthread_mutex_unlock(&reports->answering);
}

void end_reports(session_t *session)
{
    reports_t *reports = &session->reports;
    pthread_mutex_lock(&reports->answering);
    reports->is_over = true;
    model_t *model = watch_begin_change(session->watch);
    report_wait_t *wait = reports_take_all(reports, model);
    watch_end(session->watch);
    pthread_mutex_unlock(&reports->answering);
    while (wait != NULL) {
        report_wait_t *next = wait->next;
        fuse_reply_err(wait->request, ENODEV);
        report_wait_free(wait);
        wait = next;
    }
}
