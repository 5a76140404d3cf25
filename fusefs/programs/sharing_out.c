/* SPDX-License-Identifier: Apache-2.0 */
/* Shares of programs; see sharing_out.h. */
#include "programs/sharing_out.h"

#include <stdlib.h>
#include <string.h>

#include "model/apportion.h"
#include "model/locations.h"
#include "model/tree.h"
#include "segment/limits_mark.h"
#include "segment/list.h"
#include "segment/segment_growth.h"
#include "segments/dirs.h"
#include "support/daemon_log.h"

#define REST 4u

_Static_assert(LIMIT_HOST == DEVICE_HOST, "limits.h does not know the model");

/* While it runs. */
typedef struct run {
    model_t *model;
    apportion_t sums;
    uint32_t quota_room, claimant_room;
    bool failed; /* no memory */
} run_t;

/* What a claimant is: a location of a segment. */
typedef struct place {
    member_t *member;
    member_location_t *at;
} place_t;

static place_t place_of(const claimant_t *claimant)
{
    member_location_t *at = claimant->subject;
    return (place_t){at->member, at};
}

/* --- notices -------------------------------------------------------------------------- */

void sharing_out_touched(model_t *model, member_t *member)
{
    if (model->limits.is_started) {
        member->may_ask = true;
        model->sharing.is_asked = true;
    }
}

/* Another user's daemon leaves alone what root's has given. */
void sharing_out_met(model_t *model, member_t *member)
{
    if (!model->limits.is_started && model->uid == 0 && member->has_control &&
        rmm__control_has_shares(&member->control)) {
        model->limits.is_started = model->limits.is_due = true;
    }
    sharing_out_touched(model, member);
}

static bool is_watched(const model_t *model)
{
    return model->dirs != NULL && model->dirs->inotify_fd >= 0;
}

bool sharing_out_is_due(const model_t *model)
{
    const sharing_t *sharing = &model->sharing;
    return model->limits.is_started &&
           (model->limits.is_due || sharing->is_asked || sharing->has_moved ||
            sharing->changes != model->changes);
}

void sharing_out_mark(const model_t *model, bool in_force)
{
    for (uint32_t i = 0; model->dirs != NULL && i < model->dirs->count; i++) {
        const segment_dir_t *dir = model->dirs->list[i];
        if (!dir->gone) {
            rmm__limits_mark(dir->fd, in_force);
        }
    }
}

/* --- quotas ----------------------------------------------------------------------------- */

static void add_quota(run_t *run, const job_t *job, uint32_t limit, uint32_t device)
{
    apportion_t *sums = &run->sums;
    quota_t *quotas = rmm__list_make_room(
        sums->quotas, sums->quota_count, &run->quota_room, sizeof(quota_t));
    if (quotas == NULL || sums->quota_count >= UINT16_MAX) {
        run->failed = true;
    }
    if (quotas != NULL) {
        sums->quotas = quotas;
    }
    if (!run->failed) {
        quotas[sums->quota_count++] = (quota_t){
            .limit_bytes = run->model->limits.items[limit].limit_bytes,
            .group = job,
            .device = device,
            .limit = limit};
    }
}

static void add_quotas_of(run_t *run, const job_t *job, uint32_t limit)
{
    const limit_t *of = &run->model->limits.items[limit];
    if (of->device != LIMIT_EACH_GPU) {
        add_quota(run, job, limit, of->device);
        return;
    }
    for (uint32_t i = 0; i < run->model->gpu_count && !run->failed; i++) {
        add_quota(run, job, limit, i);
    }
}

static int compare_quotas(const void *left, const void *right)
{
    const quota_t *a = left, *b = right;
    if (a->group != b->group) {
        return a->group < b->group ? -1 : 1;
    }
    return (a->device > b->device) - (a->device < b->device);
}

/* For each limit the jobs that it is for. */
static void find_quotas(run_t *run)
{
    const model_t *model = run->model;
    for (uint32_t i = 0; i < model->limits.count && !run->failed; i++) {
        if (limit_is_of(&model->limits.items[i], NULL)) {
            add_quotas_of(run, NULL, i);
        }
        for (uint32_t k = 0; k < model->jobs.count && !run->failed; k++) {
            const job_t *job = model->jobs.items[k];
            if (job->processes > 0 && limit_is_of(&model->limits.items[i], job)) {
                add_quotas_of(run, job, i);
            }
        }
    }
    if (run->sums.quota_count > 0) {
        qsort(run->sums.quotas, run->sums.quota_count, sizeof(quota_t), compare_quotas);
    }
}

