/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The aligned 8-byte words of a launch's parameters. Where the program gives an array of
 * addresses, the driver must be asked how large each parameter is; that costs
 * microseconds, so the answer is kept per function. Pure: the driver comes as functions,
 * so that tests can play it.
 *
 * The words of large structs (RMM_DIAG_LARGE_STRUCT_BYTES) come last; stale_count is their number.
 *
 * A word counts if it is aligned in the kernel's parameter block, as every pointer in an
 * unpacked struct is, and if it lies in one parameter: what is between parameters is padding, which
 * may hold anything in a buffer that the program packs. Padding inside a struct looks like
 * its members, because the driver knows only where a parameter begins and ends.
 *
 * Locks: one short lock around the kept layouts; never held while the driver is asked,
 * because the driver may hold its own locks when it calls inject_layouts_clear().
 */
#ifndef RMM_TOOLS_INJECT_PARAMS_H
#define RMM_TOOLS_INJECT_PARAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/mutex.h"
#include "core/pointer_map.h"

#define INJECT_PARAM_BYTES_MAX 65536u /* twice what CUDA 13 takes */
#define INJECT_WORDS_INLINE 512u      /* 4 KiB: all but unusual kernels */

/* As cuFuncGetParamInfo. */
typedef int (*inject_query_fn)(
    const void *function, size_t index, size_t *offset_out, size_t *bytes_out);

typedef struct inject_queries {
    inject_query_fn of_function; /* NULL: this driver cannot say */
    inject_query_fn of_kernel;   /* asked where the handle is that of a CUkernel */
} inject_queries_t;

/* Run of aligned words within one parameter. */
typedef struct inject_span {
    uint32_t parameter;
    uint32_t offset_bytes; /* of the parameter in the kernel's parameter block */
    uint32_t skip_bytes;   /* from the parameter's begin to its first aligned word */
    uint32_t word_count;
} inject_span_t;

typedef struct inject_layout {
    const void *function;
    bool known; /* false: the driver did not say; do not ask again */
    uint32_t span_count;
    uint32_t word_count;
    inject_span_t
        spans[]; /* only parameters that hold a whole word; the small ones first */
} inject_layout_t;

typedef struct inject_layouts {
    rmm_mutex_t lock;
    rmm_pointer_map_t by_function; /* owner: the inject_layout_t */
    inject_queries_t queries;
} inject_layouts_t;

/* Words of one launch: begin with {0}, end with inject_words_fini(). */
typedef struct inject_words {
    uint64_t *words; /* inline_words, or heap for more */
    size_t count;
    size_t stale_count; /* the last ones: of large structs */
    uint64_t inline_words[INJECT_WORDS_INLINE];
} inject_words_t;

/* How the program passed its parameters: either, or neither for a kernel without any. */
typedef struct inject_params {
    const void *function;
    void *const *addresses; /* kernelParams */
    void *const *extra;     /* keys and values, as cuLaunchKernel's */
} inject_params_t;

void inject_layouts_init(inject_layouts_t *layouts, inject_queries_t queries);
void inject_layouts_fini(inject_layouts_t *layouts);

/* Function handles may name other functions from now on (a module is unloaded). */
void inject_layouts_clear(inject_layouts_t *layouts);

/* False: the parameters cannot be known; no words. */
bool inject_words_collect(
    inject_words_t *words, inject_layouts_t *layouts, const inject_params_t *params);
void inject_words_init(inject_words_t *words);
void inject_words_fini(inject_words_t *words);

#endif /* RMM_TOOLS_INJECT_PARAMS_H */
