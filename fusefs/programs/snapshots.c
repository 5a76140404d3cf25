/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shares snapshots; see snapshots.h.
 */
#include "programs/snapshots.h"

#include <time.h>

void snapshots_init(snapshots_t *snapshots)
{
    pthread_mutex_init(&snapshots->lock, NULL);
    snapshots->latest = NULL;
}

void snapshots_fini(snapshots_t *snapshots)
{
    snapshot_release(snapshots->latest);
    pthread_mutex_destroy(&snapshots->lock);
}

static bool is_useful(const snapshot_t *snapshot)
{
    return snapshot != NULL &&
           rmm__clock_ns(CLOCK_MONOTONIC) - snapshot->begun_ns < snapshot->useful_ns;
}

static uint64_t useful_ns(uint64_t cost_ns)
{
    if (cost_ns < SNAPSHOT_FAST_NS) {
        return 0;
    }
    uint64_t useful = cost_ns * SNAPSHOT_REUSE;
    return useful < SNAPSHOT_OLD_NS ? useful : SNAPSHOT_OLD_NS;
}

/* Between pieces others get the model's lock. */
static snapshot_t *read_snapshot(watch_t *watch)
{
    uint64_t begun_ns = rmm__clock_ns(CLOCK_MONOTONIC);
    uint64_t cpu_ns = rmm__clock_ns(CLOCK_THREAD_CPUTIME_ID);
    memory_t *memory = &watch_model(watch)->budget.memory;
    snapshot_t *snapshot = snapshot_begin(watch_begin(watch), memory);
    while (snapshot != NULL && snapshot_continue(snapshot, watch_model(watch))) {
        watch_pause(watch);
    }
    watch_end(watch);
    if (snapshot != NULL && snapshot->failed) {
        snapshot_release(snapshot);
        return NULL;
    }
    if (snapshot != NULL) {
        snapshot->begun_ns = begun_ns;
        snapshot->useful_ns =
            useful_ns(rmm__clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_ns);
    }
    return snapshot;
}

snapshot_t *snapshots_take(snapshots_t *snapshots, watch_t *watch)
{
    pthread_mutex_lock(&snapshots->lock);
    if (!is_useful(snapshots->latest)) {
        snapshot_release(snapshots->latest);
        snapshots->latest = read_snapshot(watch);
    }
    snapshot_t *snapshot = snapshots->latest;
    if (snapshot != NULL) {
        (void)snapshot_retain(snapshot);
    }
    pthread_mutex_unlock(&snapshots->lock);
    return snapshot;
}

void snapshots_expire(snapshots_t *snapshots)
{
    if (pthread_mutex_trylock(&snapshots->lock) != 0) {
        return; /* a new one is being read */
    }
    if (!is_useful(snapshots->latest)) {
        snapshot_release(snapshots->latest);
        snapshots->latest = NULL;
    }
    pthread_mutex_unlock(&snapshots->lock);
}
