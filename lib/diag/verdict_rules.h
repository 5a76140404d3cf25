/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When the life of a block deserves a verdict: patterns of objects as in DrGPUM (ASPLOS 2023),
 * which need no more than when a block was allocated, first used, last used and freed. The
 * engine asks for blocks that are freed, a reader for those that are live.
 *
 * Host memory has no verdict but that it is leaked: what the host does with it is not seen.
 */
#ifndef RMM_DIAG_VERDICT_RULES_H
#define RMM_DIAG_VERDICT_RULES_H

#include <stdbool.h>
#include <stdint.h>

#include "diag/diag_format.h"

#define RMM_DIAG_LAUNCHES_BETWEEN 3u /* fewer are no pattern */
#define RMM_DIAG_IDLE_NS 10000000000ull

typedef enum rmm_diag_fate {
    RMM_DIAG_FATE_FREED,
    RMM_DIAG_FATE_LIVE,
    RMM_DIAG_FATE_LEFT /* the program has ended without freeing it */
} rmm_diag_fate_t;

typedef struct rmm_diag_life {
    rmm_diag_fate_t fate;
    int32_t device;
    uint64_t allocated_ns, first_use_ns, last_use_ns,
        end_ns; /* as in a row; end: now */
    uint64_t allocated_at, first_use_at, last_use_at, end_at; /* launches until then */
} rmm_diag_life_t;

/* False: verdicts are not looked for, or were not when the block was allocated, so that uses of it
 * may be missing. since_ns: 0, or since when. */
static inline bool rmm__diag_is_judged(uint64_t allocated_ns, uint64_t since_ns)
{
    return since_ns != 0 && allocated_ns >= since_ns;
}

/* True, and for how long the block wasted memory, if the verdict applies to it. */
bool rmm__diag_verdict_applies(
    const rmm_diag_life_t *life, rmm_diag_verdict_t verdict, uint64_t *wasted_ns_out);

/* Bytes x milliseconds; the largest number if it is larger. */
uint64_t rmm__diag_byte_ms(uint64_t bytes, uint64_t wasted_ns);

/* Blocks of about one size: the number of bits of it. */
uint32_t rmm__diag_size_class(uint64_t bytes);

#endif /* RMM_DIAG_VERDICT_RULES_H */
