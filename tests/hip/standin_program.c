/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What programs for AMD GPUs, their compiler and rocThrust call of libamdhip64 beyond the
 * functions that the library calls (standin.c): by those, and declared by ROCm's header. A kernel
 * does not run: its launch is checked and counted.
 */
#define __HIP_PLATFORM_AMD__ 1
#include <hip/hip_runtime_api.h>

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define SHOWN __attribute__((visibility("default")))

/* ---- devices, streams, events, copies ---- */

SHOWN hipError_t hipGetDeviceProperties(hipDeviceProp_t *properties, int device)
{
    size_t bytes = 0;
    hipError_t error = hipDeviceTotalMem(&bytes, device);

    if (error != hipSuccess) {
        return error;
    }
    memset(properties, 0, sizeof(*properties));
    properties->totalGlobalMem = bytes;
    properties->multiProcessorCount = 2;
    properties->warpSize = 64;
    properties->maxThreadsPerBlock = 1024;
    properties->maxGridSize[0] = INT32_MAX;
    properties->sharedMemPerBlock = 65536;
    snprintf(properties->gcnArchName, sizeof(properties->gcnArchName), "gfx90a");
    return hipDeviceGetName(properties->name, sizeof(properties->name), device);
}

SHOWN hipError_t hipDriverGetVersion(int *version)
{
    return hipRuntimeGetVersion(version);
}

SHOWN hipError_t hipStreamCreate(hipStream_t *stream)
{
    return hipStreamCreateWithFlags(stream, hipStreamDefault);
}

SHOWN hipError_t hipStreamQuery(hipStream_t stream)
{
    hipEvent_t event;
    hipError_t error = hipEventCreateWithFlags(&event, hipEventDisableTiming);

    if (error != hipSuccess) {
        return error;
    }
    error = hipEventRecord(event, stream);
    if (error == hipSuccess) {
        error = hipEventQuery(event);
    }
    (void)hipEventDestroy(event);
    return error;
}

SHOWN hipError_t hipEventCreate(hipEvent_t *event)
{
    return hipEventCreateWithFlags(event, hipEventDefault);
}

SHOWN hipError_t hipMemcpyWithStream(
    void *dst, const void *src, size_t bytes, hipMemcpyKind kind, hipStream_t stream)
{
    hipError_t error = hipMemcpyAsync(dst, src, bytes, kind, stream);

    return error == hipSuccess ? hipStreamSynchronize(stream) : error;
}

SHOWN hipError_t hipMemcpy(void *dst, const void *src, size_t bytes, hipMemcpyKind kind)
{
    return hipMemcpyWithStream(dst, src, bytes, kind, NULL);
}

SHOWN hipError_t hipMemset(void *dst, int value, size_t bytes)
{
    hipError_t error = hipMemsetAsync(dst, value, bytes, NULL);

    return error == hipSuccess ? hipStreamSynchronize(NULL) : error;
}

/* ---- with a default stream for each thread: what the header makes of the names there ---- */

hipError_t hipMemcpyAsync_spt(
    void *dst, const void *src, size_t bytes, hipMemcpyKind kind, hipStream_t stream);
hipError_t hipMemsetAsync_spt(void *dst, int value, size_t bytes, hipStream_t stream);
hipError_t hipStreamSynchronize_spt(hipStream_t stream);

static hipStream_t of_thread(hipStream_t stream)
{
    return stream == NULL ? hipStreamPerThread : stream;
}

SHOWN hipError_t hipMemcpyAsync_spt(
    void *dst, const void *src, size_t bytes, hipMemcpyKind kind, hipStream_t stream)
{
    return hipMemcpyAsync(dst, src, bytes, kind, of_thread(stream));
}

SHOWN hipError_t
hipMemsetAsync_spt(void *dst, int value, size_t bytes, hipStream_t stream)
{
    return hipMemsetAsync(dst, value, bytes, of_thread(stream));
}

