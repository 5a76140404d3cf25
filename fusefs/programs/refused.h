/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds allocations that programs were refused for want of memory, and notes who held the memory
 * (refusals.h).
 *
 * A program writes them into a ring in its segment and touches the file, at most once a
 * millisecond, whatever it is refused meanwhile. So a member that was touched stays due for
 * REFUSED_LOOK_NS, and each refresh of the model looks at it once more. Where the daemon is not
 * notified, event_poll.h finds that a counter rose.
 *
 * Cost: the holders of a device are read at most once in REFUSED_SCENE_NS, three preads for each
 * segment there. Refusals that follow at once have the same.
 *
 * Threads: the model's lock is held alone.
 */
#ifndef RMM_FUSEFS_REFUSED_H
#define RMM_FUSEFS_REFUSED_H

#include "model/model.h"

#define REFUSED_SCENE_NS 50000000u

/* The file of the member was touched, or the member is new. */
void refused_touched(model_t *model, member_t *member);

/* Read what members that were touched were refused since this daemon began. */
void refused_take(model_t *model);

#endif /* RMM_FUSEFS_REFUSED_H */
