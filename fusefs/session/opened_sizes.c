/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sizes of opened texts; see opened_sizes.h.
 */
#include "session/opened_sizes.h"

#include <time.h>

#include "core/clock.h"

void opened_sizes_init(opened_sizes_t *sizes)
{
    *sizes = (opened_sizes_t){.lock = PTHREAD_MUTEX_INITIALIZER};
}

void opened_sizes_fini(opened_sizes_t *sizes)
{
    pthread_mutex_destroy(&sizes->lock);
}

static bool is_by(const opened_size_t *item, const opened_by_t *by)
{
    return item->by.inode == by->inode && item->by.uid == by->uid &&
           item->by.thread == by->thread;
}

void opened_sizes_note(opened_sizes_t *sizes, const opened_by_t *by, size_t bytes)
{
    opened_size_t *chosen = &sizes->items[0]; /* that of this open, else the oldest */
    pthread_mutex_lock(&sizes->lock);
    for (size_t i = 0; i < OPENED_SIZES_MAX && !is_by(chosen, by); i++) {
        opened_size_t *item = &sizes->items[i];
        if (is_by(item, by) || item->since_ns < chosen->since_ns) {
            chosen = item;
        }
    }
    *chosen = (opened_size_t){*by, rmm__clock_ns(CLOCK_MONOTONIC), bytes};
    pthread_mutex_unlock(&sizes->lock);
}

bool opened_sizes_find(opened_sizes_t *sizes, const opened_by_t *by, size_t *bytes_out)
{
    const uint64_t now_ns = rmm__clock_ns(CLOCK_MONOTONIC);
    bool found = false;
    pthread_mutex_lock(&sizes->lock);
    for (size_t i = 0; i < OPENED_SIZES_MAX && !found; i++) {
        const opened_size_t *item = &sizes->items[i];
        found = is_by(item, by) && now_ns - item->since_ns < OPENED_SIZE_NS;
        *bytes_out = found ? item->bytes : *bytes_out;
    }
    pthread_mutex_unlock(&sizes->lock);
    return found;
}
