/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Export and import of memory: see sharing.h. The resource that has a block says what holds it
 * (rmm_resource_ops_t.share); the rest is the same for all.
 *
 * An import is one range of addresses with all parts side by side. It belongs to no resource. It
 * has no lock: its caller releases it once.
 */
#include "resources/sharing.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/resource_impl.h"
#include "core/descriptor.h"
#include "core/host_memory.h"
#include "core/uncancelled.h"
#include "log/log.h"

#define CLOSED (-1)

/* --- what resources do ----------------------------------------------------------------- */

rmm_status_t rmm__shared_init(rmm_shared_t *shared, uint32_t count)
{
    rmm_shared_part_t *parts = rmm__calloc(count, sizeof(*parts));

    if (parts == NULL) {
        return RMM_ERR_OUT_OF_HOST_MEMORY;
    }
    for (uint32_t i = 0; i < count; i++) {
        parts[i].handle.fd = CLOSED;
    }
    shared->parts = parts;
    shared->count = count;
    return RMM_OK;
}

static void close_descriptor(int fd)
{
    RMM_UNCANCELLED;

    if (fd >= 0) {
        close(fd);
    }
}

void rmm__shared_fini(rmm_shared_t *shared)
{
    for (uint32_t i = 0; i < shared->count; i++) {
        close_descriptor(shared->parts[i].handle.fd);
    }
    rmm__free(shared->parts);
    rmm__free(shared->found);
    shared->parts = NULL;
    shared->found = NULL;
    shared->count = 0;
}

rmm_status_t rmm__sharing_cut(
    const rmm_resource_t *mr, const rmm_sharing_request_t *request, uint64_t rest,
    uint64_t *bytes_out)
{
    if (request->bytes > rest) {
        return rmm__error(
            RMM_ERR_INVALID_ARGUMENT,
            "%s '%s': the block has %" PRIu64 " bytes at %p, not %" PRIu64,
            rmm_resource_type(mr), mr->name, rest, request->ptr, request->bytes);
    }
    *bytes_out = request->bytes != 0 ? request->bytes : rest;
    return RMM_OK;
}

bool rmm__sharing_is_table_full(void)
{
    RMM_UNCANCELLED;
    int fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    bool is_full;

    if (fd < 0 && errno == EBADF) { /* there is no standard input */
        fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    }
    is_full = fd < 0 && (errno == EMFILE || errno == ENFILE);
    close_descriptor(fd);
    return is_full;
}

rmm_status_t rmm__sharing_table_full(size_t count)
{
    return rmm__error(
        RMM_ERR_IO,
        "no file descriptor is left, and the export has %zu of them, one for each "
        "piece of "
        "memory: raise RLIMIT_NOFILE (ulimit -n)",
        count);
}

/* --- export ---------------------------------------------------------------------------- */

static rmm_status_t check_export(
    const rmm_resource_t *mr, const void *ptr, uint64_t flags,
    const rmm_pool_exported_t *out)
{
    RMM_CHECK_ARG(mr != NULL, "the resource is NULL");
    RMM_CHECK_ARG(ptr != NULL, "ptr is NULL");
    RMM_CHECK_ARG((flags & ~RMM_POOL_EXPORT_FABRIC) == 0, "unknown flag");
    RMM_CHECK_ARG(out != NULL, "out is NULL");
    RMM_CHECK_ARG(
        out->struct_size == sizeof(*out),
        "out was not made with RMM_POOL_EXPORTED_INIT");
    return RMM_OK;
}

/* The resource whose block it is describes it: the first one that is no adaptor. One that divides
 * the memory of a pool would have the whole of its own block exported. */
