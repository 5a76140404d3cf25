/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks the slot table; see slots.h. Bytes read here only choose candidates: the reader
 * checks them again.
 */
#include "slots.h"

#include <stddef.h>
#include <string.h>
#include <unistd.h>

#define PIECE_BYTES 16384u /* 32 slots of 512 bytes: 2 us */

/* The words that tell a candidate, from a piece of the table. */
typedef struct glance {
    uint32_t live, instance_id;
} glance_t;

static glance_t glance_at(const unsigned char *slot)
{
    glance_t glance;
    memcpy(
        &glance.live, slot + offsetof(rmm_segment_slot_t, live), sizeof(glance.live));
    memcpy(
        &glance.instance_id, slot + offsetof(rmm_segment_slot_t, instance_id),
        sizeof(glance.instance_id));
    return glance;
}

typedef struct walk {
    member_t *member;
    uint32_t wanted_id; /* 0: all */
    slot_fn visit;
    void *arg;
} walk_t;

/* False: the walk is over. */
static bool visit_slot(const walk_t *walk, uint32_t index)
{
    slot_view_t view = {.member = walk->member, .index = index};
    if (!rmm_segment_read_slot(
            &walk->member->segment, index, &view.record, &view.torn)) {
        return true;
    }
    if (walk->wanted_id != 0 &&
        rmm_record_slot(&view.record)->instance_id != walk->wanted_id) {
        return true; /* another took its place just now */
    }
    return walk->visit(&view, walk->arg);
}

/* Slots first..first+count of the table. False: the walk is over. */
static bool walk_piece(
    const walk_t *walk, const unsigned char *piece, uint32_t first, uint32_t count)
{
    uint32_t stride = walk->member->segment.header.slots_stride;
    for (uint32_t i = 0; i < count; i++) {
        glance_t glance = glance_at(piece + (size_t)i * stride);
        bool fits = walk->wanted_id == 0 || glance.instance_id == walk->wanted_id;
        if (glance.live != 0 && fits && !visit_slot(walk, first + i)) {
            return false;
        }
    }
    return true;
}

static void walk_slots(const walk_t *walk)
{
    unsigned char piece[PIECE_BYTES];
    const rmm_segment_t *segment = &walk->member->segment;
    uint32_t slots = rmm_segment_slot_count(segment);
    uint32_t stride = segment->header.slots_stride;
    uint32_t per_piece = PIECE_BYTES / stride;
    for (uint32_t first = 0; first < slots; first += per_piece) {
        uint32_t count = slots - first < per_piece ? slots - first : per_piece;
        size_t bytes = (size_t)count * stride;
        uint64_t offset = segment->header.slots_offset + (uint64_t)first * stride;
        if (pread(segment->fd, piece, bytes, (off_t)offset) != (ssize_t)bytes ||
            !walk_piece(walk, piece, first, count)) {
            return;
        }
    }
}

void slots_each(member_t *member, slot_fn visit, void *arg)
{
    if (member->state == MEMBER_UNREADABLE) {
        return;
    }
    walk_t walk = {.member = member, .visit = visit, .arg = arg};
    walk_slots(&walk);
}

typedef struct search {
    slot_view_t *view;
    bool found;
} search_t;

static bool take_first(const slot_view_t *view, void *arg)
{
    search_t *search = arg;
    *search->view = *view;
    search->found = true;
    return false;
}

static _Atomic(uint16_t) *hint_of(member_t *member, uint32_t instance_id)
{
    return &member->slot_hints[instance_id % SLOT_HINTS];
}

bool slots_find(member_t *member, uint32_t instance_id, slot_view_t *view_out)
{
    if (member->state == MEMBER_UNREADABLE || instance_id == 0) {
        return false;
    }
    _Atomic(uint16_t) *hint = hint_of(member, instance_id);
    search_t search = {.view = view_out};
    walk_t walk = {member, instance_id, take_first, &search};
    (void)visit_slot(&walk, atomic_load_explicit(hint, memory_order_relaxed));
    if (!search.found) {
        walk_slots(&walk);
    }
    if (search.found) {
        atomic_store_explicit(hint, (uint16_t)view_out->index, memory_order_relaxed);
    }
    return search.found;
}
