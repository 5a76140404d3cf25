/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of a member; see members.h.
 */
#include "programs/members.h"

#include "model/locations.h"
#include "model/marks.h"
#include "programs/endings.h"
#include "segments/exits.h"

#define CHECKED_AT_ONCE                                                                \
    (EXITS_AT_ONCE > MEMBERS_AT_ONCE ? EXITS_AT_ONCE : MEMBERS_AT_ONCE)
#define EXPIRED_AT_ONCE 8u /* each closes files, the last of a removed one: 15 us */

/* --- living --------------------------------------------------------------------------- */

static bool uses_no_gpu(const member_t *member)
{
    for (uint32_t i = 0; i < member->location_count; i++) {
        if (member->locations[i].device != DEVICE_HOST) {
            return false;
        }
    }
    return member->state == MEMBER_LIVE;
}

/* Notices the locations that a live member has opened since. */
static void look_at_live(model_t *model, member_t *member)
{
    if (member->state == MEMBER_LIVE) {
        member_open_control(member);
        if (!locations_find(model, member)) {
            member_become_unreadable(model, member);
        }
    }
}

/* Those of a list that are over; `over` has room for all. */
static uint32_t
look_at_all(model_t *model, member_t **members, uint32_t count, member_t **over)
{
    uint32_t over_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (members[i]->state == MEMBER_EXITED) {
            continue;
        }
        if (rmm__segment_is_live(&members[i]->segment)) {
            look_at_live(model, members[i]);
        } else {
            over[over_count++] = members[i];
        }
    }
    return over_count;
}

/* The sums of those that ran together, some of which have ended. Each may have opened a
 * location since it was looked at. */
static void note_sums(model_t *model)
{
    for (uint32_t i = 0; i < model->member_count; i++) {
        if (model->members[i]->state == MEMBER_LIVE) {
            (void)locations_find(model, model->members[i]);
        }
    }
    marks_note_upper(model);
}

static void leave(model_t *model, member_t **over, uint32_t count)
{
    if (count > 0) {
        note_sums(model);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (over[i]->state == MEMBER_LIVE) {
            /* without its file a daemon that is killed would not find it again */
            model->is_urgent = model->is_urgent || over[i]->entry == NULL;
            member_add_totals(model, over[i]);
            model->is_unsaved = true;
        } else {
            model_remove_member(model, over[i]);
        }
    }
}

/* At most CHECKED_AT_ONCE. */
static void check(model_t *model, member_t **members, uint32_t count)
{
    member_t *over[CHECKED_AT_ONCE];
    uint32_t gpus_before = model->gpu_count;
    leave(model, over, look_at_all(model, members, count, over));
    if (model->gpu_count != gpus_before) { /* their order is in no segment */
        model->is_unsaved = model->is_urgent = true;
    }
}

/* The newest first: what has just begun opens its first GPU soon. A walk over all members is
 * made only after one came, went or opened a location. */
static void note_without_gpu(model_t *model)
{
    uint32_t count = 0;
    if (model->without_gpu_at == model->changes) {
        return;
    }
    for (uint32_t i = model->member_count; i > 0 && count < MEMBERS_AT_ONCE; i--) {
        if (uses_no_gpu(model->members[i - 1])) {
            model->without_gpu[count++] = model->members[i - 1]->serial;
        }
    }
    model->without_gpu_count = count;
    model->without_gpu_at = model->changes;
}

static void check_without_gpu(model_t *model)
{
    member_t *some[MEMBERS_AT_ONCE];
    uint32_t count = 0;
    note_without_gpu(model);
    for (uint32_t i = 0; i < model->without_gpu_count; i++) {
        member_t *member = model_member(model, (uint32_t)model->without_gpu[i]);
        if (member != NULL) {
            some[count++] = member;
        }
    }
    check(model, some, count);
}

void members_check_some(model_t *model)
{
    member_t *some[MEMBERS_AT_ONCE];
    uint32_t count = 0;
    check_without_gpu(model);
    for (; count < MEMBERS_AT_ONCE && count < model->member_count; count++) {
        model->next_checked = (model->next_checked + 1) % model->member_count;
        some[count] = model->members[model->next_checked];
    }
    check(model, some, count);
}

bool members_note_without_gpu(model_t *model)
{
    note_without_gpu(model);
    return model->without_gpu_count > 0;
}

bool members_without_gpu_opened_one(const model_t *model)
{
    for (uint32_t i = 0; i < model->without_gpu_count; i++) {
        const member_t *member = model_member(model, (uint32_t)model->without_gpu[i]);
        uint32_t opened;
        if (member != NULL && member->state == MEMBER_LIVE &&
            (!rmm__segment_locations_opened(&member->segment, &opened) ||
             opened != member->locations_opened)) {
            return true;
        }
    }
    return false;
}

/* --- ended processes ------------------------------------------------------------------ */

void members_take_exits(model_t *model, members_again_fn again, void *arg)
{
    uint64_t serials[EXITS_AT_ONCE];
    member_t *ended[EXITS_AT_ONCE];
    uint32_t ended_count = 0;
    int count = exits_take(model->exits, serials);
    for (int i = 0; i < count; i++) {
        member_t *member = model_member(model, (uint32_t)serials[i]);
        if (member_stop_watching(model, member)) {
            serials[ended_count] = serials[i];
            ended[ended_count++] = member;
        }
    }
    check(model, ended, ended_count);
    for (uint32_t i = 0; i < ended_count; i++) {
        const member_t *member = model_member(model, (uint32_t)serials[i]);
        if (member != NULL && member->entry != NULL && member->state == MEMBER_LIVE) {
            again(arg, member->entry); /* a child has the lock */
        }
    }
}

/* --- leaving -------------------------------------------------------------------------- */

bool members_expire(model_t *model)
{
    uint64_t now = model_clock_ns();
    uint32_t removed = 0;
    for (uint32_t i = model->member_count; i > 0; i--) {
        member_t *member = model->members[i - 1];
        if (member->state != MEMBER_EXITED || process_is_live(member->process) ||
            now - member->exited_ns < EXITED_SHOWN_NS) {
            continue;
        }
        if (removed++ == EXPIRED_AT_ONCE) {
            return true;
        }
        model_remove_member(model, member);
    }
    return false;
}
