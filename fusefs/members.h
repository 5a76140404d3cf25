/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a segment becomes a member of the model, lives there and leaves it.
 *
 *   met        checked by the reader, given to the process that holds it
 *   live       its locations are found as they come into use
 *   exited     nobody holds it any more: its totals go to the devices (once, also over a
 *              restart of the daemon), its last figures stay visible for 30 s
 *   unreadable the reader refuses it, but somebody holds it: shown as that, adds nothing
 *
 * Threads: model lock held alone.
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
