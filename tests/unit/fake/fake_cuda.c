/* SPDX-License-Identifier: Apache-2.0 */
/* The fake libcuda: see fake_cupti.h. */
#include "unit/fake/fake_cupti.h"

#include <stdatomic.h>

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
