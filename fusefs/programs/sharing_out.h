/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes programs obey the limits of groups (limits.h): gives each program its share on each device,
 * in its control page, and answers programs that ask for more. apportion.h has the arithmetic,
 * segment_growth.h what both sides write.
 *
 * A program that asks has touched its file, so it is answered within some milliseconds, as far as
 * others leave the daemon time. A program that is found has its share before anything else happens
 * to it; until then it waits by itself (limits_mark.h).
 *
 * Not obeyed by: programs that the daemon does not show (daemon/unshown), that have no control
 * page, or that are older than shares. What they hold counts all the same, if it is known.
 *
 * Cost: nothing while there are no limits. A run takes 2 us for each program whose use it reads,
 * 1 ms for 1,000 otherwise, and REST times as long passes until the next one.
 *
 * Threads: the model's lock is held alone.
 */
#ifndef RMM_FUSEFS_SHARING_OUT_H
#define RMM_FUSEFS_SHARING_OUT_H

#include "model/model.h"

/* A member is new: it may ask, or an earlier daemon gave it a share. */
void sharing_out_met(model_t *model, member_t *member);

/* The file of the member was touched: it may ask. */
void sharing_out_touched(model_t *model, member_t *member);

/* What is due; at once: also if the last run was a moment ago. */
void sharing_out(model_t *model, bool at_once);

/* Something is due. */
bool sharing_out_is_due(const model_t *model);

/* Say in each directory of segments whether limits are in force. */
void sharing_out_mark(const model_t *model, bool in_force);

#endif /* RMM_FUSEFS_SHARING_OUT_H */
