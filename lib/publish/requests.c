/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the control page; see requests.h. What the segment says was obeyed is for the daemon
 * to read: which requests this process has taken it remembers in memory of its own.
 */
#include "publish/requests.h"

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

uint64_t rmm__requests_location_limit(uint32_t location)
{
    return atomic_load_explicit(
        &rmm__location_requests[location].limit_bytes, memory_order_relaxed);
}

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
