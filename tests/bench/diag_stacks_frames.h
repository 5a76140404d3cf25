/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that call each other on a way that a number chooses; see diag_stacks.c. */
#ifndef RMM_BENCH_DIAG_STACKS_FRAMES_H
#define RMM_BENCH_DIAG_STACKS_FRAMES_H

#include <stdint.h>

enum { MODULES = 4, VARIANTS = 4 };

typedef struct way {
    void (*const *descends)(const struct way *way, uint32_t level); /* of each module */
    uint32_t number;
    uint32_t first,
        end; /* levels at which ways part; below and above all are the same */
    uint32_t levels;
    void (*arrived)(void *context);
    void *context;
} way_t;

/* Where the way goes from a level: a call in a module. */
static inline uint32_t way_choice(const way_t *way, uint32_t level)
{
    uint32_t mixed = (way->number + 1) * 64 + level;

    if (level < way->first || level >= way->end) {
        return level;
    }
    mixed = (mixed ^ mixed >> 16) * 0x85ebca6bu; /* as MurmurHash3 ends */
    mixed = (mixed ^ mixed >> 13) * 0xc2b2ae35u;
    return mixed ^ mixed >> 16;
}

void descend_0(const way_t *way, uint32_t level);
void descend_1(const way_t *way, uint32_t level);
void descend_2(const way_t *way, uint32_t level);
void descend_3(const way_t *way, uint32_t level);

#endif /* RMM_BENCH_DIAG_STACKS_FRAMES_H */
