/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Virtual memory of a device. The runtime has no functions for it, so these go to the
 * driver's entry points, which are looked for once at the start: a driver without them
 * is still good for everything else. They set no last error, and CUresult has the values
 * of cudaError_t for all that they answer.
 */
#include "driver/cuda_internal.h"

#include <fcntl.h>
#include <string.h>

#include "core/descriptor.h"

typedef CUresult (*device_get_attribute_fn)(int *, CUdevice_attribute, CUdevice);
typedef CUresult (*context_get_current_fn)(CUcontext *);
typedef CUresult (*granularity_fn)(
    size_t *, const CUmemAllocationProp *, CUmemAllocationGranularity_flags);
typedef CUresult (*reserve_fn)(
    CUdeviceptr *, size_t bytes, size_t align, CUdeviceptr request, unsigned long long);
typedef CUresult (*range_fn)(CUdeviceptr, size_t bytes);
typedef CUresult (*create_fn)(
    CUmemGenericAllocationHandle *, size_t bytes, const CUmemAllocationProp *,
    unsigned long long);
typedef CUresult (*export_fn)(
    void *handle, CUmemGenericAllocationHandle, CUmemAllocationHandleType,
    unsigned long long);
typedef CUresult (*import_fn)(
    CUmemGenericAllocationHandle *, void *handle, CUmemAllocationHandleType);
typedef CUresult (*release_fn)(CUmemGenericAllocationHandle);
typedef CUresult (*map_fn)(
    CUdeviceptr, size_t bytes, size_t offset, CUmemGenericAllocationHandle,
    unsigned long long);
typedef CUresult (*set_access_fn)(
    CUdeviceptr, size_t bytes, const CUmemAccessDesc *, size_t count);

/* Member, type, the driver's name, the CUDA version whose meaning is wanted. */
#define ENTRY_MAP(X)                                                                   \
    X(device_get_attribute, device_get_attribute_fn, "cuDeviceGetAttribute", 2000)     \
    X(context_get_current, context_get_current_fn, "cuCtxGetCurrent", 4000)            \
    X(granularity, granularity_fn, "cuMemGetAllocationGranularity", 10020)             \
    X(reserve, reserve_fn, "cuMemAddressReserve", 10020)                               \
    X(address_free, range_fn, "cuMemAddressFree", 10020)                               \
    X(create, create_fn, "cuMemCreate", 10020)                                         \
    X(export_handle, export_fn, "cuMemExportToShareableHandle", 10020)                 \
    X(import_handle, import_fn, "cuMemImportFromShareableHandle", 10020)               \
    X(release, release_fn, "cuMemRelease", 10020)                                      \
    X(map, map_fn, "cuMemMap", 10020)                                                  \
    X(unmap, range_fn, "cuMemUnmap", 10020)                                            \
    X(set_access, set_access_fn, "cuMemSetAccess", 10020)

/* Filled by rmm__cuda_virtual_open(), before the table is handed out. */
static struct {
    bool complete;
#define X(member, type, name, version) type member;
    ENTRY_MAP(X)
#undef X
} entry;

void rmm__cuda_virtual_open(void)
{
    void *found;

    entry.complete = true;
#define X(member, type, name, version)                                                 \
    if (rmm__cuda_find_entry(name, version, &found) == RMM_DRIVER_OK) {                \
        memcpy(&entry.member, &found, sizeof(found));                                  \
    } else {                                                                           \
        entry.complete = false;                                                        \
    }
    ENTRY_MAP(X)
#undef X
}

static CUdeviceptr address_of(const void *ptr)
{
    return (CUdeviceptr)(uintptr_t)ptr;
}

/*
 * The current device, which has a current context from here on: the entry points need
 * one. Setting the device makes it, and happens only where the thread has none, so that
 * a program's own context stays current.
 */
static int ready(int *device)
{
    CUcontext context = NULL;
    int error;

    if (rmm__cuda_is_exiting()) {
        return RMM_DRIVER_UNLOADING;
    }
    if (!entry.complete) {
        return RMM_DRIVER_NOT_SUPPORTED;
    }
    error = CALL(cudaGetDevice(device));
    if (error == RMM_DRIVER_OK &&
        (entry.context_get_current(&context) != CUDA_SUCCESS || context == NULL)) {
        error = RMM_DRIVER_WAITS(CALL(cudaSetDevice(*device)));
    }
    return error;
}

#define HANDLE_TYPES (RMM_DRIVER_HANDLE_POSIX | RMM_DRIVER_HANDLE_FABRIC)

static CUmemAllocationProp properties_of(int device)
{
    return (CUmemAllocationProp){
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device}};
}

int rmm__cuda_driver_attribute(int attribute, int device, int *value)
{
    int current, answer;
    int error = ready(&current);

    if (error == RMM_DRIVER_NOT_SUPPORTED) {
        *value = 0;
        return RMM_DRIVER_OK;
    }
    if (error == RMM_DRIVER_OK) {
        error = (int)entry.device_get_attribute(
            &answer, (CUdevice_attribute)attribute, device);
    }
    if (error == RMM_DRIVER_OK) {
        *value = answer;
    }
    return error;
}

