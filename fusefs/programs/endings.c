/* SPDX-License-Identifier: Apache-2.0 */
/* Ends of members; see endings.h. */
#include "programs/endings.h"

#include <stdio.h>

#include "model/locations.h"
#include "model/marks.h"
#include "programs/event_poll.h"
#include "segment/segment_shrink.h"
#include "segments/dirs.h"
#include "segments/exits.h"
#include "support/daemon_log.h"

void member_open_control(member_t *member)
{
    if (!member->has_control && member->dir != NULL) {
        member->has_control =
            rmm__control_open(&member->control, member->dir->fd, &member->segment) == 0;
        if (member->has_control) {
            rmm__control_forget(&member->control);
        }
    }
}

void member_take_small(member_t *member, rmm_segment_t *segment)
{
    if (member->has_control) {
        rmm__control_close(&member->control);
        member->has_control = false;
    }
    member->is_settled = true;
    rmm__segment_close(&member->segment);
    member->segment = *segment;
}

/* The file that has the name now: the space of the old one is free with its descriptor. */
static void follow_small(member_t *member)
{
    char reason[RMM_SEGMENT_REASON_BYTES];
    rmm_segment_t segment;
    if (member->dir == NULL ||
        rmm__segment_open(&segment, member->dir->fd, member->segment.name, reason) !=
            RMM_SEGMENT_GOOD) {
        return;
    }
    if (segment.inode == member->segment.inode) {
        rmm__segment_close(&segment);
        return;
    }
    member_take_small(member, &segment);
}

void member_become_unreadable(model_t *model, member_t *member)
{
    member->state = MEMBER_UNREADABLE;
    jobs_leave_ended(model, member->process);
    model->changes++;
    model->segments_rejected++;
    event_poll_refusal(
        model, member->segment.uid, member->process->name,
        "the file was truncated while in use");
    log_warn(
        "segment %s of process %s is ignored: the file was truncated while in use",
        member->segment.name, member->process->name);
}

void member_end(model_t *model, member_t *member)
{
    member->state = MEMBER_EXITED;
    jobs_leave_ended(model, member->process);
    member->exited_ns = model_clock_ns();
    model->changes++;
    identity_note_ended(&model->ended, &member->segment);
    totalled_t totalled = {.uid = member->segment.uid, .exited_ns = member->exited_ns};
    (void)snprintf(totalled.name, sizeof(totalled.name), "%s", member->segment.name);
    (void)snprintf(
        totalled.process, sizeof(totalled.process), "%s", member->process->name);
    if (!model_add_totalled(model, &totalled)) {
        log_warn(
            "out of memory: rmmfs may count segment %s twice after a restart",
            member->segment.name);
    }
    log_debug(
        "process %s: segment %s has ended", member->process->name,
        member->segment.name);
}

void member_add_totals(model_t *model, member_t *member)
{
    if (!member->has_control) {
        follow_small(member); /* it was gone with the old file when we looked for it */
    }
    (void)locations_find(model, member); /* its last */
    marks_add_totals(model, member);
    member_end(model, member);
    event_poll_exit(model, member);
    if (member->dir != NULL) {
        (void)rmm__segment_shrink(member->dir->fd, member->segment.name);
        follow_small(member);
    }
}

bool member_stop_watching(model_t *model, member_t *member)
{
    if (member == NULL || member->pidfd < 0) {
        return false;
    }
    exits_forget(model->exits, member->pidfd);
    member->pidfd = -1;
    return true;
}
