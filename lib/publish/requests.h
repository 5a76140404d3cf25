/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits, trims and reports that an operator requested through /rmm: the process's side of the
 * control page. Without a request an allocation loads one word, which is rarely written: while
 * it is 0, nothing else here is read. The word also distinguishes a forked child, whose page is
 * all zeros, from a limit of 0 bytes. The program's own calls test that word and the word of the
 * trace together.
 *
 * Threads: any, without a lock.
 */
#ifndef RMM_PUBLISH_REQUESTS_H
#define RMM_PUBLISH_REQUESTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "publish/accounting.h"

/* Never NULL; set by rmm__publish_open(). */
extern const _Atomic(uint32_t) *rmm__requests_wanted;

/* There is a limit, a share, a trim or a report. */
static inline bool rmm__requests_pending(void)
{
    return __builtin_expect(
        atomic_load_explicit(rmm__requests_wanted, memory_order_relaxed) != 0, 0);
}

extern const _Atomic(uint64_t) *rmm__requests_attention;

/* The same, or the trace is on. */
static inline bool rmm__requests_or_trace(void)
{
    return __builtin_expect(
        atomic_load_explicit(rmm__requests_attention, memory_order_relaxed) != 0, 0);
}

/* RMM_SEGMENT_NO_LIMIT: none. */
uint64_t rmm__requests_limit(const rmm_accounting_t *accounting, uint32_t instance_id);

/* The least of the location's limit and of its share of the limits of groups. Is
 * share->share_bytes RMM_SHARE_ASK, it does not count: a growth asks first. Sequentially
 * consistent: a promise that was made before is seen by the daemon, or the share as it
 * lowered it is seen here. */
uint64_t
rmm__requests_location_limit(uint32_t location, const rmm_control_share_t **share_out);
bool rmm__requests_is_first(uint32_t location);

/*
 * A growth of so many bytes needs a larger share: ask the daemon for it, and wait until it has
 * answered, at most RMM_SHARE_WAIT_NS, or RMM_SHARE_FIRST_WAIT_NS where it would go on without a
 * limit otherwise; then the share is as large as can be. A daemon that did not
 * answer is not asked again until it has written something. False: no answer.
 */
#define RMM_SHARE_WAIT_NS 500000000u
#define RMM_SHARE_FIRST_WAIT_NS 2000000000u
bool rmm__requests_ask_share(uint32_t location, uint64_t bytes);

/* Rises with each request, and is woken as a shared futex. Constant once a resource is there. */
const _Atomic(uint32_t) *rmm__requests_count(void);

typedef struct rmm_trim_request {
    uint32_t number;
    uint32_t of; /* as in the control page */
    uint64_t keep_bytes;
} rmm_trim_request_t;

/* True: the caller obeys it, and then calls rmm__requests_trimmed(). Each request goes to one
 * thread. */
bool rmm__requests_take_trim(rmm_trim_request_t *request_out);
void rmm__requests_trimmed(const rmm_trim_request_t *request);

typedef struct rmm_report_request {
    uint32_t number;
    uint32_t rows; /* at most; 0: no reader waits for it */
} rmm_report_request_t;

/* The same for a report of the blocks. */
bool rmm__requests_take_report(rmm_report_request_t *request_out);
void rmm__requests_reported(const rmm_report_request_t *request);

#endif /* RMM_PUBLISH_REQUESTS_H */