static rmm_status_t
describe(rmm_resource_t *mr, const rmm_sharing_request_t *request, rmm_shared_t *shared)
{
    const rmm_resource_ops_t *ops;
    rmm_resource_t *owner = mr;
    bool is_mine = false;
    rmm_status_t status;

    while (rmm__resource_is_adaptor(owner)) {
        owner = owner->upstream;
    }
    ops = atomic_load_explicit(&owner->ops, memory_order_relaxed);
    status = ops->share != NULL ? ops->share(owner, request, shared, &is_mine) : RMM_OK;
    if (is_mine) {
        return status;
    }
    if (rmm__resource_is_forked(mr)) {
        return rmm__error(
            RMM_ERR_UNSUPPORTED,
            "'%s' was made before this process was forked: nothing of it can be shared",
            mr->name);
    }
    return rmm__error(
        RMM_ERR_UNSUPPORTED,
        "%s '%s' does not share its memory with other processes: use a pool with "
        "RMM_POOL_VIRTUAL | RMM_POOL_EXPORTABLE (pool_virtual:exportable in "
        "RMM_RESOURCE), "
        "or an async resource with RMM_ASYNC_HANDLE_POSIX_FD",
        rmm_resource_type(owner), owner->name);
}

/* The record, and the descriptors, which leave `shared`. */
static rmm_status_t pack(rmm_shared_t *shared, rmm_pool_exported_t *out)
{
    rmm_pool_exported_t fresh = RMM_POOL_EXPORTED_INIT;

    fresh.record = rmm__sharing_encode(shared, &fresh.record_bytes);
    if (fresh.record == NULL) {
        return RMM_ERR_OUT_OF_HOST_MEMORY;
    }
    if (shared->handle_type == RMM_DRIVER_HANDLE_POSIX) {
        fresh.descriptors = rmm__calloc(shared->count, sizeof(int));
        if (fresh.descriptors == NULL) {
            rmm__free(fresh.record);
            return RMM_ERR_OUT_OF_HOST_MEMORY;
        }
        fresh.descriptor_count = shared->count;
    }
    for (uint32_t i = 0; i < fresh.descriptor_count; i++) {
        fresh.descriptors[i] = shared->parts[i].handle.fd;
        shared->parts[i].handle.fd = CLOSED;
    }
    *out = fresh;
    return RMM_OK;
}

static rmm_status_t name_device(const rmm_driver_t *driver, int device, char uuid[48])
{
    rmm_device_info_t info;
    rmm_status_t status = rmm__driver_status(
        driver, driver->device_info(device, &info), "querying the device");

    if (status == RMM_OK) {
        memcpy(uuid, info.uuid, sizeof(info.uuid));
    }
    return status;
}

rmm_status_t rmm__sharing_export_error(const rmm_driver_t *driver, int error)
{
    return rmm__driver_error(driver, error, "exporting memory");
}

rmm_status_t rmm_pool_export(
    rmm_resource_t *mr, const void *ptr, size_t bytes, uint64_t flags,
    rmm_pool_exported_t *out)
{
    const rmm_sharing_request_t request = {
        .ptr = ptr,
        .bytes = bytes,
        .handle_type = (flags & RMM_POOL_EXPORT_FABRIC) != 0 ? RMM_DRIVER_HANDLE_FABRIC
                                                             : RMM_DRIVER_HANDLE_POSIX};
    rmm_shared_t shared = {.handle_type = request.handle_type};
    rmm_status_t status = check_export(mr, ptr, flags, out);
    const rmm_driver_t *driver;

    if (status != RMM_OK) {
        return status;
    }
    driver = rmm__driver(&status);
    if (driver == NULL) {
        return status;
    }
    status = describe(mr, &request, &shared);
    if (status == RMM_OK) {
        shared.exporter = (uint64_t)getpid();
        status = name_device(driver, mr->device, shared.uuid);
    } else if (status == RMM_ERR_CUDA && rmm__sharing_is_table_full()) {
        status = rmm__sharing_table_full(shared.count);
    }
    if (status == RMM_OK) {
        status = pack(&shared, out);
    }
    if (status != RMM_OK && shared.withdraw != NULL) {
        shared.withdraw(&shared);
    }
    rmm__shared_fini(&shared);
    return status;
}

