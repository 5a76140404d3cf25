/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of an async resource in an export (sharing.h): the handle of its pool, and what names
 * the block in it. The block must be freed by the importer first, which CUDA requires.
 */
#include "resources/mempool.h"

#include <inttypes.h>
#include <string.h>

#include "resources/sharing.h"

/* The block that has this byte; bytes 0: none. */
static rmm_pointer_map_entry_t find_block(rmm_tracked_t *tracked, const void *ptr)
{
    rmm_pointer_map_entry_t entry = {.ptr = NULL, .bytes = 0, .owner = NULL};
    size_t at = 0;
    bool found;

    rmm__mutex_lock(&tracked->lock);
    found = rmm__pointer_map_find_entry(&tracked->blocks, ptr, &entry);
    while (!found && rmm__pointer_map_any(&tracked->blocks, &at, &entry)) {
        found = (uintptr_t)ptr - (uintptr_t)entry.ptr < entry.bytes;
        at++;
    }
    rmm__mutex_unlock(&tracked->lock);
    entry.bytes = found ? entry.bytes : 0;
    return entry;
}

static int export_block(
    const rmm_mempool_t *pool, uint32_t type, const void *block, rmm_shared_t *shared)
{
    int error =
        pool->driver->mempool_export(pool->handle, type, &shared->parts[0].handle);

    return error == RMM_DRIVER_OK
               ? pool->driver->mempool_export_pointer(block, shared->pointer)
               : error;
}

rmm_status_t rmm__mempool_share_block(
    rmm_resource_t *mr, const rmm_sharing_request_t *request, rmm_shared_t *shared,
    bool *is_mine_out)
{
    const rmm_mempool_resource_t *self =
        RMM_CONTAINER_OF(rmm__tracked_from_base(mr), rmm_mempool_resource_t, tracked);
    rmm_pointer_map_entry_t block;
    rmm_driver_scope_t scope;
    rmm_status_t status;
    int error;

    if ((self->handle_types & request->handle_type) == 0) {
        return RMM_OK;
    }
    *is_mine_out = true;
    block = find_block(rmm__tracked_from_base(mr), request->ptr);
    if (block.bytes == 0) {
        return rmm__error(
            RMM_ERR_INVALID_ARGUMENT, "%s '%s': there is no live block at %p",
            rmm_resource_type(mr), mr->name, request->ptr);
    }
    shared->kind = RMM_SHARING_MEMPOOL;
    shared->offset = (uint64_t)((const char *)request->ptr - (const char *)block.ptr);
    status =
        rmm__sharing_cut(mr, request, block.bytes - shared->offset, &shared->bytes);
    if (status == RMM_OK) {
        status = rmm__shared_init(shared, 1);
    }
    if (status == RMM_OK) {
        status = rmm__driver_scope_enter(&scope, self->pool->driver, mr->device);
    }
    if (status != RMM_OK) {
        return status;
    }
    shared->parts[0].bytes = block.bytes;
    error = export_block(self->pool, request->handle_type, block.ptr, shared);
    rmm__driver_scope_leave(&scope);
    return error == RMM_DRIVER_OK
               ? RMM_OK
               : rmm__sharing_export_error(self->pool->driver, error);
}
