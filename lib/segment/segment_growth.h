/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's side of shares: what a program holds and is about to take at a location, what it
 * asks for, and the share that it is given (docs/segment-format.md, "Share of a location").
 *
 * Threads: one at a time for a control page.
 */
#ifndef RMM_SEGMENT_GROWTH_H
#define RMM_SEGMENT_GROWTH_H

#include "segment/segment_reader.h"

typedef struct rmm_growth {
    uint64_t used_bytes; /* held and promised; what cannot be true counts as 0 */
    uint64_t wanted_bytes;
    uint32_t wanted_number;
} rmm_growth_t;

/* False: the segment has no such location, or was cut. A full fence comes first: after
 * rmm__control_set_share() it returns all that a thread took before it saw that share. */
bool rmm__segment_growth(
    const rmm_segment_t *segment, uint32_t location, rmm_growth_t *growth_out);

/* Does the program take shares at this location? Older ones do not. */
bool rmm__control_takes_shares(const rmm_control_t *control, uint32_t location);

typedef struct rmm_share {
    uint64_t share_bytes; /* or RMM_SHARE_ASK, RMM_SEGMENT_NO_LIMIT */
    uint64_t limit_bytes;
    const char *group; /* cut to RMM_SHARE_GROUP_BYTES - 1 */
} rmm_share_t;

/* 0 or a negative errno. The program is not woken: rmm__control_answer() does that. */
int rmm__control_set_share(
    rmm_control_t *control, uint32_t location, const rmm_share_t *share);

/* Its request of that number is answered by the share as it is; the program goes on. */
int rmm__control_answer(rmm_control_t *control, uint32_t location, uint32_t number);

/* After one or more shares were set: allocations look at shares, or do not. */
int rmm__control_shares_changed(rmm_control_t *control);

/* Whose limit it is, as it was written; "": none, or it cannot be read. */
void rmm__control_share_group(
    const rmm_control_t *control, uint32_t location, char group[RMM_SHARE_GROUP_BYTES]);

/* Is there any share that a daemon gave? */
bool rmm__control_has_shares(rmm_control_t *control);

/* The share as it stands; RMM_SEGMENT_NO_LIMIT if it cannot be read. */
uint64_t rmm__control_share(rmm_control_t *control, uint32_t location);

#endif /* RMM_SEGMENT_GROWTH_H */
