/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the segment of a member ends: its totals are added to the devices, and its file is made small
 * or found to be cut.
 *
 * Threads: the caller holds the model lock alone.
 */
#ifndef RMM_FUSEFS_ENDINGS_H
#define RMM_FUSEFS_ENDINGS_H

#include "model/model.h"

/* Opens the control page, unless it is open or not there yet. */
void member_open_control(member_t *member);

/* The member continues with the small file of its segment, which has the results of all requests:
 * the control page is gone. */
void member_take_small(member_t *member, rmm_segment_t *segment);

/* The file was truncated while in use. */
void member_become_unreadable(model_t *model, member_t *member);

/* The program has ended; its totals are counted already, or never. */
void member_end(model_t *model, member_t *member);

/* The program has ended: adds its totals to the devices, and makes its file small. */
void member_add_totals(model_t *model, member_t *member);

/* False: its process is not watched (any more). */
bool member_stop_watching(model_t *model, member_t *member);

#endif /* RMM_FUSEFS_ENDINGS_H */
