/* SPDX-License-Identifier: Apache-2.0 */
/* A pool's part of an export: a handle for each piece that holds the block (sharing.h). */
#include "resources/pool_resource.h"

#include <inttypes.h>

#include "resources/sharing.h"

/* In a driver scope. */
static rmm_status_t export_pieces(
    const pool_resource_t *self, uint32_t type, const engine_exported_t *found,
    rmm_shared_t *shared)
{
    for (uint32_t i = 0; i < shared->count; i++) {
        int error = self->driver->physical_export(
            found[i].physical, type, &shared->parts[i].handle);

        if (error != RMM_DRIVER_OK) {
            return rmm__sharing_export_error(self->driver, error);
        }
        shared->parts[i].bytes = found[i].bytes;
    }
    return RMM_OK;
}

static void withdraw_pieces(rmm_shared_t *shared)
{
    const pool_resource_t *self = shared->owner;

    rmm__engine_export_withdraw(self->engine, shared->found, shared->found_count);
}

static rmm_status_t share_block(
    pool_resource_t *self, const rmm_sharing_request_t *request, rmm_shared_t *shared)
{
    engine_exported_t *found;
    rmm_driver_scope_t scope;
    uint32_t count;
    rmm_status_t status =
        rmm__engine_export(self->engine, request->ptr, shared->bytes, &found, &count);

    if (status != RMM_OK) {
        return status;
    }
    shared->withdraw = withdraw_pieces;
    shared->owner = self;
    shared->found = found;
    shared->found_count = count;
    shared->kind = RMM_SHARING_PIECES;
    shared->offset =
        (uint64_t)((const char *)request->ptr - (const char *)found[0].address);
    status = rmm__shared_init(shared, count);
    if (status == RMM_OK) {
        status = rmm__driver_scope_enter(&scope, self->driver, self->base.device);
    }
    if (status == RMM_OK) {
        status = export_pieces(self, request->handle_type, found, shared);
        rmm__driver_scope_leave(&scope);
    }
    return status;
}

rmm_status_t rmm__pool_share(
    rmm_resource_t *mr, const rmm_sharing_request_t *request, rmm_shared_t *shared,
    bool *is_mine_out)
{
    pool_resource_t *self = pool_from_base(mr);
    uint32_t types = self->is_range ? rmm__engine_export_types(self->engine) : 0;
    uint64_t rest;
    rmm_status_t status;

    if (types == 0) {
        return RMM_OK;
    }
    *is_mine_out = true;
    if ((types & request->handle_type) == 0) {
        return rmm__error(
            RMM_ERR_UNSUPPORTED,
            "pool '%s': its memory has no fabric handles: the device or the system "
            "cannot "
            "make them (CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED, IMEX)",
            mr->name);
    }
    rest = rmm__engine_rest_of_block(self->engine, request->ptr);
    if (rest == 0) {
        return rmm__error(
            RMM_ERR_INVALID_ARGUMENT, "pool '%s': there is no live block at %p",
            mr->name, request->ptr);
    }
    status = rmm__sharing_cut(mr, request, rest, &shared->bytes);
    return status == RMM_OK ? share_block(self, request, shared) : status;
}
