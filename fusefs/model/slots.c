/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks the slot table; see slots.h. Bytes looked at here only choose candidates: the reader
 * checks them again.
 */
#include "model/slots.h"

#include <stddef.h>
#include <string.h>
#include <unistd.h>

#define WALK_TRIES 32u /* a slot that is being written needs one or two */
#define GLANCES_OF_SLOT                                                                \
    16u /* slots that are glanced at in the time in which one is read */

static const slot_allowance_t of_one_walk = {
    .slots = UINT32_MAX, .retries = WALK_TRIES};

/* The words that tell a candidate, from a piece of the table. */
typedef struct glance {
    uint32_t generation, live, instance_id, location;
} glance_t;

static uint32_t word_at(const unsigned char *slot, size_t offset)
{
    uint32_t word;
    memcpy(&word, slot + offset, sizeof(word));
    return word;
}

static glance_t glance_at(const unsigned char *slot)
{
    return (glance_t){
        .generation = word_at(slot, offsetof(rmm_segment_slot_t, generation)),
        .live = word_at(slot, offsetof(rmm_segment_slot_t, live)),
        .instance_id = word_at(slot, offsetof(rmm_segment_slot_t, instance_id)),
        .location = word_at(slot, offsetof(rmm_segment_slot_t, location))};
}

typedef struct walk {
    member_t *member;
    uint32_t id_mask, wanted_id; /* of the bits in the mask */
    uint32_t location;           /* SLOTS_ANYWHERE, or of those there only */
    slot_fn visit;
    void *arg;
    slot_allowance_t *allowance; /* a hostile segment is torn in each slot */
    bool is_cut;                 /* it did not suffice */
    slot_requests_t requests;    /* of the batch that is being walked */
} walk_t;

static bool is_wanted(const walk_t *walk, uint32_t instance_id)
{
    return (instance_id & walk->id_mask) == walk->wanted_id;
}

static bool is_candidate(const walk_t *walk, const glance_t *glance)
{
    return glance->live != 0 && is_wanted(walk, glance->instance_id) &&
           (walk->location == SLOTS_ANYWHERE || walk->location == glance->location);
}

/* False: the walk is over. */
static bool visit_slot(walk_t *walk, const rmm_slot_batch_t *batch, uint32_t index)
{
    slot_view_t view = {
        .member = walk->member, .index = index, .requests = &walk->requests};
    if (!rmm__segment_batch_slot(
            &walk->member->segment, batch, index, &view.record, &view.torn,
            &walk->allowance->retries)) {
        return true;
    }
    if (!is_wanted(walk, rmm__record_slot(&view.record)->instance_id)) {
        return true; /* another took its place just now */
    }
    return walk->visit(&view, walk->arg);
}

/* Only slots that are read together, because of several. */
static void begin_requests(walk_t *walk, const rmm_slot_batch_t *batch)
{
    bool is_small = batch->is_filled && batch->count <= SLOT_REQUESTS_MAX;
    walk->requests.is_read = false;
    walk->requests.first = batch->first;
    walk->requests.count = is_small ? batch->count : 0;
}

static void read_requests(rmm_control_t *control, slot_requests_t *requests)
{
    requests->is_read = true;
    if (requests->count > 0 &&
        rmm__control_read_slots(
            control, requests->first, requests->count, requests->items) != 0) {
        requests->count = 0;
    }
}

bool slot_request(const slot_view_t *view, rmm_control_slot_t *request_out)
{
    rmm_control_t control = view->member->control;
    slot_requests_t *requests = view->requests;
    if (requests != NULL && !requests->is_read) {
        read_requests(&control, requests);
    }
    if (requests != NULL && view->index - requests->first < requests->count) {
        *request_out = requests->items[view->index - requests->first];
        return true;
    }
    return rmm__control_read_slot(&control, view->index, request_out) == 0;
}

static bool is_spent(const slot_allowance_t *allowance)
{
    return allowance->slots == 0 ||
           (allowance->slots_together != NULL && *allowance->slots_together == 0);
}

/* Down to 0. */
static void charge(slot_allowance_t *allowance, uint32_t slots)
{
    allowance->slots -= slots < allowance->slots ? slots : allowance->slots;
    uint32_t *together = allowance->slots_together;
    if (together != NULL) {
        *together -= slots < *together ? slots : *together;
    }
}

static bool may_read(slot_allowance_t *allowance, const glance_t *glance)
{
    bool is_moving = glance->generation % 2 != 0;
    bool may = !is_spent(allowance) && (!is_moving || allowance->retries > 0);
    charge(allowance, 1);
    return may;
}

static glance_t glance_in(const walk_t *walk, const rmm_slot_batch_t *batch, uint32_t i)
{
    uint32_t stride = walk->member->segment.header.slots_stride;
    return glance_at(batch->before + (size_t)i * stride);
}

/* A single candidate is cheaper to read by itself. */
static bool has_several_candidates(const walk_t *walk, const rmm_slot_batch_t *batch)
{
    uint32_t candidates = 0;
    for (uint32_t i = 0; i < batch->count && candidates < 2; i++) {
        glance_t glance = glance_in(walk, batch, i);
        candidates += is_candidate(walk, &glance);
    }
    return candidates == 2;
}

