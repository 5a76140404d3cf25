/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shortages of the daemon, of descriptors or memory, for which it cannot show a segment. Such a
 * segment is counted in daemon/unshown, and tried again later. Each kind is logged once.
 *
 * Threads: the caller holds the model lock alone.
 */
#ifndef RMM_FUSEFS_SHORTAGE_H
#define RMM_FUSEFS_SHORTAGE_H

#include "model/model.h"
#include "segments/dirs.h"

/* The resource that is too short to show `member`, of which only the segment is open. */
shortage_t shortage_find(model_t *model, const entry_t *entry, const member_t *member);

/* SHORT_OF_NOTHING: it is shown, or its name is gone. */
void shortage_note(model_t *model, entry_t *entry, shortage_t shortage);

#endif /* RMM_FUSEFS_SHORTAGE_H */
