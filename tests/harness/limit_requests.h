/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an operator would ask for, written by the program itself into its own control page.
 * After its first resource: that decides which page it is.
 */
#ifndef RMM_TESTS_HARNESS_LIMIT_REQUESTS_H
#define RMM_TESTS_HARNESS_LIMIT_REQUESTS_H

#include "harness/harness.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/resource_impl.h"
#include "publish/publisher.h"

static inline rmm_control_page_t *control_page(void)
{
    return (rmm_control_page_t *)(uintptr_t)rmm__publisher.control;
}

static inline void limit_resource(const rmm_resource_t *mr, uint64_t limit_bytes)
{
    rmm_control_page_t *page = control_page();
    rmm_control_slot_t *slot =
        &page->slots[mr->accounting.slot - rmm__publisher.segment->slots];

    atomic_store(&slot->limit_bytes, limit_bytes);
    atomic_store(&slot->limit_of, mr->instance_id);
    atomic_store(&page->wanted, 1);
}

static inline void limit_location(const rmm_resource_t *mr, uint64_t limit_bytes)
{
    rmm_control_page_t *page = control_page();

    atomic_store(&page->locations[mr->accounting.location].limit_bytes, limit_bytes);
    atomic_store(&page->wanted, 1);
}

/* No limit anywhere, no trim to be made, no report. */
static inline void want_nothing(void)
{
    rmm_control_page_t *page = control_page();

    atomic_store(&page->wanted, 0);
    for (uint32_t i = 0; i < RMM_SEGMENT_LOCATIONS; i++) {
        atomic_store(&page->locations[i].limit_bytes, RMM_SEGMENT_NO_LIMIT);
    }
    for (uint32_t i = 0; i < RMM_SEGMENT_SLOTS; i++) {
        atomic_store(&page->slots[i].limit_bytes, RMM_SEGMENT_NO_LIMIT);
    }
}

static inline void ask_trim(uint32_t of, uint64_t keep_bytes)
{
    rmm_control_page_t *page = control_page();

    atomic_store(&page->trim_of, of);
    atomic_store(&page->trim_keep_bytes, keep_bytes);
    atomic_fetch_add(&page->trim_number, 1);
    atomic_store(&page->wanted, 1);
}

/* What the daemon does behind each request. */
static inline void wake_request_thread(void)
{
    _Atomic(uint32_t) *count = &control_page()->request_count;

    atomic_fetch_add(count, 1);
    (void)syscall(SYS_futex, count, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static inline bool trim_is_done(void)
{
    return atomic_load(&rmm__publisher.segment->header.trim_seen) ==
           atomic_load(&control_page()->trim_number);
}

static inline void ask_report(uint32_t rows)
{
    rmm_control_page_t *page = control_page();

    atomic_store(&page->report_rows, rows);
    atomic_fetch_add(&page->report_number, 1);
    atomic_store(&page->wanted, 1);
}

static inline bool report_is_done(void)
{
    return atomic_load(&rmm__publisher.segment->header.report_seen) ==
           atomic_load(&control_page()->report_number);
}

static inline uint64_t location_reserved(const rmm_resource_t *mr)
{
    return rmm__figure_get(&rmm__locations[mr->accounting.location].reserved_bytes);
}

static inline uint64_t limit_count_of(const rmm_resource_t *mr)
{
    return rmm__figure_get(&mr->accounting.slot->limit_count);
}

static inline uint64_t location_limit_count(const rmm_resource_t *mr)
{
    return rmm__figure_get(&rmm__locations[mr->accounting.location].limit_count);
}

#endif /* RMM_TESTS_HARNESS_LIMIT_REQUESTS_H */
