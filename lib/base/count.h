/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions by which a resource counts a block: at its slot, and at its location if a user holds
 * it. Up after the block was obtained and before any other thread has it; down before it can be
 * allocated again, by the same resource. What rounding adds to a block is counted at the location
 * of every block, also of one that no user holds.
 *
 * Threads: any. The *_locked calls are of a resource that writes all its accounting under one
 * lock, which is held.
 */
#ifndef RMM_BASE_COUNT_H
#define RMM_BASE_COUNT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/resource_impl.h"

/* At the slot and at the location, of a resource without such a lock. */
void rmm__count_alloc(
    rmm_resource_t *mr, const rmm_request_t *request, uint64_t padding);
void rmm__count_free(
    rmm_resource_t *mr, const rmm_request_t *request, uint64_t padding);

/* At the location alone: of a resource that counts its slot by itself. */
void rmm__count_user_alloc(
    rmm_resource_t *mr, bool is_user, uint64_t bytes, uint64_t padding);
void rmm__count_user_free(
    rmm_resource_t *mr, bool is_user, uint64_t bytes, uint64_t padding);

static inline void rmm__count_user_alloc_locked(
    rmm_resource_t *mr, bool is_user, uint64_t bytes, uint64_t padding)
{
    rmm_accounting_t *accounting = &mr->accounting;

    if (__builtin_expect(accounting->cell == NULL, false) &&
        !(is_user && rmm__location_take_cell(accounting))) {
        rmm__count_user_alloc(mr, is_user, bytes, padding);
        return;
    }
    if (padding != 0) {
        rmm__figure_change(&accounting->cell->padding_added, padding);
    }
    if (is_user) {
        rmm__location_alloc_in_cell(accounting, bytes);
    }
}

static inline void rmm__count_user_free_locked(
    rmm_resource_t *mr, bool is_user, uint64_t bytes, uint64_t padding)
{
    rmm_accounting_t *accounting = &mr->accounting;

    if (__builtin_expect(accounting->cell == NULL, false)) {
        rmm__count_user_free(mr, is_user, bytes, padding);
        return;
    }
    if (padding != 0) {
        rmm__figure_change(&accounting->cell->padding_removed, padding);
    }
    if (is_user) {
        rmm__location_free_in_cell(accounting, bytes);
    }
}

/* At the slot as well. */
static inline void rmm__count_alloc_locked(
    rmm_resource_t *mr, bool is_user, uint64_t bytes, uint64_t padding)
{
    rmm__count_user_alloc_locked(mr, is_user, bytes, padding);
    rmm__accounting_begin_exclusive(&mr->accounting);
    rmm__accounting_alloc_exclusive(&mr->accounting, bytes, padding);
    rmm__accounting_end_exclusive(&mr->accounting);
}

static inline void rmm__count_free_locked(
    rmm_resource_t *mr, bool is_user, uint64_t bytes, uint64_t padding)
{
    rmm__count_user_free_locked(mr, is_user, bytes, padding);
    rmm__accounting_begin_exclusive(&mr->accounting);
    rmm__accounting_free_exclusive(&mr->accounting, bytes, padding);
    rmm__accounting_end_exclusive(&mr->accounting);
}

#endif /* RMM_BASE_COUNT_H */
