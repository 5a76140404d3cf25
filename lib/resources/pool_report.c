/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The error message of a pool when all steps of the ladder failed.
 */
#include "resources/pool_resource.h"

#include <inttypes.h>
#include <stdio.h>

#include "log/log.h"

RMM_COLD rmm_status_t rmm__pool_give_up(
    pool_resource_t *self, const rmm_request_t *request, rmm_status_t status)
{
    const rmm_resource_t *mr = &self->base;
    char reason[RMM_ERROR_BYTES];
    engine_figures_t figures;
    const char *since;
    uint64_t device_free;
    uint64_t free_bytes, largest_bytes;

    snprintf(reason, sizeof(reason), "%.300s", rmm_last_error_message());
    device_free = rmm__device_free_lately(&self->device_free, mr, self->driver, &since);
    rmm__engine_figures(self->engine, &figures);
    free_bytes = figures.free_bytes;
    largest_bytes = figures.largest_free_bytes;
    if (status == RMM_ERR_OUT_OF_MEMORY) {
        rmm__accounting_oom(&self->base.accounting);
    }
    return rmm__error_cuda(
        status, rmm_last_cuda_error(),
        "%s '%s': no room for %zu bytes: largest free %" PRIu64 ", total free %" PRIu64
        ", reserved %" PRIu64 ", device free %" PRIu64 "%s, fragmentation %.3f; %s",
        rmm_resource_type(mr), mr->name, request->bytes, largest_bytes, free_bytes,
        figures.reserved_bytes, device_free, since,
        free_bytes != 0 ? 1.0 - (double)largest_bytes / (double)free_bytes : 0.0,
        reason);
}
