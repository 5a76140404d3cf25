/* SPDX-License-Identifier: Apache-2.0 */
/* Counting of resources without a lock of their own; see count.h. */
#include "base/count.h"

static void alloc_at_location(
    rmm_accounting_t *accounting, bool is_user, uint32_t stripe, uint64_t bytes,
    uint64_t padding)
{
    if (is_user) {
        rmm__location_alloc_striped(accounting, stripe, bytes, padding);
    } else if (padding != 0) {
        rmm__location_padding_striped(accounting, stripe, padding, 0);
    }
}

static void free_at_location(
    rmm_accounting_t *accounting, bool is_user, uint32_t stripe, uint64_t bytes,
    uint64_t padding)
{
    if (is_user) {
        rmm__location_free_striped(accounting, stripe, bytes, padding);
    } else if (padding != 0) {
        rmm__location_padding_striped(accounting, stripe, 0, padding);
    }
}

void rmm__count_alloc(
    rmm_resource_t *mr, const rmm_request_t *request, uint64_t padding)
{
    rmm_accounting_t *accounting = &mr->accounting;
    uint32_t stripe = rmm__stripe_here();

    alloc_at_location(accounting, request->user, stripe, request->bytes, padding);
    rmm__accounting_alloc_striped(accounting, stripe, request->bytes, padding);
}

void rmm__count_free(rmm_resource_t *mr, const rmm_request_t *request, uint64_t padding)
{
    rmm_accounting_t *accounting = &mr->accounting;
    uint32_t stripe = rmm__stripe_here();

    free_at_location(accounting, request->user, stripe, request->bytes, padding);
    rmm__accounting_free_striped(accounting, stripe, request->bytes, padding);
}

void rmm__count_user_alloc(
    rmm_resource_t *mr, bool is_user, uint64_t bytes, uint64_t padding)
{
    alloc_at_location(&mr->accounting, is_user, rmm__stripe_here(), bytes, padding);
}

void rmm__count_user_free(
    rmm_resource_t *mr, bool is_user, uint64_t bytes, uint64_t padding)
{
    free_at_location(&mr->accounting, is_user, rmm__stripe_here(), bytes, padding);
}