void rmm_pool_export_release(rmm_pool_exported_t *exported)
{
    if (exported == NULL) {
        return;
    }
    for (size_t i = 0; i < exported->descriptor_count; i++) {
        close_descriptor(exported->descriptors[i]);
    }
    rmm__free(exported->descriptors);
    rmm__free(exported->record);
    *exported = (rmm_pool_exported_t)RMM_POOL_EXPORTED_INIT;
}

/* --- import ---------------------------------------------------------------------------- */

typedef struct import {
    rmm_pool_imported_t public; /* first member */
    const rmm_driver_t *driver;
    rmm_driver_mempool_t pool; /* of a block of a CUDA memory pool; else NULL */
    void *block;
    char *address; /* of mapped pieces */
    uint64_t address_bytes;
    uint32_t mapped; /* parts, from the first */
    uint32_t count;
    uint64_t part_bytes[];
} import_t;

static rmm_status_t
find_device(const rmm_driver_t *driver, const char *uuid, int *device_out)
{
    rmm_device_info_t info;
    int count;
    rmm_status_t status = rmm__driver_status(
        driver, driver->device_count(&count), "counting the devices");

    for (int device = 0; status == RMM_OK && device < count; device++) {
        status = name_device(driver, device, info.uuid);
        if (status == RMM_OK && strcmp(info.uuid, uuid) == 0) {
            *device_out = device;
            return RMM_OK;
        }
    }
    return status != RMM_OK
               ? status
               : rmm__error(
                     RMM_ERR_UNSUPPORTED,
                     "the exported memory is of device %.47s, which is none of the %d "
                     "that this process sees (CUDA_VISIBLE_DEVICES)",
                     uuid, count);
}

static rmm_status_t refused(
    const rmm_driver_t *driver, int error, const char *call, const rmm_shared_t *shared)
{
    if (error == RMM_DRIVER_MEMORY_ALLOCATION) {
        return rmm__driver_error(driver, error, call);
    }
    if (rmm__sharing_is_table_full()) {
        return rmm__sharing_table_full(shared->count);
    }
    return rmm__error_cuda(
        RMM_ERR_CUDA, error,
        "%s of process %" PRIu64
        " failed: %s (%d): it has ended, or what came with the "
        "export is not that memory",
        call, shared->exporter, driver->error_name(error), error);
}

/* Undo what was mapped. In a driver scope. */
static void unmap(import_t *import)
{
    const rmm_driver_t *driver = import->driver;
    char *at = import->address;
    int error = RMM_DRIVER_OK;

    for (uint32_t i = 0; i < import->mapped && error == RMM_DRIVER_OK; i++) {
        error = driver->address_unmap(at, import->part_bytes[i]);
        at += import->part_bytes[i];
    }
    if (error == RMM_DRIVER_OK) {
        error = driver->address_free(import->address, import->address_bytes);
    }
    if (error != RMM_DRIVER_OK && error != RMM_DRIVER_UNLOADING) {
        rmm__log_error(
            "device %d: unmapping imported memory at %p bytes %" PRIu64
            " failed: %s (%d)",
            import->public.device, (void *)import->address, import->address_bytes,
            driver->error_name(error), error);
    }
}

/* Give up a block of another process's CUDA pool: the block, then the pool. In a driver scope. */
static void leave_pool(const import_t *import)
{
    const rmm_driver_t *driver = import->driver;
    int error = RMM_DRIVER_OK;
    rmm_stream_t stream;

    if (import->block != NULL) {
        error = driver->stream_create(RMM_STREAM_NON_BLOCKING, &stream);
        if (error == RMM_DRIVER_OK) {
            error = driver->mempool_free(import->block, stream);
            (void)driver->stream_synchronize(stream);
            (void)driver->stream_destroy(stream);
        }
    }
    if (error == RMM_DRIVER_OK) {
        error = driver->mempool_destroy(import->pool);
    }
    if (error != RMM_DRIVER_OK && error != RMM_DRIVER_UNLOADING) {
        rmm__log_error(
            "device %d: freeing imported memory at %p failed: %s (%d)",
            import->public.device, import->block, driver->error_name(error), error);
    }
}