SHOWN hipError_t hipStreamSynchronize_spt(hipStream_t stream)
{
    return hipStreamSynchronize(of_thread(stream));
}

/* ---- kernels ---- */

static atomic_ulong launches;
static _Thread_local hipStream_t launch_stream;

/* The launches of all threads so far, and the stream of the calling thread's last one. */
unsigned long hip_standin_launches(hipStream_t *stream_out);
SHOWN unsigned long hip_standin_launches(hipStream_t *stream_out)
{
    if (stream_out != NULL) {
        *stream_out = launch_stream;
    }
    return atomic_load(&launches);
}

SHOWN hipError_t hipLaunchKernel(
    const void *kernel, dim3 grid, dim3 block, void **parameters, size_t shared_bytes,
    hipStream_t stream)
{
    unsigned int flags;
    hipError_t error = stream == NULL || stream == hipStreamPerThread
                           ? hipSuccess
                           : hipStreamGetFlags(stream, &flags);

    (void)parameters;
    if (error != hipSuccess) {
        return error;
    }
    if (kernel == NULL || grid.x == 0 || block.x == 0 || block.x > 1024 ||
        shared_bytes > 65536) {
        return hipErrorInvalidValue;
    }
    launch_stream = stream;
    atomic_fetch_add(&launches, 1);
    return hipSuccess;
}

/* What the compiler makes of kernel<<<grid, block, shared, stream>>>(). */
static _Thread_local struct {
    dim3 grid, block;
    size_t shared_bytes;
    hipStream_t stream;
} pushed;

hipError_t __hipPushCallConfiguration(
    dim3 grid, dim3 block, size_t shared_bytes, hipStream_t stream);
SHOWN hipError_t __hipPushCallConfiguration(
    dim3 grid, dim3 block, size_t shared_bytes, hipStream_t stream)
{
    pushed.grid = grid;
    pushed.block = block;
    pushed.shared_bytes = shared_bytes;
    pushed.stream = stream;
    return hipSuccess;
}

hipError_t __hipPopCallConfiguration(
    dim3 *grid, dim3 *block, size_t *shared_bytes, hipStream_t *stream);
SHOWN hipError_t __hipPopCallConfiguration(
    dim3 *grid, dim3 *block, size_t *shared_bytes, hipStream_t *stream)
{
    *grid = pushed.grid;
    *block = pushed.block;
    *shared_bytes = pushed.shared_bytes;
    *stream = pushed.stream;
    return hipSuccess;
}

void **__hipRegisterFatBinary(const void *data);
SHOWN void **__hipRegisterFatBinary(const void *data)
{
    static void *handle;

    (void)data;
    return &handle;
}

void __hipUnregisterFatBinary(void **handle);
SHOWN void __hipUnregisterFatBinary(void **handle)
{
    (void)handle;
}

void __hipRegisterFunction(
    void **handle, const void *stub, char *device_name, const char *name,
    unsigned int thread_limit, void *thread, void *block, void *block_size,
    void *grid_size, int *warp_size);
SHOWN void __hipRegisterFunction(
    void **handle, const void *stub, char *device_name, const char *name,
    unsigned int thread_limit, void *thread, void *block, void *block_size,
    void *grid_size, int *warp_size)
{
    (void)handle;
    (void)stub;
    (void)device_name;
    (void)name;
    (void)thread_limit;
    (void)thread;
    (void)block;
    (void)block_size;
    (void)grid_size;
    (void)warp_size;
}

void __hipRegisterVar(
    void **handle, void *var, char *host_name, char *device_name, int is_external,
    size_t bytes, int is_constant, int is_global);
SHOWN void __hipRegisterVar(
    void **handle, void *var, char *host_name, char *device_name, int is_external,
    size_t bytes, int is_constant, int is_global)
{
    (void)handle;
    (void)var;
    (void)host_name;
    (void)device_name;
    (void)is_external;
    (void)bytes;
    (void)is_constant;
    (void)is_global;
}
