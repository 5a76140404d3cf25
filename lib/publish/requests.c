/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the control page; see requests.h. What the segment says was obeyed is for the daemon
 * to read: which requests this process has taken it remembers in memory of its own.
 */
#include "publish/requests.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"
#include "publish/publisher.h"

static const _Atomic(uint32_t) nothing_wanted;
static const _Atomic(uint64_t) nothing_attended;
const _Atomic(uint32_t) *rmm__requests_wanted = &nothing_wanted;
const _Atomic(uint64_t) *rmm__requests_attention = &nothing_attended;

static _Atomic(uint32_t) trim_taken; /* its number; a page begins with 0 */
static _Atomic(uint32_t) report_taken;

uint64_t rmm__requests_limit(const rmm_accounting_t *accounting, uint32_t instance_id)
{
    const rmm_control_slot_t *requests = accounting->requests;

    /* acquire: the daemon writes the limit first */
    return atomic_load_explicit(&requests->limit_of, memory_order_acquire) ==
                   instance_id
               ? atomic_load_explicit(&requests->limit_bytes, memory_order_relaxed)
               : RMM_SEGMENT_NO_LIMIT;
}

uint64_t
rmm__requests_location_limit(uint32_t location, const rmm_control_share_t **share_out)
{
    const rmm_control_share_t *share = &rmm__publisher.control->shares[location];
    uint64_t limit = atomic_load_explicit(
        &rmm__location_requests[location].limit_bytes, memory_order_relaxed);
    /* seq_cst: pairs with the fence of segment_growth.c */
    uint64_t bytes = atomic_load_explicit(&share->share_bytes, memory_order_seq_cst);

    *share_out = NULL;
    if (bytes < RMM_SHARE_ASK && bytes <= limit) {
        *share_out = share;
        return bytes;
    }
    return limit;
}

bool rmm__requests_is_first(uint32_t location)
{
    return atomic_load_explicit(
               &rmm__publisher.control->shares[location].share_bytes,
               memory_order_relaxed) == RMM_SHARE_ASK;
}

/* --- asking for a share --------------------------------------------------------------- */

/* 1 + request_count when the daemon last did not answer in time; 0: it always did. */
static _Atomic(uint64_t) silent_since;

static bool is_answered(const rmm_control_share_t *share, uint32_t number)
{
    /* acquire: the daemon writes the share first */
    return (int32_t)(atomic_load_explicit(&share->answered, memory_order_acquire) - number) >=
           0;
}

/* Numbers of requests are answered in order, so a later answer is one, too. */
static bool
wait_for_answer(const rmm_control_share_t *share, uint32_t number, uint64_t most_ns)
{
    const _Atomic(uint32_t) *count = rmm__requests_count();
    const uint64_t until = rmm__clock_ns(CLOCK_MONOTONIC) + most_ns;
    uint64_t now;

    do {
        /* acquire: the daemon writes it last */
        uint32_t seen = atomic_load_explicit(count, memory_order_acquire);

        if (is_answered(share, number)) {
            return true;
        }
        now = rmm__clock_ns(CLOCK_MONOTONIC);
        if (now < until) {
            const struct timespec rest = {
                .tv_sec = (time_t)((until - now) / 1000000000u),
                .tv_nsec = (long)((until - now) % 1000000000u)};

            (void)syscall(SYS_futex, count, FUTEX_WAIT, seen, &rest, NULL, 0);
        }
    } while (now < until);
    return is_answered(share, number);
}

bool rmm__requests_ask_share(uint32_t location, uint64_t bytes)
{
    rmm_segment_location_t *own = &rmm__locations[location];
    const _Atomic(uint32_t) *count = rmm__requests_count();
    uint32_t number;
    bool good;

    if (rmm__publisher.state != RMM_PUBLISH_SHARED ||
        atomic_load_explicit(&silent_since, memory_order_relaxed) ==
            UINT64_C(1) + atomic_load_explicit(count, memory_order_relaxed)) {
        return false;
    }
    atomic_fetch_add_explicit(&own->wanted_bytes, bytes, memory_order_relaxed);
    /* release: the daemon that sees the number sees the bytes */
    number =
        atomic_fetch_add_explicit(&own->wanted_number, 1, memory_order_release) + 1;
    rmm__segment_touch();
    good = wait_for_answer(
        &rmm__publisher.control->shares[location], number,
        rmm__requests_is_first(location) ? RMM_SHARE_FIRST_WAIT_NS : RMM_SHARE_WAIT_NS);
    atomic_fetch_sub_explicit(&own->wanted_bytes, bytes, memory_order_relaxed);
    if (!good) {
        atomic_store_explicit(
            &silent_since,
            UINT64_C(1) + atomic_load_explicit(count, memory_order_relaxed),
            memory_order_relaxed);
    }
    return good;
}

/* --- requests of all kinds -------------------------------------------------------------- */

const _Atomic(uint32_t) *rmm__requests_count(void)
{
    return &rmm__publisher.control->request_count;
}

/* False: it is not new, or another thread took it. */
static bool take_number(
    const _Atomic(uint32_t) *number, _Atomic(uint32_t) *taken, uint32_t *number_out)
{
    uint32_t before = atomic_load_explicit(taken, memory_order_relaxed);

    /* acquire: the daemon writes the number last */
    *number_out = atomic_load_explicit(number, memory_order_acquire);
    return *number_out != before &&
           atomic_compare_exchange_strong_explicit(
               taken, &before, *number_out, memory_order_relaxed, memory_order_relaxed);
}

bool rmm__requests_take_trim(rmm_trim_request_t *request_out)
{
    const rmm_control_page_t *page = rmm__publisher.control;

    if (!take_number(&page->trim_number, &trim_taken, &request_out->number)) {
        return false;
    }
    request_out->of = atomic_load_explicit(&page->trim_of, memory_order_relaxed);
    request_out->keep_bytes =
        atomic_load_explicit(&page->trim_keep_bytes, memory_order_relaxed);
    return true;
}

void rmm__requests_trimmed(const rmm_trim_request_t *request)
{
    /* release: a reader that sees it obeyed sees the figures that it left */
    atomic_store_explicit(
        &rmm__publisher.segment->header.trim_seen, request->number,
        memory_order_release);
}

bool rmm__requests_take_report(rmm_report_request_t *request_out)
{
    const rmm_control_page_t *page = rmm__publisher.control;

    if (!take_number(&page->report_number, &report_taken, &request_out->number)) {
        return false;
    }
    request_out->rows = atomic_load_explicit(&page->report_rows, memory_order_relaxed);
    return true;
}

void rmm__requests_reported(const rmm_report_request_t *request)
{
    /* release: a reader that sees it obeyed sees its file */
    atomic_store_explicit(
        &rmm__publisher.segment->header.report_seen, request->number,
        memory_order_release);
}
