/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of verdicts; see verdict_rules.h. */
#include "diag/verdict_rules.h"

/* A reader may be given any numbers. */
static uint64_t between(uint64_t from, uint64_t to)
{
    return to > from ? to - from : 0;
}

static bool is_apart(uint64_t from, uint64_t to)
{
    return between(from, to) >= RMM_DIAG_LAUNCHES_BETWEEN;
}

/* Since it was of use, or since it is there. */
static uint64_t unused_ns(const rmm_diag_life_t *life)
{
    uint64_t from = life->first_use_ns != 0 ? life->last_use_ns : life->allocated_ns;
    return between(from, life->end_ns);
}

static bool is_never_used(const rmm_diag_life_t *life)
{
    return life->first_use_ns == 0 && (life->fate != RMM_DIAG_FATE_LIVE ||
                                       is_apart(life->allocated_at, life->end_at));
}

static bool is_idle(const rmm_diag_life_t *life)
{
    return life->fate != RMM_DIAG_FATE_FREED && life->first_use_ns != 0 &&
           is_apart(life->last_use_at, life->end_at) &&
           unused_ns(life) >= RMM_DIAG_IDLE_NS;
}

bool rmm__diag_verdict_applies(
    const rmm_diag_life_t *life, rmm_diag_verdict_t verdict, uint64_t *wasted_ns_out)
{
    bool is_used = life->first_use_ns != 0;
    *wasted_ns_out = unused_ns(life);
    if (life->device < 0 && verdict != RMM_DIAG_LEAKED) {
        return false;
    }
    switch (verdict) {
    case RMM_DIAG_NEVER_USED:
        return is_never_used(life);
    case RMM_DIAG_ALLOCATED_EARLY:
        *wasted_ns_out = between(life->allocated_ns, life->first_use_ns);
        return is_used && is_apart(life->allocated_at, life->first_use_at);
    case RMM_DIAG_FREED_LATE:
        return is_used && life->fate == RMM_DIAG_FATE_FREED &&
               is_apart(life->last_use_at, life->end_at);
    case RMM_DIAG_IDLE:
        return is_idle(life);
    case RMM_DIAG_LEAKED:
        return life->fate == RMM_DIAG_FATE_LEFT;
    default:
        return false;
    }
}

uint64_t rmm__diag_byte_ms(uint64_t bytes, uint64_t wasted_ns)
{
    double byte_ms = (double)bytes * (double)wasted_ns / 1e6;
    return byte_ms < 1.8e19 ? (uint64_t)byte_ms : UINT64_MAX;
}

uint32_t rmm__diag_size_class(uint64_t bytes)
{
    uint32_t bits = 0;
    for (; bytes > 0; bytes >>= 1) {
        bits++;
    }
    return bits;
}
