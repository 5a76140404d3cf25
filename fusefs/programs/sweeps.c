/* SPDX-License-Identifier: Apache-2.0 */
/* Sweeps of directories in turns; see sweeps.h. */
#include "programs/sweeps.h"

#include <time.h>

#include "core/clock.h"

#define NAMES_OF_STEP 64u       /* 0.5 ms */
#define STEPS_NS (5 * 1000000u) /* of five times a second, if nothing else happens */

static bool is_under_way(const sweeps_t *sweeps, const segment_dir_t *dir)
{
    for (uint32_t i = 0; i < sweeps->count; i++) {
        if (sweeps->items[i].device == dir->device &&
            sweeps->items[i].inode == dir->inode) {
            return true;
        }
    }
    return false;
}

void sweeps_begin(sweeps_t *sweeps, const dirs_t *dirs, long only_uid)
{
    for (size_t i = 0; i < dirs->count && sweeps->count < SWEEPS_MAX; i++) {
        const segment_dir_t *dir = dirs->list[i];
        rmm_sweep_t *sweep = dir->gone || is_under_way(sweeps, dir)
                                 ? NULL
                                 : rmm__sweep_begin(dir->fd, only_uid);
        if (sweep != NULL) {
            sweeps->items[sweeps->count++] =
                (sweep_of_t){dir->device, dir->inode, sweep};
        }
    }
}

static void end(sweeps_t *sweeps, uint32_t index)
{
    (void)rmm__sweep_end(sweeps->items[index].sweep);
    sweeps->items[index] = sweeps->items[--sweeps->count];
}

void sweeps_step(sweeps_t *sweeps)
{
    const uint64_t until = rmm__clock_ns(CLOCK_MONOTONIC) + STEPS_NS;
    while (sweeps->count > 0 && rmm__clock_ns(CLOCK_MONOTONIC) < until) {
        const uint32_t index = sweeps->next++ % sweeps->count;
        if (!rmm__sweep_step(sweeps->items[index].sweep, NAMES_OF_STEP)) {
            end(sweeps, index);
        }
    }
}

void sweeps_fini(sweeps_t *sweeps)
{
    while (sweeps->count > 0) {
        end(sweeps, sweeps->count - 1);
    }
}
