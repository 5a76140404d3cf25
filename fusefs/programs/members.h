/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of a member, from its admission (admission.h) to the moment in which it leaves.
 *
 *   admitted   the reader has checked the segment, and the process that holds it is known
 *   live       its locations are added when the process begins to use them
 *   exited     no process holds it: its totals are added to the devices (once, also over a
 *              restart of the daemon), its last figures stay visible for 30 s
 *   unreadable the reader refuses it, but a process holds it: shown, but part of no sum
 *
 * Threads: the caller holds the model lock alone, but for members_without_gpu_opened_one().
 */
#ifndef RMM_FUSEFS_MEMBERS_H
#define RMM_FUSEFS_MEMBERS_H

#include "model/model.h"
#include "segments/dirs.h"

#define EXITED_SHOWN_NS (30ull * 1000000000u)
#define MEMBERS_AT_ONCE                                                                \
    WITHOUT_GPU_NOTED /* that one check looks at: 2 system calls each */

/*
 * Look at MEMBERS_AT_ONCE members, each time at the next ones, and at as many that use no GPU
 * yet: add the totals of those that no process holds, find new locations of the others.
 */
void members_check_some(model_t *model);

/* Add the totals of those whose process has just ended. `again` gets one whose lock is still
 * held: it must be admitted again, as another process. */
typedef void (*members_again_fn)(void *arg, entry_t *entry);
void members_take_exits(model_t *model, members_again_fn again, void *arg);

/* True if a live one uses no GPU yet; the newest MEMBERS_AT_ONCE of these are noted. */
bool members_note_without_gpu(model_t *model);

/* True if one of those noted has opened a location since it was looked at. Lock held, shared
 * is enough: most reads need no more than this. */
bool members_without_gpu_opened_one(const model_t *model);

/* Remove some of those that have been shown long enough. True: there may be more. */
bool members_expire(model_t *model);

#endif /* RMM_FUSEFS_MEMBERS_H */
