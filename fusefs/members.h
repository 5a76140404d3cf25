/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a segment becomes a member of the model, and how it leaves.
 *
 *   met        the reader has checked the segment, and the process that holds it is known
 *   live       its locations are added when the process begins to use them
 *   exited     no process holds it: its totals are added to the devices (once, also over a
 *              restart of the daemon), its last figures stay visible for 30 s
 *   unreadable the reader refuses it, but a process holds it: shown, but part of no sum
 *
 * Threads: the caller holds the model lock alone.
 */
#ifndef RMM_FUSEFS_MEMBERS_H
#define RMM_FUSEFS_MEMBERS_H

#include "dirs.h"
#include "model.h"

#define MEMBERS_MAX 4096u
#define EXITED_SHOWN_NS (30ull * 1000000000u)

/* Take the segment `entry->name` in; sets entry->kind. */
void members_meet(model_t *model, segment_dir_t *dir, entry_t *entry);

/*
 * Find out who exited, fold them, and find new locations of the others. True if something
 * must be saved.
 */
bool members_refresh(model_t *model);

/* Those that nobody holds are shown, but add to no total: they ended before our time. */
void members_disown_dead(model_t *model);

/* True if a live one uses no GPU yet. */
bool members_have_beginners(const model_t *model);

/* Remove those that have been shown long enough. */
void members_expire(model_t *model);

#endif /* RMM_FUSEFS_MEMBERS_H */
