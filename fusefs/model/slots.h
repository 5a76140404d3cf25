/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finding the resources in a segment's slot table.
 *
 * The reader's check of one slot is five system calls, and most slots may be empty. So
 * the table is looked through in large pieces first, and only what looks alive is then
 * read through the reader, which decides. Where a resource was found last is tried first
 * when it is requested again.
 */
#ifndef RMM_FUSEFS_SLOTS_H
#define RMM_FUSEFS_SLOTS_H

#include <stdbool.h>
#include <stdint.h>

#include "model/model.h"

/* Requests for adjacent slots, read for all of them when one is needed. */
#define SLOT_REQUESTS_MAX 32u
typedef struct slot_requests {
    bool is_read;
    uint32_t first, count; /* 0: none could be read together */
    rmm_control_slot_t items[SLOT_REQUESTS_MAX];
} slot_requests_t;

/* A resource, as read at one moment. */
typedef struct slot_view {
    member_t *member;
    uint32_t index;
    bool torn; /* its writer died, or did not come to an end, in the middle */
    slot_requests_t *requests; /* of its neighbours as well; NULL: read by itself */
    rmm_record_t record;
} slot_view_t;

/* Read the slot's requests in the control page; false: there is no page yet. */
bool slot_request(const slot_view_t *view, rmm_control_slot_t *request_out);

/* False ends the walk. */
typedef bool (*slot_fn)(const slot_view_t *view, void *arg);

/* Every resource that lives in the segment, in the order of slots. */
void slots_each(member_t *member, slot_fn visit, void *arg);

/* The slots and retries that a walk over many segments may spend on one user: anybody can have
 * many segments that are full and whose slots are written all the time. */
typedef struct slot_allowance {
    uint32_t slots;           /* to be read */
    uint32_t *slots_together; /* of several users; NULL: no limit */
    uint32_t retries; /* of one that is being written, which may wait for its writer */
    bool is_over;     /* more of any was wanted */
} slot_allowance_t;

#define SLOTS_ANYWHERE UINT32_MAX

/* The same of the resources at one location. allowance NULL: that of a walk over one
 * segment. False: it did not suffice for all. */
bool slots_each_within(
    member_t *member, uint32_t location, slot_allowance_t *allowance, slot_fn visit,
    void *arg);

/* The resource with this instance id, of which as many bits are given as an inode number has room
 * for (tree.h): of two whose ids differ by 2^21 the first. False: it does not live (any more). */
#define SLOT_LOW_BITS 0x1fffffu
bool slots_find_low(member_t *member, uint32_t low_bits, slot_view_t *view_out);

/* As the two above, for a caller that needs only which resource it is: the figures may be 0. */
bool slots_identify(member_t *member, uint32_t instance_id, slot_view_t *view_out);
bool slots_identify_low(member_t *member, uint32_t low_bits, slot_view_t *view_out);

#endif /* RMM_FUSEFS_SLOTS_H */
