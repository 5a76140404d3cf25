/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the parameters of the driver's calls are described and read, for the tables of calls
 * (cupti_blocks.c, cupti_order.c, cupti_ranges.c): a parameter is named by where it is in the
 * structure that CUPTI passes.
 */
#ifndef RMM_TOOLS_INJECT_CUPTI_PARAMS_H
#define RMM_TOOLS_INJECT_CUPTI_PARAMS_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cupti.h>

#include <rmm/stream.h>

/* A callback to be enabled. */
typedef struct cupti_call {
    CUpti_CallbackId id;
    bool
        is_recent; /* CUPTI of CUDA 12.0 does not know it; its driver does not have it either */
} cupti_call_t;

#define CBID(call) CUPTI_DRIVER_TRACE_CBID_##call
#define AT(call, member) (uint8_t) offsetof(call##_params, member)

enum { ABSENT = 255 }; /* no such parameter */

/* The twin of a call, for the per-thread default stream, has a structure of its own. */
#define SAME_OFFSET(call, member)                                                      \
    static_assert(                                                                     \
        offsetof(call##_params, member) == offsetof(call##_ptsz_params, member),       \
        #call " and its twin differ")

/* Addresses, sizes and handles alike; 0: ABSENT. */
static inline uint64_t word_at(const void *params, uint8_t at)
{
    uint64_t word = 0;

    if (at != ABSENT) {
        memcpy(&word, (const char *)params + at, sizeof(word));
    }
    return word;
}
static_assert(
    sizeof(CUdeviceptr) == 8 && sizeof(size_t) == 8 && sizeof(void *) == 8,
    "word_at() reads 8 bytes");

/* The value that the driver wrote to where this parameter points; 0: nowhere. */
static inline uint64_t result_at(const void *params, uint8_t at)
{
    const void *where = (const void *)(uintptr_t)word_at(params, at);
    uint64_t word = 0;

    if (where != NULL) {
        memcpy(&word, where, sizeof(word));
    }
    return word;
}

/* The stream that a call was given. The twin's default stream is the thread's own. */
static inline rmm_stream_t cupti_stream(uint64_t given, bool is_twin)
{
    return given == 0 && is_twin ? RMM_STREAM_PER_THREAD
                                 : (rmm_stream_t)(uintptr_t)given;
}

#endif /* RMM_TOOLS_INJECT_CUPTI_PARAMS_H */