static int map_part(import_t *import, char *at, const rmm_shared_part_t *part)
{
    const rmm_driver_t *driver = import->driver;
    rmm_driver_physical_t physical;
    int error = driver->physical_import(&part->handle, &physical);
    int released;

    if (error != RMM_DRIVER_OK) {
        return error;
    }
    error = driver->address_map(at, part->bytes, physical);
    released = driver->physical_release(physical); /* the mapping keeps it */
    if (error == RMM_DRIVER_OK) {
        import->part_bytes[import->mapped++] = part->bytes;
        error = released;
    }
    return error;
}

/* This device, and those that can access its memory. */
static int let_in(import_t *import)
{
    uint32_t own = RMM_DRIVER_DEVICE(import->public.device);
    uint32_t peers = rmm__driver_peers(import->driver, import->public.device);
    int error = import->driver->address_access(
        import->address, import->address_bytes, own | peers);

    return error == RMM_DRIVER_OK || peers == 0
               ? error
               : import->driver->address_access(
                     import->address, import->address_bytes, own);
}

static rmm_status_t check_granules(const rmm_shared_t *shared, size_t granule)
{
    for (uint32_t i = 0; i < shared->count; i++) {
        if (shared->parts[i].bytes % granule != 0) {
            return rmm__error(
                RMM_ERR_INVALID_ARGUMENT,
                "the record of the export is malformed: a part of %" PRIu64
                " bytes is not whole granules of %zu",
                shared->parts[i].bytes, granule);
        }
    }
    return RMM_OK;
}

/* Reserve addresses and map all parts there. In a driver scope. */
static rmm_status_t map_pieces(import_t *import, const rmm_shared_t *shared)
{
    const rmm_driver_t *driver = import->driver;
    const char *call = "importing memory";
    void *address;
    size_t granule;
    int error = driver->virtual_granularity(&granule);
    rmm_status_t status = rmm__driver_status(driver, error, "querying the granularity");

    if (status == RMM_OK) {
        status = check_granules(shared, granule);
    }
    for (uint32_t i = 0; i < shared->count; i++) {
        import->address_bytes += shared->parts[i].bytes;
    }
    if (status != RMM_OK) {
        return status;
    }
    error = driver->address_reserve(&address, import->address_bytes);
    if (error != RMM_DRIVER_OK) {
        return rmm__driver_error(driver, error, "reserving addresses for an import");
    }
    import->address = address;
    for (uint32_t i = 0; i < shared->count && error == RMM_DRIVER_OK; i++) {
        error = map_part(import, address, &shared->parts[i]);
        address = (char *)address + shared->parts[i].bytes;
    }
    if (error == RMM_DRIVER_OK) {
        call = "access to memory";
        error = let_in(import);
    }
    if (error != RMM_DRIVER_OK) {
        status = refused(driver, error, call, shared);
        unmap(import);
        return status;
    }
    import->public.ptr = import->address + shared->offset;
    return RMM_OK;
}

/* Its own device gets access, which an imported pool need not have, and peers where the driver lets
 * them in. What is refused, the first use tells. */
static rmm_status_t take_block(import_t *import, const rmm_shared_t *shared)
{
    const rmm_driver_t *driver = import->driver;
    uint32_t own = RMM_DRIVER_DEVICE(import->public.device);
    uint32_t peers = rmm__driver_peers(driver, import->public.device);
    int error = driver->mempool_import(&shared->parts[0].handle, &import->pool);

    if (error != RMM_DRIVER_OK) {
        import->pool = NULL;
        return refused(driver, error, "importing the memory pool", shared);
    }
    if (driver->mempool_access(import->pool, own | peers) != RMM_DRIVER_OK) {
        (void)driver->mempool_access(import->pool, own);
    }
    error =
        driver->mempool_import_pointer(import->pool, shared->pointer, &import->block);
    if (error != RMM_DRIVER_OK) {
        import->block = NULL;
        leave_pool(import);
        return refused(driver, error, "importing a block", shared);
    }
    import->public.ptr = (char *)import->block + shared->offset;
    return RMM_OK;
}

