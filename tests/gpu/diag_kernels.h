/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launches of every kind, for diag_usage.c: each launches its kernel once and returns a
 * cudaError_t (0 is success). Kernels are named as here, with "_kernel" for "diag_".
 */
#ifndef RMM_TESTS_GPU_DIAG_KERNELS_H
#define RMM_TESTS_GPU_DIAG_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#include <rmm/stream.h>

#ifdef __cplusplus
extern "C" {
#endif

/* By value within other members, as programs pass descriptors. */
typedef struct diag_pair {
    int32_t count;
    float *first;
    int16_t middle;
    float *second;
} diag_pair_t;

/* More than the 4 KiB that older drivers take; a pointer at its end. */
typedef struct diag_large {
    uint64_t filler[1022];
    float *last;
} diag_large_t;

int diag_gpu_count(void);
int diag_synchronize(void);

int diag_fill(float *block, int count, rmm_stream_t stream); /* <<<>>> */
int diag_scale(float *out, const float *in, rmm_stream_t stream);
int diag_mix(const diag_pair_t *pair, rmm_stream_t stream);   /* struct by value */
int diag_big(const diag_large_t *large, rmm_stream_t stream); /* 8 KiB by value */
int diag_typed(double *block, rmm_stream_t stream);           /* a C++ template */
int diag_group(float *block, rmm_stream_t stream);            /* cooperative */
int diag_extended(float *block, rmm_stream_t stream);         /* cudaLaunchKernelEx */
int diag_packed(float *block, rmm_stream_t stream);           /* driver API, `extra` */
int diag_nothing(rmm_stream_t stream);                        /* no parameters */
int diag_own_stream(float *block); /* per-thread default stream, another file */

/* Asks for more threads than a block can have: the error, which is left behind nowhere. */
int diag_refused(float *block, rmm_stream_t stream);

/* Capture `launches` launches of diag_fill into a graph and replay it. */
int diag_graph(float *block, int launches, int replays);

int diag_set(float *block, size_t bytes, rmm_stream_t stream);
int diag_copy(float *to, const float *from, size_t bytes, rmm_stream_t stream);

#ifdef __cplusplus
}
#endif

#endif /* RMM_TESTS_GPU_DIAG_KERNELS_H */
