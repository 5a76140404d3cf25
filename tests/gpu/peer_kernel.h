/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kernel for programs that no CUDA compiler builds: it adds 1 to each of some words, which may
 * be another device's memory. The driver compiles it from PTX.
 */
#ifndef RMM_TESTS_GPU_PEER_KERNEL_H
#define RMM_TESTS_GPU_PEER_KERNEL_H

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <stdint.h>
#include <string.h>

#include "driver/cuda_internal.h"

static const char peer_kernel_ptx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry add_one(.param .u64 words, .param .u64 count)\n{\n"
    ".reg .pred %p<2>;\n.reg .b32 %r<6>;\n.reg .b64 %d<6>;\n"
    "ld.param.u64 %d1, [words];\nld.param.u64 %d2, [count];\n"
    "cvta.to.global.u64 %d1, %d1;\n"
    "mov.u32 %r1, %ctaid.x;\nmov.u32 %r2, %ntid.x;\nmov.u32 %r3, %tid.x;\n"
    "mad.lo.u32 %r4, %r1, %r2, %r3;\ncvt.u64.u32 %d3, %r4;\n"
    "setp.ge.u64 %p1, %d3, %d2;\n@%p1 ret;\n"
    "shl.b64 %d4, %d3, 2;\nadd.u64 %d5, %d1, %d4;\n"
    "ld.global.u32 %r5, [%d5];\nadd.u32 %r5, %r5, 1;\nst.global.u32 [%d5], %r5;\n"
    "ret;\n}\n";

/* The driver's function of that name, put into a pointer to one. */
static inline int peer_find(const char *name, unsigned version, void *function_out)
{
    void *found = NULL;
    int error = rmm__cuda_find_entry(name, version, &found);

    memcpy(function_out, &found, sizeof(found));
    return error;
}

/* On a stream of the current device; a cudaError_t or CUresult, which have the same values. */
static inline int peer_add_one(void *words, uint64_t count, cudaStream_t stream)
{
    CUresult (*load)(CUmodule *, const void *);
    CUresult (*find)(CUfunction *, CUmodule, const char *);
    CUresult (*launch)(
        CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
        unsigned, CUstream, void **, void **);
    static CUmodule modules[64];
    CUfunction kernel;
    void *params[] = {&words, &count};
    int device;
    int error = cudaGetDevice(&device);

    if (error == 0) {
        error = cudaSetDevice(device); /* its context is current from here on */
    }
    if (error == 0) {
        error = peer_find("cuModuleLoadData", 2000, &load);
    }
    if (error == 0) {
        error = peer_find("cuModuleGetFunction", 2000, &find);
    }
    if (error == 0) {
        error = peer_find("cuLaunchKernel", 4000, &launch);
    }
    if (error == 0 && modules[device] == NULL) {
        error = (int)load(&modules[device], peer_kernel_ptx);
    }
    if (error == 0) {
        error = (int)find(&kernel, modules[device], "add_one");
    }
    return error != 0 ? error
                      : (int)launch(
                            kernel, (unsigned)((count + 255) / 256), 1, 1, 256, 1, 1, 0,
                            stream, params, NULL);
}

#endif /* RMM_TESTS_GPU_PEER_KERNEL_H */
