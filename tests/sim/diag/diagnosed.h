/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a process under diagnosis does in these tests: takes blocks, and reads its own side file.
 */
#ifndef RMM_TESTS_SIM_DIAG_DIAGNOSED_H
#define RMM_TESTS_SIM_DIAG_DIAGNOSED_H

#include "harness/runtime.h"

#include <rmm/cuda_resource.h>
#include <rmm/pool_resource.h>

#include "harness/diag_file.h"

static inline rmm_resource_t *make_pool(void)
{
    rmm_resource_t *cuda = NULL, *pool = NULL;

    CHECK(rmm_cuda_resource_create(&cuda) == RMM_OK);
    CHECK(rmm_pool_resource_create(cuda, NULL, &pool) == RMM_OK);
    rmm_resource_release(cuda);
    return pool;
}

static inline void *take(rmm_resource_t *mr, size_t bytes, rmm_stream_t stream)
{
    void *block = NULL;

    CHECK(rmm_resource_alloc(mr, bytes, 0, stream, &block) == RMM_OK);
    return block;
}

static inline void open_own_file(const runtime_t *runtime, diag_file_t *file)
{
    char path[512];

    CHECK(diag_file_find(runtime->path, path));
    CHECK(diag_file_read(file, path));
}

#endif /* RMM_TESTS_SIM_DIAG_DIAGNOSED_H */
