/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the stand-in for libamdhip64 share (standin.c). HIP's functions are
 * declared by the library's own list, as far as HIP_VERSION has them.
 */
#ifndef RMM_TESTS_HIP_STANDIN_H
#define RMM_TESTS_HIP_STANDIN_H

#include <stdbool.h>
#include <stdint.h>

#include "driver/hip_types.h"
#include "driver/table.h"

#define HIP(need, result, name, parameters)                                            \
    __attribute__((visibility("default"))) result name parameters;
#include "driver/hip_functions.def"
#undef HIP

#pragma GCC visibility push(hidden)

/* The simulated GPU, once is_open() has said so. */
extern const rmm_driver_t *sim;
bool is_open(void);

/* Notes the last error as HIP does; returns it. */
hip_error_t done(int error);

#pragma GCC visibility pop

/* SIM(call): the call to the simulated GPU. */
#define SIM(call) done(is_open() ? (call) : 3 /* hipErrorNotInitialized */)

/* ON(stream, call): a call with a stream. HIP before 6.2 takes the handle 1 for an address. */
#define ON(stream, call) (is_bad(stream) ? done(RMM_DRIVER_INVALID_HANDLE) : SIM(call))

static inline bool is_bad(hip_stream_t stream)
{
    return (uintptr_t)stream == 1;
}

static inline rmm_stream_t of(hip_stream_t stream)
{
    return (rmm_stream_t)(void *)stream;
}

#endif /* RMM_TESTS_HIP_STANDIN_H */
