/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls of the driver API by which a program takes memory and gives it back, reported to the
 * librmm-c that counts it (library.h). What this library takes for itself is left out.
 *
 * Not seen: arrays in compressed and planar formats, memory imported from another process,
 * memory of graphs, and what vanishes with its context instead of being freed.
 */
#ifndef RMM_TOOLS_INJECT_CUPTI_BLOCKS_H
#define RMM_TOOLS_INJECT_CUPTI_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cupti.h>

#include "inject/cupti_params.h"
#include "inject/library.h"

/* Asks whether a stream is being captured; NULL: nobody knows, none is. */
typedef CUresult (*cupti_is_capturing_fn)(CUstream, CUstreamCaptureStatus *);

typedef struct cupti_blocks {
    inject_library_t library;
    cupti_is_capturing_fn is_capturing;
} cupti_blocks_t;

/* The i-th callback to be enabled; false behind the last. */
bool cupti_block_call(size_t i, cupti_call_t *call_out);

bool cupti_blocks_is_call(CUpti_CallbackId call);

/* Before the call is made: what it is going to free is counted down. Returns true if `call` is
 * one of these calls. */
bool cupti_blocks_before(
    const cupti_blocks_t *blocks, CUpti_CallbackId call, const void *params);

/* After the call has succeeded: what it took is counted. device -1: unknown. Returns true if
 * `call` is one of these calls. */
bool cupti_blocks_after(
    const cupti_blocks_t *blocks, CUpti_CallbackId call, const void *params,
    int32_t device);

/* After the call has succeeded: the addresses that are in use from now on, by whatever. False: it
 * takes none. */
bool cupti_blocks_range(
    CUpti_CallbackId call, const void *params, uint64_t *address, uint64_t *bytes);

#endif /* RMM_TOOLS_INJECT_CUPTI_BLOCKS_H */
