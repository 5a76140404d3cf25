/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The latest snapshot, for all readers of a text about the whole node at about the same time.
 *
 * A snapshot that took less than SNAPSHOT_FAST_NS to read is never used twice: on most nodes
 * every text is as fresh as the figures in the other files. A slower one is used again until it
 * is SNAPSHOT_REUSE times as old as it took to read, at most SNAPSHOT_OLD_NS. So snapshots take
 * at most 2 % of a processor, however many readers there are and however often they read.
 *
 * Threads: any. One thread reads a snapshot; those that need one meanwhile wait for it. The caller
 * holds no lock; `lock` is taken before the model's.
 */
#ifndef RMM_FUSEFS_SNAPSHOTS_H
#define RMM_FUSEFS_SNAPSHOTS_H

#include "model/snapshot.h"
#include "programs/watch.h"

#define SNAPSHOT_FAST_NS 1000000u
#define SNAPSHOT_REUSE 50u
#define SNAPSHOT_OLD_NS 1000000000u

typedef struct snapshots {
    pthread_mutex_t lock;
    snapshot_t *latest; /* NULL: none */
} snapshots_t;

void snapshots_init(snapshots_t *snapshots);
void snapshots_fini(snapshots_t *snapshots);

/* NULL: no memory. The caller releases it. */
snapshot_t *snapshots_take(snapshots_t *snapshots, watch_t *watch);

/* Free the latest one if it is too old to be used again. */
void snapshots_expire(snapshots_t *snapshots);

#endif /* RMM_FUSEFS_SNAPSHOTS_H */
