/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers of a seed: the same in every run, and each user has its own sequence. */
#ifndef RMM_TESTS_HARNESS_RANDOM_H
#define RMM_TESTS_HARNESS_RANDOM_H

#include <stdint.h>

/* From 0 to below bound. Knuth's MMIX generator, of which the upper bits are good. */
static inline uint64_t draw(uint64_t *random, uint64_t bound)
{
    *random = *random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (*random >> 33) % bound;
}

#endif /* RMM_TESTS_HARNESS_RANDOM_H */