int rmm__cuda_virtual_granularity(size_t *bytes)
{
    CUmemAllocationProp properties;
    size_t answer;
    int device;
    int error = ready(&device);

    if (error == RMM_DRIVER_OK) {
        properties = properties_of(device);
        error = RMM_DRIVER_WAITS(
            entry.granularity(&answer, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    }
    if (error == RMM_DRIVER_OK) {
        *bytes = answer;
    }
    return error;
}

int rmm__cuda_address_reserve(void **ptr, size_t bytes)
{
    CUdeviceptr fresh;
    int device;
    int error = ready(&device);

    if (error == RMM_DRIVER_OK) {
        error = RMM_DRIVER_WAITS(entry.reserve(&fresh, bytes, 0, 0, 0));
    }
    if (error == RMM_DRIVER_OK) {
        *ptr = (void *)(uintptr_t)fresh;
    }
    return error;
}

int rmm__cuda_address_free(void *ptr, size_t bytes)
{
    int device;
    int error = ready(&device);

    return error != RMM_DRIVER_OK
               ? error
               : RMM_DRIVER_WAITS(entry.address_free(address_of(ptr), bytes));
}

int rmm__cuda_physical_create(
    size_t bytes, uint32_t flags, rmm_driver_physical_t *physical)
{
    CUmemGenericAllocationHandle fresh;
    CUmemAllocationProp properties;
    int device;
    int error = ready(&device);

    if (error == RMM_DRIVER_OK) {
        properties = properties_of(device);
        properties.requestedHandleTypes =
            (CUmemAllocationHandleType)(flags & HANDLE_TYPES);
        properties.allocFlags.gpuDirectRDMACapable = (flags & RMM_DRIVER_RDMA) != 0;
        error = RMM_DRIVER_WAITS(entry.create(&fresh, bytes, &properties, 0));
    }
    if (error == RMM_DRIVER_OK) {
        *physical = fresh;
    }
    return error;
}

int rmm__cuda_own_descriptor(int fd)
{
    int flags = fcntl(fd, F_GETFD);

    if (flags >= 0) {
        (void)fcntl(fd, F_SETFD, flags | FD_CLOEXEC);
    }
    return rmm__descriptor_above_standard(fd);
}

int rmm__cuda_physical_export(
    rmm_driver_physical_t physical, uint32_t type, rmm_driver_handle_t *handle)
{
    rmm_driver_handle_t fresh = {.type = type, .fd = -1};
    int device;
    int error = ready(&device);

    if (error == RMM_DRIVER_OK) {
        error = RMM_DRIVER_WAITS(entry.export_handle(
            type == RMM_DRIVER_HANDLE_POSIX ? (void *)&fresh.fd : fresh.bytes, physical,
            (CUmemAllocationHandleType)type, 0));
    }
    if (error == RMM_DRIVER_OK && type == RMM_DRIVER_HANDLE_POSIX) {
        fresh.fd = rmm__cuda_own_descriptor(fresh.fd);
        error = fresh.fd >= 0 ? RMM_DRIVER_OK : CUDA_ERROR_OPERATING_SYSTEM;
    }
    if (error == RMM_DRIVER_OK) {
        *handle = fresh;
    }
    return error;
}

int rmm__cuda_physical_import(
    const rmm_driver_handle_t *handle, rmm_driver_physical_t *physical)
{
    CUmemGenericAllocationHandle fresh;
    rmm_driver_handle_t copy = *handle;
    int device;
    int error = ready(&device);

    if (error == RMM_DRIVER_OK) {
        error = RMM_DRIVER_WAITS(entry.import_handle(
            &fresh,
            handle->type == RMM_DRIVER_HANDLE_POSIX ? (void *)(uintptr_t)handle->fd
                                                    : copy.bytes,
            (CUmemAllocationHandleType)handle->type));
    }
    if (error == RMM_DRIVER_OK) {
        *physical = fresh;
    }
    return error;
}

int rmm__cuda_physical_release(rmm_driver_physical_t physical)
{
    int device;
    int error = ready(&device);

    return error != RMM_DRIVER_OK ? error : RMM_DRIVER_WAITS(entry.release(physical));
}

int rmm__cuda_address_map(void *ptr, size_t bytes, rmm_driver_physical_t physical)
{
    int device;
    int error = ready(&device);

    return error != RMM_DRIVER_OK
               ? error
               : OWN(entry.map(address_of(ptr), bytes, 0, physical, 0));
}

int rmm__cuda_address_unmap(void *ptr, size_t bytes)
{
    int device;
    int error = ready(&device);

    return error != RMM_DRIVER_OK ? error : OWN(entry.unmap(address_of(ptr), bytes));
}

int rmm__cuda_address_access(void *ptr, size_t bytes, uint32_t devices)
{
    CUmemAccessDesc access[RMM_DRIVER_SET_DEVICES];
    size_t count = 0;
    int current;
    int error = ready(&current);

    for (int device = 0; device < RMM_DRIVER_SET_DEVICES; device++) {
        if ((devices & RMM_DRIVER_DEVICE(device)) != 0) {
            access[count++] = (CUmemAccessDesc){
                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device},
                .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
        }
    }
    return error != RMM_DRIVER_OK ? error
                                  : RMM_DRIVER_WAITS(entry.set_access(
                                        address_of(ptr), bytes, access, count));
}
