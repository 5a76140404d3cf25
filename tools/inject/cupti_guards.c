/* SPDX-License-Identifier: Apache-2.0 */
/* Guards on a real GPU; see cupti_guards.h. */
#include "inject/cupti_guards.h"

#include <assert.h>
#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include <cuda.h>

#include "core/mutex.h"

#define DEVICES_MAX 64
#define THREADS 128u /* of a block: a guard has 256 to 511 bytes, mostly */

static_assert(sizeof(rmm_guard_t) == 24, "guards.ptx");
static_assert(
    sizeof(rmm_guard_state_t) == 16 && offsetof(rmm_guard_state_t, open) == 0 &&
        offsetof(rmm_guard_state_t, filled) == 4 &&
        offsetof(rmm_guard_state_t, over) == 8,
    "guards.ptx");
static_assert(
    offsetof(rmm_guard_job_t, results) == 8 &&
        offsetof(rmm_guard_job_t, action) == 16 &&
        offsetof(rmm_guard_job_t, tag) == 24 &&
        offsetof(rmm_guard_job_t, guards) == 32 && offsetof(rmm_guard_t, bytes) == 8 &&
        offsetof(rmm_guard_t, slot) == 12 && offsetof(rmm_guard_t, number) == 16 &&
        sizeof(rmm_guard_job_t) == 416,
    "guards.ptx");

static const char module_text[] =
#include <guards_ptx.inc>
    ;

/* By their names in libcuda. */
#define FUNCTIONS(X)                                                                   \
    X(cuDeviceGet, CUresult, (CUdevice *, int))                                        \
    X(cuDevicePrimaryCtxRetain, CUresult, (CUcontext *, CUdevice))                     \
    X(cuDevicePrimaryCtxRelease_v2, CUresult, (CUdevice))                              \
    X(cuCtxGetCurrent, CUresult, (CUcontext *))                                        \
    X(cuCtxPushCurrent_v2, CUresult, (CUcontext))                                      \
    X(cuCtxPopCurrent_v2, CUresult, (CUcontext *))                                     \
    X(cuThreadExchangeStreamCaptureMode, CUresult, (CUstreamCaptureMode *))            \
    X(cuModuleLoadData, CUresult, (CUmodule *, const void *))                          \
    X(cuModuleGetFunction, CUresult, (CUfunction *, CUmodule, const char *))           \
    X(cuMemHostRegister_v2, CUresult, (void *, size_t, unsigned int))                  \
    X(cuMemHostGetDevicePointer_v2, CUresult, (CUdeviceptr *, void *, unsigned int))   \
    X(cuStreamIsCapturing, CUresult, (CUstream, CUstreamCaptureStatus *))              \
    X(cuLaunchKernel, CUresult,                                                        \
      (CUfunction, unsigned int, unsigned int, unsigned int, unsigned int,             \
       unsigned int, unsigned int, unsigned int, CUstream, void **, void **))

static struct {
#define X(name, result, arguments) result(CUDAAPI *name) arguments;
    FUNCTIONS(X)
#undef X
} cuda;

typedef struct place {
    atomic_bool is_ready;
    CUcontext context;
    CUfunction function;
    uint64_t shared; /* the engine's memory as the GPU sees it */
} place_t;

static rmm_mutex_t lock = RMM_MUTEX_INITIALIZER;
static bool is_pinned;              /* protected by it */
static place_t places[DEVICES_MAX]; /* written under it, once, before is_ready */
static atomic_bool is_closed;

/* --- the driver ------------------------------------------------------------------------- */

bool cupti_guards_open(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    bool found = library != NULL;
    void *symbol = NULL;

#define X(name, result, arguments)                                                     \
    symbol = found ? dlsym(library, #name) : NULL;                                     \
    memcpy(&cuda.name, &symbol, sizeof(symbol));                                       \
    found = found && symbol != NULL;
    FUNCTIONS(X)
#undef X
    (void)dlerror();
    return found;
}

static void close_all(void)
{
    atomic_store_explicit(&is_closed, true, memory_order_relaxed);
}

void cupti_guards_context_ends(CUcontext context)
{
    for (int32_t i = 0; i < DEVICES_MAX; i++) {
        /* acquire: pairs with open_place() */
        if (atomic_load_explicit(&places[i].is_ready, memory_order_acquire) &&
            places[i].context == context) {
            close_all();
        }
    }
}

/* --- the first use of a device ----------------------------------------------------------- */

/* Pinned once for every context. A child would have copies that the GPU does not write to. */
static CUresult pin_locked(const rmm_guard_job_t *job)
{
    void *memory = (void *)(uintptr_t)job->states;
    CUresult result = CUDA_SUCCESS;

    RMM_ASSERT_LOCKED(&lock);
    if (!is_pinned) {
        (void)madvise(memory, job->shared_bytes, MADV_DONTFORK);
        result = cuda.cuMemHostRegister_v2(
            memory, job->shared_bytes,
            CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP);
        is_pinned = result == CUDA_SUCCESS;
    }
    return result;
}

/* The context is current. */
static CUresult load_locked(place_t *place, const rmm_guard_job_t *job)
{
    CUmodule module = NULL;
    CUdeviceptr shared = 0;
    CUresult result = cuda.cuModuleLoadData(&module, module_text);

    RMM_ASSERT_LOCKED(&lock);
    if (result == CUDA_SUCCESS) {
        result = cuda.cuModuleGetFunction(&place->function, module, "rmm_guards");
    }
    if (result == CUDA_SUCCESS) {
        result = pin_locked(job);
    }
    if (result == CUDA_SUCCESS) {
        result = cuda.cuMemHostGetDevicePointer_v2(
            &shared, (void *)(uintptr_t)job->states, 0);
    }
    place->shared = shared;
    return result;
}

/* The handle of the context that the runtime keeps; not kept alive by it. */
static CUresult find_context(int32_t ordinal, CUcontext *context_out)
{
    CUdevice device = 0;
    CUresult result = cuda.cuDeviceGet(&device, ordinal);

    if (result == CUDA_SUCCESS) {
        result = cuda.cuDevicePrimaryCtxRetain(context_out, device);
    }
    if (result == CUDA_SUCCESS) {
        (void)cuda.cuDevicePrimaryCtxRelease_v2(device);
    }
    return result;
}

static CUresult
open_place_locked(place_t *place, int32_t device, const rmm_guard_job_t *job)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    CUresult result = find_context(device, &place->context);
    CUcontext popped = NULL;

    RMM_ASSERT_LOCKED(&lock);
    if (result == CUDA_SUCCESS) {
        result = cuda.cuCtxPushCurrent_v2(place->context);
    }
    if (result != CUDA_SUCCESS) {
        return result;
    }
    result = cuda.cuThreadExchangeStreamCaptureMode(&mode);
    if (result == CUDA_SUCCESS) {
        result = load_locked(place, job);
        (void)cuda.cuThreadExchangeStreamCaptureMode(&mode);
    }
    (void)cuda.cuCtxPopCurrent_v2(&popped);
    return result;
}