/* The first quota of the group that is not before the device. */
static uint32_t first_quota(const run_t *run, const job_t *job, uint32_t device)
{
    const quota_t wanted = {.group = job, .device = device};
    uint32_t low = 0, high = run->sums.quota_count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (compare_quotas(&run->sums.quotas[middle], &wanted) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static void put_into_quotas(const run_t *run, claimant_t *claimant, const job_t *job)
{
    uint32_t device = place_of(claimant).at->device;
    for (uint32_t i = first_quota(run, job, device);
         i < run->sums.quota_count && run->sums.quotas[i].group == job &&
         run->sums.quotas[i].device == device &&
         claimant->quota_count < APPORTION_QUOTAS_OF_CLAIMANT;
         i++) {
        claimant->quotas[claimant->quota_count++] = (uint16_t)i;
    }
}

/* --- claimants -------------------------------------------------------------------------- */

static void look_for_request(const model_t *model, claimant_t *claimant)
{
    place_t place = place_of(claimant);
    rmm_growth_t growth;
    if ((place.member->may_ask || !is_watched(model)) &&
        rmm__segment_growth(&place.member->segment, place.at->location, &growth) &&
        growth.wanted_number != place.at->claim.answered) {
        claimant->asks = true;
        claimant->wanted_bytes = growth.wanted_bytes;
        place.at->asked = growth.wanted_number;
    }
}

static void add_claimant(run_t *run, member_t *member, member_location_t *at)
{
    apportion_t *sums = &run->sums;
    const process_t *process = member->process;
    claimant_t *claimants = rmm__list_make_room(
        sums->claimants, sums->claimant_count, &run->claimant_room, sizeof(claimant_t));
    if (claimants == NULL) {
        run->failed = true;
        return;
    }
    sums->claimants = claimants;
    claimant_t *claimant = &claimants[sums->claimant_count++];
    *claimant = (claimant_t){.claim = &at->claim, .subject = at};
    at->member = member;
    claimant->takes_shares = member->has_control &&
                             rmm__control_takes_shares(&member->control, at->location);
    put_into_quotas(run, claimant, NULL);
    for (uint32_t kind = 0; kind < JOB_KIND_COUNT; kind++) {
        if (process->jobs[kind] != NULL) {
            put_into_quotas(run, claimant, process->jobs[kind]);
        }
    }
    look_for_request(run->model, claimant);
}

static void find_claimants(run_t *run)
{
    const model_t *model = run->model;
    for (uint32_t i = 0; i < model->member_count && !run->failed; i++) {
        member_t *member = model->members[i];
        for (uint32_t k = 0; k < member->location_count && !run->failed; k++) {
            if (member->state == MEMBER_LIVE) {
                add_claimant(run, member, &member->locations[k]);
            }
        }
    }
}

/* --- shares --------------------------------------------------------------------------- */

static uint64_t read_use(const claimant_t *claimant, void *arg)
{
    place_t place = place_of(claimant);
    rmm_growth_t growth;
    (void)arg;
    return rmm__segment_growth(&place.member->segment, place.at->location, &growth)
               ? growth.used_bytes
               : 0;
}

static void set_share(const claimant_t *claimant, const quota_t *least, void *arg)
{
    const run_t *run = arg;
    place_t place = place_of(claimant);
    char group[LIMIT_GROUP_BYTES] = "";
    rmm_share_t share = {claimant->claim->share_bytes, UINT64_MAX, group};
    if (least != NULL) {
        limit_print_group(&run->model->limits.items[least->limit], group);
        share.limit_bytes = least->limit_bytes;
    }
    if (rmm__control_set_share(&place.member->control, place.at->location, &share) ==
        0) {
        place.member->is_share_new = true;
    }
}

/* Is there any limit for it, also of a GPU that no program has used yet, which has no quota? */
static bool is_limited(const model_t *model, const process_t *process)
{
    for (uint32_t i = 0; i < model->limits.count; i++) {
        const limit_t *limit = &model->limits.items[i];
        const job_t *job =
            limit->kind < JOB_KIND_COUNT ? process->jobs[limit->kind] : NULL;
        if ((job != NULL || limit->kind == LIMIT_OF_DEVICE) &&
            limit_is_of(limit, job)) {
            return true;
        }
    }
    return false;
}

/* A location that the program has not used yet: it asks first if it is in a group of a limit. */
static void set_asking(const run_t *run, member_t *member)
{
    bool asks = is_limited(run->model, member->process);
    if (member->asks_first == (asks ? ASKS_FIRST : ASKS_NOT)) {
        return;
    }
    member->asks_first = asks ? ASKS_FIRST : ASKS_NOT;
    const rmm_share_t share = {
        asks ? RMM_SHARE_ASK : RMM_SEGMENT_NO_LIMIT, UINT64_MAX, ""};
    for (uint32_t i = 0; i < RMM_SEGMENT_LOCATIONS; i++) {
        bool is_known = false;
        for (uint32_t k = 0; k < member->location_count && !is_known; k++) {
            is_known = member->locations[k].location == i;
        }
        if (!is_known && rmm__control_takes_shares(&member->control, i)) {
            (void)rmm__control_set_share(&member->control, i, &share);
            member->is_share_new = true;
        }
    }
}

static void answer(const run_t *run)
{
    for (uint32_t i = 0; i < run->sums.claimant_count; i++) {
        const claimant_t *claimant = &run->sums.claimants[i];
        place_t place = place_of(claimant);
        if (claimant->asks) {
            place.at->claim.answered = place.at->asked;
            (void)rmm__control_answer(
                &place.member->control, place.at->location, place.at->asked);
            place.member->is_share_new = false;
        }
    }
}

static void tell_members(const run_t *run)
{
    for (uint32_t i = 0; i < run->model->member_count; i++) {
        member_t *member = run->model->members[i];
        member->may_ask = false;
        if (member->state != MEMBER_LIVE || !member->has_control) {
            continue;
        }
        set_asking(run, member);
        if (member->is_share_new) {
            (void)rmm__control_shares_changed(&member->control);
            member->is_share_new = false;
        }
    }
}

/* --- all ------------------------------------------------------------------------------ */

/* A program that asks may have opened the location, and the node's first GPU, a moment ago: if they
 * were found later, the program would wait in vain, and go on without a limit. */
static void find_locations(model_t *model)
{
    for (uint32_t i = 0; i < model->member_count; i++) {
        member_t *member = model->members[i];
        if (member->state == MEMBER_LIVE && (member->may_ask || !is_watched(model))) {
            (void)locations_find(model, member);
        }
    }
}

static void share_out(model_t *model)
{
    run_t run = {
        .model = model, .sums = {.read = read_use, .set = set_share, .arg = &run}};
    find_locations(model);
    find_quotas(&run);
    find_claimants(&run);
    if (run.failed) {
        log_warn("limits of groups are not shared out: out of memory");
    } else {
        run.sums.first = run.sums.claimant_count > 0
                             ? model->sharing.turn++ % run.sums.claimant_count
                             : 0;
        apportion_run(&run.sums);
        answer(&run);
        tell_members(&run);
    }
    free(run.sums.quotas);
    free(run.sums.claimants);
}

void sharing_out(model_t *model, bool at_once)
{
    sharing_t *sharing = &model->sharing;
    uint64_t begin = rmm__clock_ns(CLOCK_MONOTONIC);
    bool is_polled = model->limits.is_started && !is_watched(model);
    if ((!sharing_out_is_due(model) && !is_polled) ||
        (!at_once && begin < sharing->next_ns)) {
        return;
    }
    if (model->limits.is_due) {
        sharing_out_mark(model, model->limits.count > 0);
    }
    model->limits.is_due = sharing->is_asked = sharing->has_moved = false;
    sharing->changes = model->changes;
    share_out(model);
    uint64_t end = rmm__clock_ns(CLOCK_MONOTONIC);
    sharing->next_ns = end + REST * (end - begin);
}
