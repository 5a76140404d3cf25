/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stand-in for compute-sanitizer's side of NVTX (nvtx_tool.c), loaded through
 * NVTX_INJECTION64_PATH. It keeps the heaps and regions that it is told of, and counts as a
 * violation what a tool could not make sense of. In a program that does nothing else, a
 * violation is a line on stderr and the exit status 97.
 */
#ifndef RMM_TESTS_SIM_NVTX_NVTX_TOOL_H
#define RMM_TESTS_SIM_NVTX_NVTX_TOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NVTX_TOOL_STATUS 97

typedef struct nvtx_tool_state {
    uint64_t heaps, regions;             /* now */
    uint64_t heaps_begun, regions_begun; /* so far */
    uint64_t violations;
    char last_violation[160];
    bool has_domain; /* every call came with the domain "rmm-c" */
} nvtx_tool_state_t;

/* Exported by the library; found with dlsym(). */
typedef void (*nvtx_tool_state_fn)(nvtx_tool_state_t *out);
#define NVTX_TOOL_STATE "nvtx_tool_state"
/* May a kernel touch these bytes? Outside of all heaps, or in one region. */
typedef bool (*nvtx_tool_allows_fn)(const void *ptr, size_t bytes);
#define NVTX_TOOL_ALLOWS "nvtx_tool_allows"

#endif /* RMM_TESTS_SIM_NVTX_NVTX_TOOL_H */
