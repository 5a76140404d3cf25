/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Obeys what an operator requested through /rmm: limits on what a resource hands out and on
 * what the process holds from a GPU, and trims.
 *
 * A limit is never exceeded, however many threads allocate: a thread reserves the bytes first,
 * and a reservation counts against the limit until the memory is counted or the attempt has
 * failed. So if two threads race for the last bytes, one may be refused although the other then
 * fails. Memory that was taken before the limit was set stays.
 *
 * Threads: any. No lock held by the caller: a growth that a limit would refuse first trims the
 * other resources of the process there.
 */
#ifndef RMM_BASE_LIMITS_H
#define RMM_BASE_LIMITS_H

#include <stdint.h>

#include <rmm/resource.h>

#include "publish/refusal_ring.h"
#include "publish/requests.h"

/* On the thread of request_thread.c, while rmm__requests_pending(). */
void rmm__limits_obey_idle(void);

/* One while rmm__requests_pending(). */
rmm_status_t
rmm__limits_begin_growth(rmm_resource_t *mr, uint64_t bytes, uint64_t *promised_out);
void rmm__limits_end_growth(const rmm_resource_t *mr, uint64_t promised);

/*
 * Before `mr` takes so many bytes from the driver, and after they were counted at the location
 * or were not obtained. RMM_OK, or RMM_ERR_OUT_OF_MEMORY: a limit of the location forbids it,
 * and nothing is to be ended.
 */
static inline rmm_status_t
rmm__growth_begin(rmm_resource_t *mr, uint64_t bytes, uint64_t *promised_out)
{
    *promised_out = 0;
    return rmm__requests_pending() ? rmm__limits_begin_growth(mr, bytes, promised_out)
                                   : RMM_OK;
}

static inline void rmm__growth_end(const rmm_resource_t *mr, uint64_t promised)
{
    if (__builtin_expect(promised != 0, 0)) {
        rmm__limits_end_growth(mr, promised);
    }
}

/* Of this thread's last request: the limit that refused it. Forgotten with this call, and with the
 * next request that a limit could refuse. */
rmm_refused_by_t rmm__limits_take_refusal(void);

/* After it took more than it could know: RMM_OK, or RMM_ERR_OUT_OF_MEMORY if the location is
 * above its limit now. */
rmm_status_t rmm__growth_check(rmm_resource_t *mr, uint64_t bytes);

#endif /* RMM_BASE_LIMITS_H */
