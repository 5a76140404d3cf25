/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a segment becomes a member of the model: the reader has checked it, and the process that
 * holds it is known. A segment that the reader refuses is shown as unreadable if a process holds
 * it.
 *
 * Threads: the caller holds the model lock alone.
 */
#ifndef RMM_FUSEFS_ADMISSION_H
#define RMM_FUSEFS_ADMISSION_H

#include "model/model.h"
#include "segments/dirs.h"

#define MEMBERS_OF_PROCESS_MAX 16u /* segments in a directory proc/<pid> */

typedef enum admission {
    ADMISSION_TAKEN,
    ADMISSION_LATER,   /* it is being made, or we are short of something: again */
    ADMISSION_REFUSED, /* counted and logged */
    ADMISSION_GONE
} admission_t;

/* Take the segment `entry->name` in, or what changed of it. */
admission_t members_admit(model_t *model, entry_t *entry);

#endif /* RMM_FUSEFS_ADMISSION_H */
