/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranges for Nsight Systems around what a user allocates and frees: domain "rmm-c", names
 * "allocate" and "deallocate", payload the bytes. Built with the CMake option RMM_NVTX;
 * without it these are nothing at all.
 *
 * Only the public calls have them: what a pool takes from its upstream, and what a program's
 * own function takes inside a callback, is part of the range that is open already.
 */
#ifndef RMM_CORE_NVTX_H
#define RMM_CORE_NVTX_H

#include <stddef.h>

#ifdef RMM_NVTX
void rmm__nvtx_begin_alloc(size_t bytes);
void rmm__nvtx_begin_dealloc(size_t bytes);
void rmm__nvtx_end(void);
#else
static inline void rmm__nvtx_begin_alloc(size_t bytes)
{
    (void)bytes;
}
static inline void rmm__nvtx_begin_dealloc(size_t bytes)
{
    (void)bytes;
}
static inline void rmm__nvtx_end(void)
{
}
#endif

#endif /* RMM_CORE_NVTX_H */