/* Refuse a device that lacks what this kind of memory needs. */
static rmm_status_t
check_device(const rmm_driver_t *driver, const rmm_shared_t *shared, int device)
{
    rmm_status_t status;

    if (shared->kind == RMM_SHARING_MEMPOOL) {
        return rmm__driver_require(
            driver, RMM_ATTRIBUTE_MEMORY_POOL_HANDLE_TYPES, device,
            "cannot import memory pools");
    }
    status = rmm__driver_require(
        driver, RMM_ATTRIBUTE_VIRTUAL_MEMORY, device, "cannot map virtual memory");
    if (status != RMM_OK) {
        return status;
    }
    return rmm__driver_require(
        driver,
        shared->handle_type == RMM_DRIVER_HANDLE_POSIX ? RMM_ATTRIBUTE_POSIX_HANDLES
                                                       : RMM_ATTRIBUTE_FABRIC_HANDLES,
        device, "cannot import memory by handles of this type");
}

static rmm_status_t
map_shared(const rmm_driver_t *driver, const rmm_shared_t *shared, import_t *import)
{
    rmm_driver_scope_t scope;
    int device = -1;
    rmm_status_t status = find_device(driver, shared->uuid, &device);

    if (status == RMM_OK) {
        status = check_device(driver, shared, device);
    }
    if (status == RMM_OK) {
        status = rmm__driver_scope_enter(&scope, driver, device);
    }
    if (status != RMM_OK) {
        return status;
    }
    import->driver = driver;
    import->count = shared->count;
    import->public.device = device;
    import->public.bytes = shared->bytes;
    status = shared->kind == RMM_SHARING_MEMPOOL ? take_block(import, shared)
                                                 : map_pieces(import, shared);
    rmm__driver_scope_leave(&scope);
    return status;
}

rmm_status_t
rmm_pool_import(const rmm_pool_exported_t *exported, rmm_pool_imported_t **out)
{
    rmm_shared_t shared;
    import_t *import;
    const rmm_driver_t *driver;
    rmm_status_t status;

    RMM_CHECK_ARG(exported != NULL, "exported is NULL");
    RMM_CHECK_ARG(
        exported->struct_size == sizeof(*exported),
        "exported was not made with RMM_POOL_EXPORTED_INIT");
    RMM_CHECK_ARG(out != NULL, "out is NULL");
    driver = rmm__driver(&status);
    if (driver == NULL) {
        return status;
    }
    status = rmm__sharing_decode(exported, &shared);
    if (status != RMM_OK) {
        return status;
    }
    import = rmm__calloc(1, sizeof(*import) + shared.count * sizeof(uint64_t));
    status = import != NULL ? map_shared(driver, &shared, import)
                            : RMM_ERR_OUT_OF_HOST_MEMORY;
    rmm__free(shared.parts); /* the descriptors are the caller's */
    if (status != RMM_OK) {
        rmm__free(import);
        return status;
    }
    *out = &import->public;
    return RMM_OK;
}

void rmm_pool_import_release(rmm_pool_imported_t *imported)
{
    rmm_driver_scope_t scope;
    rmm_status_t status;
    import_t *import;

    if (imported == NULL) {
        return;
    }
    import = RMM_CONTAINER_OF(imported, import_t, public);
    if (rmm__driver(&status) != NULL &&
        rmm__driver_scope_enter(&scope, import->driver, imported->device) == RMM_OK) {
        (void)rmm__driver_wait_all_devices(import->driver, imported->device);
        if (import->pool != NULL) {
            leave_pool(import);
        } else {
            unmap(import);
        }
        rmm__driver_scope_leave(&scope);
    }
    rmm__free(import);
}