/* False: the walk is over. */
static bool walk_batch(walk_t *walk, const rmm_slot_batch_t *batch)
{
    for (uint32_t i = 0; i < batch->count; i++) {
        glance_t glance = glance_in(walk, batch, i);
        if (!is_candidate(walk, &glance)) {
            continue;
        }
        if (!may_read(walk->allowance, &glance)) {
            walk->is_cut = true;
            if (is_spent(walk->allowance)) {
                return false;
            }
        } else if (!visit_slot(walk, batch, batch->first + i)) {
            return false;
        }
    }
    return true;
}

static void walk_slots(walk_t *walk)
{
    rmm_slot_batch_t batch; /* 64 KiB */
    const rmm_segment_t *segment = &walk->member->segment;
    uint32_t slots = rmm__segment_slot_count(segment);
    uint32_t per_batch = rmm__segment_batch_slots(segment);
    for (uint32_t first = 0; first < slots; first += per_batch) {
        uint32_t count = slots - first < per_batch ? slots - first : per_batch;
        charge(walk->allowance, count / GLANCES_OF_SLOT);
        if (!rmm__segment_begin_batch(segment, first, count, &batch)) {
            return;
        }
        if (has_several_candidates(walk, &batch)) {
            rmm__segment_fill_batch(segment, &batch);
        }
        begin_requests(walk, &batch);
        if (!walk_batch(walk, &batch)) {
            return;
        }
    }
}

void slots_each(member_t *member, slot_fn visit, void *arg)
{
    (void)slots_each_within(member, SLOTS_ANYWHERE, NULL, visit, arg);
}

bool slots_each_within(
    member_t *member, uint32_t location, slot_allowance_t *allowance, slot_fn visit,
    void *arg)
{
    slot_allowance_t own = of_one_walk;
    walk_t walk = {
        .member = member,
        .location = location,
        .visit = visit,
        .arg = arg,
        .allowance = allowance != NULL ? allowance : &own};
    if (is_spent(walk.allowance)) {
        walk.is_cut = member->state != MEMBER_UNREADABLE;
    } else if (member->state != MEMBER_UNREADABLE) {
        walk_slots(&walk);
    }
    walk.allowance->is_over = walk.allowance->is_over || walk.is_cut;
    return !walk.is_cut;
}

typedef struct search {
    slot_view_t *view;
    bool found;
} search_t;

static bool take_first(const slot_view_t *view, void *arg)
{
    search_t *search = arg;
    *search->view = *view;
    search->view->requests = NULL; /* they are the walk's */
    search->found = true;
    return false;
}

static _Atomic(uint16_t) *hint_of(member_t *member, uint32_t instance_id)
{
    return &member->slot_hints[instance_id % SLOT_HINTS];
}

static bool
find(member_t *member, uint32_t mask, uint32_t instance_id, slot_view_t *view_out)
{
    if (member->state == MEMBER_UNREADABLE) {
        return false;
    }
    _Atomic(uint16_t) *hint = hint_of(member, instance_id);
    search_t search = {.view = view_out};
    slot_allowance_t allowance = of_one_walk;
    walk_t walk = {
        .member = member,
        .id_mask = mask,
        .wanted_id = instance_id,
        .location = SLOTS_ANYWHERE,
        .visit = take_first,
        .arg = &search,
        .allowance = &allowance};
    (void)visit_slot(&walk, NULL, atomic_load_explicit(hint, memory_order_relaxed));
    if (!search.found) {
        walk_slots(&walk);
    }
    if (search.found) {
        atomic_store_explicit(hint, (uint16_t)view_out->index, memory_order_relaxed);
    }
    return search.found;
}

bool slots_find_low(member_t *member, uint32_t low_bits, slot_view_t *view_out)
{
    return find(member, SLOT_LOW_BITS, low_bits, view_out);
}

/* Where it was seen last; otherwise as if it were to be read. */
static bool
identify(member_t *member, uint32_t mask, uint32_t instance_id, slot_view_t *view_out)
{
    if (member->state == MEMBER_UNREADABLE) {
        return false;
    }
    const uint16_t index =
        atomic_load_explicit(hint_of(member, instance_id), memory_order_relaxed);
    *view_out = (slot_view_t){.member = member, .index = index};
    if (rmm__segment_read_slot_identity(&member->segment, index, &view_out->record) &&
        (rmm__record_slot(&view_out->record)->instance_id & mask) == instance_id) {
        return true;
    }
    return find(member, mask, instance_id, view_out);
}

bool slots_identify(member_t *member, uint32_t instance_id, slot_view_t *view_out)
{
    return instance_id != 0 && identify(member, UINT32_MAX, instance_id, view_out);
}

bool slots_identify_low(member_t *member, uint32_t low_bits, slot_view_t *view_out)
{
    return identify(member, SLOT_LOW_BITS, low_bits, view_out);
}
