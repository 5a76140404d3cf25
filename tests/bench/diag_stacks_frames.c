/* SPDX-License-Identifier: Apache-2.0 */
/* Built several times, each time into a shared object of its own. */
#include "diag_stacks_frames.h"

#define USE(memory) __asm__ volatile("" : : "r"(memory) : "memory")

/* Frames of different sizes. */
#define VARIANT(n, bytes)                                                              \
    __attribute__((noinline)) static void variant_##n(                                 \
        const way_t *way, uint32_t level)                                              \
    {                                                                                  \
        char room[bytes];                                                              \
                                                                                       \
        USE(room);                                                                     \
        way->descends[way_choice(way, level) % MODULES](way, level + 1);               \
        USE(room); /* no tail call */                                                  \
    }

VARIANT(0, 16)
VARIANT(1, 48)
VARIANT(2, 16)
VARIANT(3, 96)

void DESCEND(const way_t *way, uint32_t level)
{
    static void (*const variants[VARIANTS])(const way_t *, uint32_t) = {
        variant_0, variant_1, variant_2, variant_3};

    if (level == way->levels) {
        way->arrived(way->context);
    } else {
        variants[way_choice(way, level) / MODULES % VARIANTS](way, level);
    }
    USE(way); /* no tail call */
}
