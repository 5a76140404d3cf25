/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device memory from cudaMalloc. One instance per device, shared by all who create one:
 * memory of one may be freed through another, and the books stay exact.
 *
 * Locking: `blocks_lock` protects the map of live blocks, `instances_lock` the table of
 * instances. Neither is held during a driver call. A block leaves the map before it is
 * freed, because the driver may hand the same address to another thread at once.
 */
#include <rmm/cuda_resource.h>

#include "core/assert.h"
#include "core/diag_attach.h"
#include "core/host_memory.h"
#include "core/mutex.h"
#include "core/pointer_map.h"
#include "core/resource_impl.h"
#include "driver/driver.h"
#include "log/log.h"

typedef struct cuda_resource {
    rmm_resource_t base; /* first member */
    const rmm_driver_t *driver;
    rmm_mutex_t blocks_lock; /* protects blocks */
    rmm_pointer_map_t blocks;
} cuda_resource_t;

static rmm_mutex_t instances_lock = RMM_MUTEX_INITIALIZER;
static cuda_resource_t *instances[RMM_SEGMENT_DEVICES]; /* borrowed; NULL: none lives */

static cuda_resource_t *from_base(rmm_resource_t *mr)
{
    return RMM_CONTAINER_OF(mr, cuda_resource_t, base);
}

static bool blocks_reserve(cuda_resource_t *self)
{
    bool reserved;

    rmm__mutex_lock(&self->blocks_lock);
    reserved = rmm__pointer_map_reserve(&self->blocks);
    rmm__mutex_unlock(&self->blocks_lock);
    return reserved;
}

/* NULL ptr: the allocation failed, give the reserved room back. */
static void blocks_settle(cuda_resource_t *self, void *ptr, size_t bytes)
{
    rmm__mutex_lock(&self->blocks_lock);
    if (ptr != NULL) {
        rmm__pointer_map_insert(&self->blocks, ptr, bytes);
    } else {
        rmm__pointer_map_unreserve(&self->blocks);
    }
    rmm__mutex_unlock(&self->blocks_lock);
}

/* An allocation's failure in the words of api.md: memory, or another reason. */
static rmm_status_t
alloc_error(const rmm_driver_t *driver, int error, size_t bytes, int device)
{
    rmm_status_t status = error == RMM_DRIVER_MEMORY_ALLOCATION ? RMM_ERR_OUT_OF_MEMORY
                                                                : RMM_ERR_BAD_ALLOC;

    return rmm__error_cuda(
        status, error, "cudaMalloc of %zu bytes on device %d failed: %s (%d): %s",
        bytes, device, driver->error_name(error), error, driver->error_text(error));
}

static rmm_status_t driver_alloc(cuda_resource_t *self, size_t bytes, void **ptr_out)
{
    rmm_driver_scope_t scope;
    rmm_status_t status =
        rmm__driver_scope_enter(&scope, self->driver, self->base.device);
    int error;

    if (status != RMM_OK) {
        return status;
    }
    error = self->driver->mem_alloc(ptr_out, bytes);
    rmm__driver_scope_leave(&scope);
    if (error != RMM_DRIVER_OK) {
        return alloc_error(self->driver, error, bytes, self->base.device);
    }
    return RMM_OK;
}

static void driver_free(cuda_resource_t *self, void *ptr, size_t bytes)
{
    rmm_driver_scope_t scope;
    int error;

    if (rmm__driver_scope_enter(&scope, self->driver, self->base.device) != RMM_OK) {
        return; /* only while the process exits and the runtime is gone */
    }
    error = self->driver->mem_free(ptr);
    rmm__driver_scope_leave(&scope);
    if (error != RMM_DRIVER_OK && error != RMM_DRIVER_UNLOADING) {
        rmm__log_error(
            "device %d: cudaFree of %p bytes %zu failed: %s (%d)", self->base.device,
            ptr, bytes, self->driver->error_name(error), error);
    }
}

static rmm_status_t
cuda_alloc(rmm_resource_t *mr, const rmm_request_t *request, void **ptr_out)
{
    cuda_resource_t *self = from_base(mr);
    void *ptr = NULL;
    rmm_status_t status;

    if (request->align > RMM_ALIGN_DEFAULT) {
        return rmm__error(
            RMM_ERR_BAD_ALLOC,
            "the cuda resource aligns to %zu, not %zu: use a pool on top of it",
            RMM_ALIGN_DEFAULT, request->align);
    }
    if (request->bytes != 0) {
        if (!blocks_reserve(self)) {
            return RMM_ERR_OUT_OF_HOST_MEMORY;
        }
        status = driver_alloc(self, request->bytes, &ptr);
        blocks_settle(self, ptr, request->bytes);
        if (status != RMM_OK) {
            if (status == RMM_ERR_OUT_OF_MEMORY) {
                rmm__books_oom(&mr->books);
            }
            return status;
        }
        rmm__books_reserve_shared(&mr->books, request->bytes);
        rmm__place_reserve(mr->books.place, request->bytes);
    }
    rmm__books_alloc_shared(&mr->books, request->bytes);
    *ptr_out = ptr;
    return RMM_OK;
}

/* NULL if the block was taken out of the map, else why it cannot be freed. */
static const char *blocks_take(cuda_resource_t *self, void *ptr, size_t bytes)
{
    const char *refusal = NULL;
    size_t allocated;

    rmm__mutex_lock(&self->blocks_lock);
    if (!rmm__pointer_map_find(&self->blocks, ptr, &allocated)) {
        refusal = "not allocated here, or freed already";
    } else if (allocated != bytes) {
        refusal = "it was allocated with another size";
    } else {
        rmm__pointer_map_erase(&self->blocks, ptr);
    }
    rmm__mutex_unlock(&self->blocks_lock);
    return refusal;
}

