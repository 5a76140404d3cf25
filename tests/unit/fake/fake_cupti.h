/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A libcupti.so.13 and a libcuda.so.1 for tests: one shared library of each name, so that
 * librmm-inject, which finds both by name at run time, runs its CUPTI source on a machine
 * without a GPU. Types are CUPTI's own; only what is called here exists.
 */
#ifndef RMM_TESTS_UNIT_FAKE_FAKE_CUPTI_H
#define RMM_TESTS_UNIT_FAKE_FAKE_CUPTI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cupti.h>

/* In the fake libcupti */
typedef struct fake_cupti_control {
    CUptiResult subscribe_result;
    const char *rival; /* written where cuptiSubscribe_v2 is told to */
    CUptiResult enable_result;
    CUpti_CallbackId
        unknown_call; /* of the driver API: refused as an older CUPTI does */
    uint32_t subscribed, unsubscribed, attempts;
    bool
        knows_several; /* as CUDA 13.2; cuptiSubscribe_v2 takes no other size of parameters */
    bool must_be_alone;                  /* refuses a subscriber that allows others */
    bool is_alone;                       /* the last one asked to be */
    char name[64];                       /* of the subscriber */
    const CUpti_CallbackData *meanwhile; /* a launch while it is asked for a device */
} fake_cupti_control_t;

fake_cupti_control_t *fake_cupti_control(void);
/* True if somebody asked for this callback. */
bool fake_cupti_enabled(CUpti_CallbackDomain domain, CUpti_CallbackId call);
/* Call the subscriber if the callback is enabled. */
void fake_cupti_call(
    CUpti_CallbackDomain domain, CUpti_CallbackId call, const void *data);

/* In the fake libcuda: a handle points to one of these. */
typedef struct fake_function {
    bool is_kernel; /* a CUkernel: cuFuncGetParamInfo answers 400 */
    size_t count;
    size_t offsets[4], sizes[4];
} fake_function_t;

uint32_t fake_cuda_queries(void);

/* Kernels that this driver loads do the work on guards, at once, on memory of the host. */
typedef struct fake_cuda_control {
    CUresult load_result, launch_result, capture_result;
    CUstreamCaptureStatus capture_status;
    CUcontext current; /* the primary context is 3 */
    CUstream captured; /* is recorded into `graph`; graph NULL: no stream is */
    CUgraph graph;
    uint32_t loads, launches, capture_queries;
    /* of any stream, whose id is its handle / 16; else none is known */
    bool knows_streams;
    unsigned stream_flags;
    uint32_t stream_queries; /* for an id */
    void (*at_launch)(void); /* called by each, as a callback of CUPTI's might be */
} fake_cuda_control_t;

fake_cuda_control_t *fake_cuda_control(void);

#endif /* RMM_TESTS_UNIT_FAKE_FAKE_CUPTI_H */
