/* SPDX-License-Identifier: Apache-2.0 */
/* Rounding of sizes and addresses. The caller makes sure that nothing overflows. */
#ifndef RMM_CORE_ROUND_H
#define RMM_CORE_ROUND_H

#include <stdbool.h>
#include <stdint.h>

static inline bool rmm__is_power_of_two(uint64_t value)
{
    return value != 0 && (value & (value - 1)) == 0;
}

static inline uint64_t rmm__round_up(uint64_t value, uint64_t step)
{
    return (value + step - 1) / step * step;
}

/* rmm__round_up() to a power of two, without a division. */
static inline uint64_t rmm__align_up(uint64_t value, uint64_t align)
{
    return (value + align - 1) & ~(align - 1);
}

#endif /* RMM_CORE_ROUND_H */
