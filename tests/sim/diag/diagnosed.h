/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a process under diagnosis does in these tests: takes blocks, and reads its own side file.
 */
#ifndef RMM_TESTS_SIM_DIAG_DIAGNOSED_H
#define RMM_TESTS_SIM_DIAG_DIAGNOSED_H

#include "harness/runtime.h"

#include <pthread.h>

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

static inline void print_findings(const diag_file_t *file)
{
    const rmm_diag_header_t *header = file->header;

    fprintf(
        stderr, "findings: %lu; guards: %lu checks, %lu missing, %lu unchecked\n",
        (unsigned long)header->findings_total, (unsigned long)header->guard_checks,
        (unsigned long)header->guards_missing, (unsigned long)header->guards_unchecked);
    for (uint32_t i = 0; i < header->findings.used; i++) {
        const rmm_diag_finding_t *finding = &file->findings[i];

        fprintf(
            stderr, "kind %u, call %u by %s, behind call %u by %s, %lu times\n",
            finding->kind, finding->call, diag_file_user(file, finding->user),
            finding->other_call, diag_file_user(file, finding->other_user),
            (unsigned long)finding->count);
    }
}

static inline void expect_findings(const runtime_t *runtime, uint64_t count)
{
    diag_file_t file;

    open_own_file(runtime, &file);
    if (file.header->findings_total != count) {
        print_findings(&file);
    }
    CHECK(file.header->findings_total == count);
    diag_file_close(&file);
}

static inline void run_in_threads(void *(*work)(void *), void *argument)
{
    pthread_t threads[4];
    const size_t count = sizeof(threads) / sizeof(threads[0]);

    for (size_t i = 0; i < count; i++) {
        CHECK(pthread_create(&threads[i], NULL, work, argument) == 0);
    }
    for (size_t i = 0; i < count; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
}

#endif /* RMM_TESTS_SIM_DIAG_DIAGNOSED_H */
