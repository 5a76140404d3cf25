/* SPDX-License-Identifier: Apache-2.0 */
/* The fake libcuda: see fake_cupti.h. */
#include "unit/fake/fake_cupti.h"

#include <stdatomic.h>

#include "diag/guards.h"

static _Atomic(uint32_t) queries;

uint32_t fake_cuda_queries(void)
{
    return queries;
}

static CUresult describe(
    const fake_function_t *function, bool as_kernel, size_t index, size_t *offset,
    size_t *bytes)
{
    queries++;
    if (function->is_kernel != as_kernel) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (index >= function->count) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *offset = function->offsets[index];
    *bytes = function->sizes[index];
    return CUDA_SUCCESS;
}

#if CUDA_VERSION < 12040 /* a driver may be newer than the headers */
CUresult cuFuncGetParamInfo(CUfunction, size_t, size_t *, size_t *);
CUresult cuKernelGetParamInfo(CUkernel, size_t, size_t *, size_t *);
#endif

CUresult
cuFuncGetParamInfo(CUfunction function, size_t index, size_t *offset, size_t *bytes)
{
    return describe((const void *)function, false, index, offset, bytes);
}

CUresult
cuKernelGetParamInfo(CUkernel kernel, size_t index, size_t *offset, size_t *bytes)
{
    return describe((const void *)kernel, true, index, offset, bytes);
}

/* --- a context that launches ------------------------------------------------------------ */

static fake_cuda_control_t control;
static CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

fake_cuda_control_t *fake_cuda_control(void)
{
    return &control;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    *device = ordinal;
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    *context = (CUcontext)(uintptr_t)3;
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device)
{
    return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *context)
{
    *context = control.current;
    return CUDA_SUCCESS;
}

static CUcontext pushed_over[8];
static uint32_t pushed;

CUresult cuCtxPushCurrent(CUcontext context)
{
    pushed_over[pushed++ % 8] = control.current;
    control.current = context;
    return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent(CUcontext *context)
{
    *context = control.current;
    control.current = pushed_over[--pushed % 8];
    return CUDA_SUCCESS;
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *exchanged)
{
    CUstreamCaptureMode previous = mode;

    mode = *exchanged;
    *exchanged = previous;
    return CUDA_SUCCESS;
}

CUresult cuModuleLoadData(CUmodule *module, const void *data)
{
    control.loads++;
    if (mode != CU_STREAM_CAPTURE_MODE_RELAXED) {
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    *module = (CUmodule)(uintptr_t)1;
    return control.load_result;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    *function = (CUfunction)(uintptr_t)2;
    return CUDA_SUCCESS;
}

CUresult cuMemHostRegister(void *memory, size_t bytes, unsigned int flags)
{
    return CUDA_SUCCESS;
}

CUresult
cuMemHostGetDevicePointer(CUdeviceptr *pointer, void *memory, unsigned int flags)
{
    *pointer = (CUdeviceptr)(uintptr_t)memory;
    return CUDA_SUCCESS;
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status)
{
    *status = control.capture_status;
    return control.capture_result;
}

CUresult cuStreamGetFlags(CUstream stream, unsigned int *flags)
{
    *flags = control.stream_flags;
    return control.knows_streams ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuStreamGetId(CUstream stream, unsigned long long *id)
{
    control.stream_queries++;
    *id = (uintptr_t)stream / 16;
    return control.knows_streams ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

/* As CUDA 12 declares it; the headers of 13 do not. */
CUresult cuStreamGetCaptureInfo_v2(
    CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
    const CUgraphNode **dependencies, size_t *dependency_count);

CUresult cuStreamGetCaptureInfo_v2(
    CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
    const CUgraphNode **dependencies, size_t *dependency_count)
{
    bool is_captured = control.graph != NULL && stream == control.captured;

    control.capture_queries++;
    *status =
        is_captured ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
    *graph = is_captured ? control.graph : NULL;
    return CUDA_SUCCESS;
}

CUresult cuLaunchKernel(
    CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
    unsigned int block_x, unsigned int block_y, unsigned int block_z,
    unsigned int shared_bytes, CUstream stream, void **parameters, void **extra)
{
    control.launches++;
    if (control.at_launch != NULL) {
        control.at_launch();
    }
    if (control.launch_result == CUDA_SUCCESS) {
        rmm__guards_run(parameters[0]);
    }
    return control.launch_result;
}
