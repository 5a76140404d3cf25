/* SPDX-License-Identifier: Apache-2.0 */
/* Finds refused allocations; see refused.h. */
#include "programs/refused.h"

#include <stdio.h>
#include <string.h>

#include "model/level_figures.h"
#include "programs/event_poll.h"
#include "segment/segment_growth.h"
#include "segment/segment_refusals.h"

#define REFUSED_LOOK_NS 10000000u
#define REFUSED_RING_MAX 256u /* the library's has 16; a longer one is not read */

/* --- holders -------------------------------------------------------------------------- */

/* In its place among those that hold more; the least one drops out where there is no room. */
static void insert_holder(refusal_scene_t *scene, const refusal_holder_t *holder)
{
    uint32_t at = scene->count;
    if (scene->count == REFUSAL_HOLDERS_MAX) {
        const refusal_holder_t *least = &scene->holders[--at];
        bool is_less = holder->held_bytes <= least->held_bytes;
        scene->more++;
        scene->more_bytes += is_less ? holder->held_bytes : least->held_bytes;
        if (is_less) {
            return;
        }
    } else {
        scene->count++;
    }
    while (at > 0 && scene->holders[at - 1].held_bytes < holder->held_bytes) {
        scene->holders[at] = scene->holders[at - 1];
        at--;
    }
    scene->holders[at] = *holder;
}

/* False: it holds nothing on the device, or that is unknown. */
static bool
measure_holder(const process_t *process, uint32_t device, refusal_holder_t *holder)
{
    figures_t figures;
    if (!figures_of_process(process, device, 0, &figures)) {
        return false;
    }
    holder->current_bytes = figure_add_known(0, figures.current_bytes);
    holder->held_bytes = figure_add_known(0, figures.reserved_bytes);
    if (holder->held_bytes < holder->current_bytes) {
        holder->held_bytes = holder->current_bytes;
    }
    return holder->held_bytes != 0;
}

/* Stays empty if no segment of it is readable. */
static void copy_comm(const process_t *process, refusal_holder_t *holder)
{
    const member_t *member = process_readable_member(process);
    if (member != NULL) {
        memcpy(holder->comm, member->segment.header.comm, sizeof(holder->comm));
    }
}

static void
look_at_holders(const model_t *model, uint32_t device, refusal_scene_t *scene)
{
    memset(scene, 0, sizeof(*scene));
    scene->clock_ns = model_clock_ns();
    for (uint32_t i = 0; i < model->process_count; i++) {
        const process_t *process = model->processes[i];
        refusal_holder_t holder = {.uid = process->uid};
        if (!process_is_live(process) || !measure_holder(process, device, &holder)) {
            continue;
        }
        memcpy(holder.process, process->name, sizeof(holder.process));
        copy_comm(process, &holder);
        insert_holder(scene, &holder);
    }
}

/* That of the last refusal on this device, if it is new enough. */
static const refusal_scene_t *find_scene(const refusals_t *list, uint32_t device)
{
    uint64_t now = model_clock_ns();
    for (uint32_t i = list->count; i > 0; i--) {
        const refusal_t *refusal = list->items[i - 1];
        if (refusal->device == device) {
            return now - refusal->scene.clock_ns < REFUSED_SCENE_NS ? &refusal->scene
                                                                    : NULL;
        }
    }
    return NULL;
}

static void set_scene(const model_t *model, refusal_t *refusal)
{
    const refusal_scene_t *scene = find_scene(&model->refusals, refusal->device);
    if (scene != NULL) {
        refusal->scene = *scene;
    } else if (refusal->device != DEVICE_NONE) {
        look_at_holders(model, refusal->device, &refusal->scene);
    }
}

/* --- one refusal ---------------------------------------------------------------------- */

static void
name_limit(refusal_t *refusal, const member_t *member, const rmm_refusal_t *facts)
{
    char group[RMM_SHARE_GROUP_BYTES] = "";
    if (facts->limit_of == RMM_LIMIT_OF_GROUP && member->has_control) {
        rmm__control_share_group(&member->control, facts->location, group);
    }
    (void)snprintf(
        refusal->limit, sizeof(refusal->limit), "%s",
        facts->limit_of == RMM_LIMIT_OF_RESOURCE  ? "resource"
        : facts->limit_of == RMM_LIMIT_OF_PROCESS ? "process"
        : facts->limit_of == RMM_LIMIT_OF_GROUP   ? group
                                                  : "");
}

static void fill(refusal_t *refusal, const member_t *member, const rmm_refusal_t *facts)
{
    const process_t *process = member->process;
    const job_t *job = process->jobs[JOB_SLURM_JOB];
    *refusal = (refusal_t){
        .time_ns = facts->time_ns,
        .bytes = facts->bytes,
        .device_free_bytes = facts->device_free_bytes,
        .current_bytes = facts->current_bytes,
        .reserved_bytes = facts->reserved_bytes,
        .instance_id = facts->instance_id,
        .uid = process->uid,
        .device = member_device_of(member, facts->location),
        .member_serial = member->serial,
        .location = facts->location,
        .wants_blocks = true};
    memcpy(refusal->type, facts->type, sizeof(refusal->type));
    memcpy(refusal->name, facts->name, sizeof(refusal->name));
    memcpy(refusal->process, process->name, sizeof(refusal->process));
    memcpy(refusal->comm, member->segment.header.comm, sizeof(refusal->comm));
    if (job != NULL) {
        memcpy(refusal->job, job->name, sizeof(refusal->job));
    }
    refusal->limit_bytes = facts->limit_bytes;
    name_limit(refusal, member, facts);
}

typedef struct taking {
    model_t *model;
    const member_t *member;
} taking_t;

static void note(const rmm_refusal_t *facts, void *arg)
{
    const taking_t *taking = arg;
    refusal_t refusal;
    if (facts->time_ns < taking->model->started_real_ns) {
        return; /* nobody knows any more who held what */
    }
    fill(&refusal, taking->member, facts);
    set_scene(taking->model, &refusal);
    refusals_add(&taking->model->refusals, &refusal);
}

/* --- programs ------------------------------------------------------------------------- */

void refused_touched(model_t *model, member_t *member)
{
    member->refusals_until_ns = model_clock_ns() + REFUSED_LOOK_NS;
    model->refusals.is_due = true;
}

static void take_of(model_t *model, member_t *member)
{
    taking_t taking = {model, member};
    uint64_t lost = member->refusal_cursor.lost;
    if (member->state != MEMBER_UNREADABLE &&
        member->segment.header.refusals_count <= REFUSED_RING_MAX) {
        (void)rmm__segment_read_refusals(
            &member->segment, &member->refusal_cursor, member->state != MEMBER_LIVE,
            note, &taking);
        model->refusals.lost += member->refusal_cursor.lost - lost;
    }
}

void refused_take(model_t *model)
{
    uint64_t now = model_clock_ns();
    if (!model->refusals.is_due) {
        return;
    }
    model->refusals.is_due = false;
    for (uint32_t i = 0; i < model->member_count; i++) {
        member_t *member = model->members[i];
        if (member->refusals_until_ns != 0) {
            take_of(model, member);
            if (member->refusals_until_ns <= now) {
                member->refusals_until_ns = 0;
                event_poll_look_now(model, member); /* what rose makes it due again */
            } else {
                model->refusals.is_due = true;
            }
        }
    }
}
