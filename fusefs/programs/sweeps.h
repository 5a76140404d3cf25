/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Removes what dead processes left in the directories of segments, of all of them in turns: one
 * in which a user has left millions of names delays neither the others nor the thread that
 * sweeps.
 *
 * Threads: the background thread only.
 */
#ifndef RMM_FUSEFS_SWEEPS_H
#define RMM_FUSEFS_SWEEPS_H

#include <stdbool.h>
#include <stdint.h>

#include "segment/runtime_dir.h"
#include "segments/dirs.h"

#define SWEEPS_MAX 1024u

typedef struct sweep_of {
    uint64_t device, inode; /* of the directory */
    rmm_sweep_t *sweep;
} sweep_of_t;

typedef struct sweeps {
    sweep_of_t items[SWEEPS_MAX]; /* that are not over */
    uint32_t count, next;
} sweeps_t;

/* Begin a sweep of each directory that is not being swept. Model lock held. */
void sweeps_begin(sweeps_t *sweeps, const dirs_t *dirs, long only_uid);
/* Some milliseconds of it. */
void sweeps_step(sweeps_t *sweeps);
void sweeps_fini(sweeps_t *sweeps);

#endif /* RMM_FUSEFS_SWEEPS_H */