/* Only an allocation opens a device: nothing else does before it. */
static CUresult open_place(place_t *place, int32_t device, const rmm_guard_job_t *job)
{
    CUresult result = CUDA_SUCCESS;

    /* acquire: pairs with the release below */
    if (atomic_load_explicit(&place->is_ready, memory_order_acquire)) {
        return CUDA_SUCCESS;
    }
    if (job->action != RMM_GUARD_FILL) {
        return CUDA_ERROR_NOT_READY;
    }
    rmm__mutex_lock(&lock);
    if (!atomic_load_explicit(&place->is_ready, memory_order_relaxed)) {
        result = open_place_locked(place, device, job);
        /* release: the place is written */
        atomic_store_explicit(
            &place->is_ready, result == CUDA_SUCCESS, memory_order_release);
    }
    rmm__mutex_unlock(&lock);
    return result;
}

/* --- queueing ---------------------------------------------------------------------------- */

/* Also if the driver refuses to say: for the legacy stream, while another captures. */
static bool is_capturing(rmm_stream_t stream)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;

    return cuda.cuStreamIsCapturing((CUstream)stream, &status) != CUDA_SUCCESS ||
           status != CU_STREAM_CAPTURE_STATUS_NONE;
}

static CUresult
launch(const place_t *place, rmm_stream_t stream, const rmm_guard_job_t *job)
{
    rmm_guard_job_t as_seen = *job;
    void *parameters[] = {&as_seen};

    as_seen.results = place->shared + (job->results - job->states);
    as_seen.states = place->shared;
    return cuda.cuLaunchKernel(
        place->function, job->count, 1, 1, THREADS, 1, 1, 0, (CUstream)stream,
        parameters, NULL);
}

/* These leave the next piece of work possible. */
static bool is_passing(CUresult result)
{
    return result == CUDA_ERROR_INVALID_HANDLE ||
           result == CUDA_ERROR_INVALID_CONTEXT || result == CUDA_ERROR_NOT_READY ||
           (result >= CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED &&
            result <= CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
}

static rmm_guard_answer_t answer_of(CUresult result, int *error_out)
{
    if (result == CUDA_SUCCESS) {
        return RMM_GUARD_QUEUED;
    }
    if (is_passing(result)) {
        return RMM_GUARD_REFUSED;
    }
    close_all();
    *error_out = (int)result;
    return RMM_GUARD_FAILED;
}

/* A launch in another context than the place's is not checked: its default stream is another. */
static rmm_guard_answer_t queue_here(
    const place_t *place, rmm_stream_t stream, const rmm_guard_job_t *job,
    int *error_out)
{
    CUcontext current = NULL;
    CUcontext popped = NULL;
    rmm_guard_answer_t answer = RMM_GUARD_REFUSED;
    CUresult result = cuda.cuCtxGetCurrent(&current);
    bool is_current = result == CUDA_SUCCESS && current == place->context;

    if (!is_current && (job->action == RMM_GUARD_CHECK ||
                        cuda.cuCtxPushCurrent_v2(place->context) != CUDA_SUCCESS)) {
        return RMM_GUARD_REFUSED;
    }
    if (!is_capturing(stream)) {
        answer = answer_of(launch(place, stream, job), error_out);
    }
    if (!is_current) {
        (void)cuda.cuCtxPopCurrent_v2(&popped);
    }
    return answer;
}

rmm_guard_answer_t cupti_guards_queue(
    int32_t device, rmm_stream_t stream, const rmm_guard_job_t *job, int *error_out)
{
    CUresult result = CUDA_SUCCESS;

    if (device < 0 || device >= DEVICES_MAX) {
        return RMM_GUARD_REFUSED;
    }
    if (atomic_load_explicit(&is_closed, memory_order_relaxed)) {
        *error_out = CUDA_ERROR_CONTEXT_IS_DESTROYED;
        return RMM_GUARD_FAILED;
    }
    result = open_place(&places[device], device, job);
    return result == CUDA_SUCCESS ? queue_here(&places[device], stream, job, error_out)
                                  : answer_of(result, error_out);
}