static void give_back(cuda_resource_t *self, void *ptr, size_t bytes)
{
    rmm_books_t *books = &self->base.books;

    driver_free(self, ptr, bytes);
    rmm__books_unreserve_shared(books, bytes);
    rmm__place_unreserve(books->place, bytes);
}

static void cuda_dealloc(rmm_resource_t *mr, void *ptr, const rmm_request_t *request)
{
    cuda_resource_t *self = from_base(mr);
    const char *refusal;

    if (ptr != NULL) {
        refusal = blocks_take(self, ptr, request->bytes);
        if (refusal != NULL) {
            rmm__resource_refuse_free(mr, ptr, request, refusal);
            return;
        }
    }
    rmm__request_settle(mr, request);
    rmm__books_free_shared(&mr->books, request->bytes);
    if (ptr != NULL) {
        give_back(self, ptr, request->bytes);
    }
}

static rmm_status_t cuda_trim(rmm_resource_t *mr, size_t keep_bytes)
{
    (void)mr;
    (void)keep_bytes;
    return rmm__error(
        RMM_ERR_UNSUPPORTED, "a cuda resource holds nothing that it could give back");
}

static void cuda_destroy(rmm_resource_t *mr)
{
    cuda_resource_t *self = from_base(mr);
    rmm_pointer_map_entry_t block;

    rmm__mutex_lock(&instances_lock);
    if (instances[mr->device] == self) {
        instances[mr->device] = NULL;
    }
    rmm__mutex_unlock(&instances_lock);

    while (rmm__pointer_map_any(&self->blocks, &block)) {
        rmm__pointer_map_erase(&self->blocks, block.ptr);
        rmm__diag_on_free(
            mr->instance_id, mr->device, block.ptr, block.bytes, RMM_STREAM_LEGACY);
        give_back(self, block.ptr, block.bytes);
    }
    rmm__pointer_map_fini(&self->blocks);
    rmm__mutex_fini(&self->blocks_lock);
    rmm__resource_fini(mr);
    rmm__free(self);
}

static const rmm_resource_ops_t cuda_ops = {
    .type_name = "cuda",
    .alloc = cuda_alloc,
    .dealloc = cuda_dealloc,
    .trim = cuda_trim,
    .destroy = cuda_destroy,
    .ready_on_all_streams = true,
    .settles = true,
};

/* One more reference on the device's instance, or NULL. */
static rmm_resource_t *share_instance(int device)
{
    rmm_resource_t *shared = NULL;

    rmm__mutex_lock(&instances_lock);
    if (instances[device] != NULL &&
        rmm__resource_try_retain(&instances[device]->base)) {
        shared = &instances[device]->base;
    }
    rmm__mutex_unlock(&instances_lock);
    return shared;
}

static rmm_status_t
make_instance(const rmm_driver_t *driver, int device, rmm_resource_t **out)
{
    cuda_resource_t *self = rmm__calloc(1, sizeof(*self));
    rmm_status_t status;

    if (self == NULL) {
        return RMM_ERR_OUT_OF_HOST_MEMORY;
    }
    self->driver = driver;
    rmm__mutex_init(&self->blocks_lock);
    status = rmm__resource_init(
        &self->base, &(rmm_resource_desc_t){
                         .ops = &cuda_ops,
                         .properties = RMM_DEVICE_ACCESSIBLE,
                         .device = device,
                     });
    if (status != RMM_OK) {
        rmm__free(self);
        return status;
    }
    *out = &self->base;
    return RMM_OK;
}

/* Two threads may have made one each: the first stays, the other is let go. */
static rmm_resource_t *install_instance(rmm_resource_t *fresh)
{
    rmm_resource_t *winner = fresh;
    cuda_resource_t **place = &instances[fresh->device];

    rmm__mutex_lock(&instances_lock);
    if (*place != NULL && rmm__resource_try_retain(&(*place)->base)) {
        winner = &(*place)->base;
    } else {
        *place = from_base(fresh);
    }
    rmm__mutex_unlock(&instances_lock);
    if (winner != fresh) {
        rmm_resource_release(fresh);
    }
    return winner;
}

rmm_status_t rmm_cuda_resource_create(rmm_resource_t **out)
{
    const rmm_driver_t *driver;
    rmm_resource_t *shared;
    rmm_resource_t *fresh;
    rmm_status_t status;
    int device;
    int error;

    RMM_CHECK_ARG(out != NULL, "out is NULL");
    driver = rmm__driver(&status);
    if (driver == NULL) {
        return status;
    }
    error = driver->device_get(&device);
    if (error != RMM_DRIVER_OK) {
        return rmm__driver_error(driver, error, "asking for the current device");
    }
    if (device >= (int)RMM_SEGMENT_DEVICES) {
        return rmm__error(
            RMM_ERR_UNSUPPORTED, "device %d: only %u devices are supported", device,
            RMM_SEGMENT_DEVICES);
    }
    shared = share_instance(device);
    if (shared == NULL) {
        status = make_instance(driver, device, &fresh);
        if (status != RMM_OK) {
            return status;
        }
        shared = install_instance(fresh);
    }
    *out = shared;
    return RMM_OK;
}
