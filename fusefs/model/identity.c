/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Identities of segments; see identity.h. The list is short and searched only when a name
 * appears, so searches are linear.
 */
#include "model/identity.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "model/model.h"

static identity_t identity_of(const rmm_segment_t *segment)
{
    return (identity_t){
        .uid = segment->uid,
        .pid = segment->header.pid,
        .start_time_ticks = segment->header.start_time_ticks,
        .made_ns = segment->header.start_time_ns};
}

static bool is_same(const identity_t *a, const identity_t *b)
{
    return a->made_ns == b->made_ns && a->pid == b->pid && a->uid == b->uid &&
           a->start_time_ticks == b->start_time_ticks;
}

/* The same file, whatever its name and contents, or a file with the same header. */
static bool is_of(const member_t *member, const rmm_segment_t *segment)
{
    const identity_t known = identity_of(&member->segment);
    const identity_t found = identity_of(segment);
    return (member->segment.device == segment->device &&
            member->segment.inode == segment->inode) ||
           (member->state != MEMBER_UNREADABLE && is_same(&known, &found));
}

/* One that the reader refused has no header: only its inode is known, and others come first. */
member_t *identity_member(const model_t *model, const rmm_segment_t *segment)
{
    member_t *refused = NULL;
    for (uint32_t i = 0; i < model->member_count; i++) {
        member_t *member = model->members[i];
        if (is_of(member, segment)) {
            if (member->state != MEMBER_UNREADABLE) {
                return member;
            }
            refused = member;
        }
    }
    return refused;
}

static bool has_ended(const identities_t *identities, const identity_t *identity)
{
    for (uint32_t i = 0; i < identities->count; i++) {
        if (is_same(&identities->items[i], identity)) {
            return true;
        }
    }
    return false;
}

bool identity_is_counted(
    const model_t *model, const rmm_segment_t *segment, const member_t *member,
    char reason[RMM_SEGMENT_REASON_BYTES])
{
    const identity_t identity = identity_of(segment);
    if (member != NULL && member->state != MEMBER_UNREADABLE) {
        (void)snprintf(
            reason, RMM_SEGMENT_REASON_BYTES,
            "it is another name or a copy of segment %s", member->segment.name);
        return true;
    }
    if (has_ended(&model->ended, &identity)) {
        (void)snprintf(
            reason, RMM_SEGMENT_REASON_BYTES,
            "it is another name or a copy of a segment that ended and is in the "
            "totals");
        return true;
    }
    return false;
}

static void remove_at(identities_t *identities, uint32_t at)
{
    identities->count--;
    memmove(
        &identities->items[at], &identities->items[at + 1],
        (identities->count - at) * sizeof(identity_t));
}

/* The oldest of this user, if the user has as many as allowed, else the oldest of all. */
static void make_room(identities_t *identities, uid_t uid)
{
    uint32_t oldest = 0, of_user = 0;
    for (uint32_t i = identities->count; i > 0; i--) {
        if (identities->items[i - 1].uid == uid) {
            oldest = i - 1;
            of_user++;
        }
    }
    if (of_user >= IDENTITY_OF_USER_MAX) {
        remove_at(identities, oldest);
    } else if (identities->count == IDENTITY_MAX) {
        remove_at(identities, 0);
    }
}

void identity_add(identities_t *identities, const identity_t *identity)
{
    if (!has_ended(identities, identity)) {
        make_room(identities, identity->uid);
        identities->items[identities->count++] = *identity;
    }
}

void identity_note_ended(identities_t *identities, const rmm_segment_t *segment)
{
    const identity_t identity = identity_of(segment);
    identity_add(identities, &identity);
}

bool identity_parse(const char *fields, identity_t *identity_out)
{
    unsigned uid;
    if (sscanf(
            fields, "%u %" SCNu32 " %" SCNu64 " %" SCNu64, &uid, &identity_out->pid,
            &identity_out->start_time_ticks, &identity_out->made_ns) != 4) {
        return false;
    }
    identity_out->uid = (uid_t)uid;
    return true;
}
