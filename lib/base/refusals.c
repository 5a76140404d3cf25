/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts and logs the calls that resources refuse, and the faults that they notice.
 */
#include "base/resource_impl.h"

#include <inttypes.h>

#include "log/log.h"

RMM_COLD rmm_status_t rmm__resource_refuse_null(
    rmm_resource_t *mr, rmm_resource_t *upstream, const rmm_request_t *request)
{
    rmm__resource_dealloc(upstream, NULL, request);
    return rmm__error(
        RMM_ERR_BAD_ALLOC, "%s '%s': %s '%s' returned RMM_OK with NULL for %zu bytes",
        rmm_resource_type(mr), mr->name, rmm_resource_type(upstream), upstream->name,
        request->bytes);
}

RMM_COLD void rmm__resource_refuse_free(
    rmm_resource_t *mr, const void *ptr, const rmm_request_t *request, const char *why)
{
    rmm__accounting_invalid_free(&mr->accounting);
    if (request->refused != NULL) {
        *request->refused = true;
    }
    rmm__log_error(
        "%s '%s' (%" PRIu32 "): refused free of %p bytes %zu: %s",
        rmm_resource_type(mr), mr->name, mr->instance_id, ptr, request->bytes, why);
}

RMM_COLD void
rmm__resource_warn_stale(const rmm_resource_t *mr, const void *ptr, size_t bytes)
{
    rmm__log_warn(
        "%s '%s': %p bytes %zu was freed elsewhere, not through this resource: no "
        "longer counted",
        rmm_resource_type(mr), mr->name, ptr, bytes);
}
