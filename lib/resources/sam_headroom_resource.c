/* SPDX-License-Identifier: Apache-2.0 */
/*
 * System memory that prefers the device while the device has room; system_memory.h has
 * the common part.
 *
 * The location of memory is a property of whole pages, and advice about pages of the
 * heap would stay in force for their next user. So a block of a page or more is a
 * mapping of its own. It shares its pages with no other block, and the advice ends with
 * it.
 */
#include <rmm/sam_headroom_resource.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "core/assert.h"
#include "core/host_memory.h"
#include "core/options.h"
#include "log/log.h"
#include "resources/system_memory.h"

/* --- mappings ----------------------------------------------------------------------- */

static size_t mapped_bytes(const rmm_system_memory_t *self, size_t bytes)
{
    return (bytes + self->page_bytes - 1) / self->page_bytes * self->page_bytes;
}

static bool has_own_pages(const rmm_system_memory_t *self, size_t bytes)
{
    return bytes >= self->page_bytes;
}

static void unmap(char *from, size_t bytes)
{
    if (bytes != 0) {
        munmap(from, bytes);
    }
}

/* Aligned by mapping more and cutting off both ends. */
static char *map_aligned(size_t bytes, size_t align)
{
    char *start = mmap(
        NULL, bytes + align, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
        0);
    size_t head;

    if (start == MAP_FAILED) {
        return NULL;
    }
    head = (align - (uintptr_t)start % align) % align;
    unmap(start, head);
    unmap(start + head + bytes, align - head);
    return start + head;
}

static void *map_pages(const rmm_system_memory_t *self, const rmm_request_t *request)
{
    size_t align =
        request->align > self->page_bytes ? request->align : self->page_bytes;

    return rmm__host_memory_should_fail()
               ? NULL
               : map_aligned(mapped_bytes(self, request->bytes), align);
}

/* --- where they are to lie ---------------------------------------------------------- */

/* How many bytes of a block, in whole pages, the device has room for. */
static size_t
device_part(const rmm_system_memory_t *self, uint64_t free_bytes, size_t block_bytes)
{
    uint64_t room =
        free_bytes > self->headroom_bytes ? free_bytes - self->headroom_bytes : 0;

    room -= room % self->page_bytes;
    return room < block_bytes ? (size_t)room : block_bytes;
}

static int
prefer(const rmm_system_memory_t *self, char *block, size_t bytes, int device)
{
    return bytes != 0 ? self->driver->mem_prefer(block, bytes, device) : RMM_DRIVER_OK;
}

/* In a scope. */
static int advise(const rmm_system_memory_t *self, char *block, size_t bytes)
{
    uint64_t free_bytes, total_bytes;
    int error = self->driver->memory_info(&free_bytes, &total_bytes);
    size_t part;

    if (error != RMM_DRIVER_OK) {
        return error;
    }
    part = device_part(self, free_bytes, bytes);
    error = prefer(self, block, part, self->tracked.base.device);
    return error == RMM_DRIVER_OK
               ? prefer(self, block + part, bytes - part, RMM_DRIVER_HOST)
               : error;
}

static rmm_status_t
place_pages(const rmm_system_memory_t *self, char *block, size_t bytes)
{
    rmm_driver_scope_t scope;
    rmm_status_t status =
        rmm__driver_scope_enter(&scope, self->driver, self->tracked.base.device);
    int error;

    if (status != RMM_OK) {
        return status;
    }
    error = advise(self, block, bytes);
    rmm__driver_scope_leave(&scope);
    return error == RMM_DRIVER_OK
               ? RMM_OK
               : rmm__error_cuda(
                     RMM_ERR_BAD_ALLOC, error,
                     "device %d: setting the preferred location of %zu bytes failed: "
                     "%s (%d): %s",
                     self->tracked.base.device, bytes, self->driver->error_name(error),
                     error, self->driver->error_text(error));
}

/* --- the source --------------------------------------------------------------------- */

static rmm_status_t
headroom_obtain(rmm_tracked_t *tracked, const rmm_request_t *request, void **ptr_out)
{
    rmm_system_memory_t *self = rmm__system_from_tracked(tracked);
    rmm_status_t status;
    void *block;

    if (!has_own_pages(self, request->bytes)) {
        return rmm__system_heap_alloc(request, ptr_out);
    }
    block = map_pages(self, request);
    if (block == NULL) {
        return rmm__system_no_memory(request);
    }
    status = place_pages(self, block, mapped_bytes(self, request->bytes));
    if (status != RMM_OK) {
        munmap(block, mapped_bytes(self, request->bytes));
        return status;
    }
    *ptr_out = block;
    return RMM_OK;
}

static void
headroom_give_back(rmm_tracked_t *tracked, void *ptr, const rmm_request_t *request)
{
    rmm_system_memory_t *self = rmm__system_from_tracked(tracked);

    if (!rmm__system_wait(self, ptr, request)) {
        return;
    }
    if (!has_own_pages(self, request->bytes)) {
        free(ptr);
    } else if (munmap(ptr, mapped_bytes(self, request->bytes)) != 0) {
        rmm__log_error(
            "munmap of %p bytes %zu failed: %s", ptr, request->bytes, strerror(errno));
    }
}

static const rmm_tracked_source_t source = {
    .obtain = headroom_obtain, .give_back = headroom_give_back};

static const rmm_resource_ops_t sam_headroom_ops = RMM_SYSTEM_OPS("sam_headroom");

static rmm_tracked_t *instances[RMM_SEGMENT_DEVICES]; /* lists; NULL: none lives */

rmm_status_t rmm_sam_headroom_resource_create(
    const rmm_sam_headroom_options_t *options, rmm_resource_t **out)
{
    rmm_sam_headroom_options_t opts;
    rmm_status_t status;

    RMM_CHECK_ARG(out != NULL, "out is NULL");
    status = rmm__options_copy(&opts, sizeof(opts), options, sizeof(opts));
    if (status != RMM_OK) {
        return status;
    }
    return rmm__system_create(
        &(rmm_system_plan_t){
            .ops = &sam_headroom_ops,
            .source = &source,
            .name = opts.name,
            .headroom_bytes = opts.headroom_bytes,
            .instances = instances},
        out);
}

rmm_status_t
rmm_sam_headroom_get_headroom(const rmm_resource_t *mr, uint64_t *bytes_out)
{
    RMM_CHECK_ARG(mr != NULL, "the resource is NULL");
    RMM_CHECK_ARG(
        atomic_load_explicit(&mr->ops, memory_order_relaxed) == &sam_headroom_ops,
        "the resource is not a sam_headroom resource");
    RMM_CHECK_ARG(bytes_out != NULL, "bytes_out is NULL");
    *bytes_out = ((const rmm_system_memory_t *)mr)->headroom_bytes;
    return RMM_OK;
}
