/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finding the resources in a segment's slot table.
 *
 * The reader's check of one slot is three system calls, and most slots may be empty. So
 * the table is looked through in large pieces first, and only what looks alive is then
 * read through the reader, which decides. Where a resource was found last is tried first
 * when it is asked for again.
 */
#ifndef RMM_FUSEFS_SLOTS_H
#define RMM_FUSEFS_SLOTS_H

#include <stdbool.h>
#include <stdint.h>

#include "model.h"

/* A resource, as read at one moment. */
typedef struct slot_view {
    member_t *member;
    uint32_t index;
    bool torn; /* its writer died, or did not come to an end, in the middle */
    rmm_record_t record;
} slot_view_t;

/* False ends the walk. */
typedef bool (*slot_fn)(const slot_view_t *view, void *arg);

/* Every resource that lives in the segment, in the order of slots. */
void slots_each(member_t *member, slot_fn visit, void *arg);

/* The resource with this instance id; false: it does not live (any more). */
bool slots_find(member_t *member, uint32_t instance_id, slot_view_t *view_out);

#endif /* RMM_FUSEFS_SLOTS_H */
