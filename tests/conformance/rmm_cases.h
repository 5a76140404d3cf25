/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The common part of the programs of RMM's cases (tests/conformance/rmm_cases.md): each case has
 * RMM's name and figures, and runs on the simulated GPU and on a real one.
 */
#ifndef RMM_TESTS_CONFORMANCE_RMM_CASES_H
#define RMM_TESTS_CONFORMANCE_RMM_CASES_H

#include "harness/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rmm/sim.h>

#include "conformance/subjects.h"
#include "driver/driver.h"

#define SKIPPED 77

static inline const rmm_driver_t *gpu(void)
{
    rmm_status_t status;

    return rmm__driver(&status);
}

static inline rmm_resource_t *cuda_resource(void)
{
    rmm_resource_t *mr;

    assert_ok(rmm_cuda_resource_create(&mr));
    return mr;
}

static inline rmm_resource_t *pinned_resource(void)
{
    rmm_resource_t *mr;

    assert_ok(rmm_pinned_resource_create(&mr));
    return mr;
}

/* Takes over the reference on upstream. */
static inline rmm_status_t pool_over(
    rmm_resource_t *upstream, uint64_t initial, uint64_t maximum, rmm_resource_t **out)
{
    rmm_pool_options_t options = RMM_POOL_OPTIONS_INIT;
    rmm_status_t status;

    options.initial_bytes = initial;
    options.maximum_bytes = maximum;
    status = rmm_pool_resource_create(upstream, &options, out);
    rmm_resource_release(upstream);
    return status;
}

static inline void *take(rmm_resource_t *mr, size_t bytes)
{
    void *ptr = NULL;

    assert_ok(rmm_resource_alloc_sync(mr, bytes, 0, &ptr));
    assert_int_equal((uintptr_t)ptr % RMM_ALIGN_DEFAULT, 0);
    return ptr;
}

static inline void give(rmm_resource_t *mr, void *ptr, size_t bytes)
{
    rmm_resource_dealloc_sync(mr, ptr, bytes, 0);
}

static inline void refuse(rmm_resource_t *mr, size_t bytes)
{
    void *ptr = NULL;

    assert_int_equal(
        rmm_resource_alloc_sync(mr, bytes, 0, &ptr), RMM_ERR_OUT_OF_MEMORY);
    assert_null(ptr);
}

/* The device fills the block and reads it back. */
static inline void use(void *ptr, size_t bytes, rmm_stream_t stream)
{
    unsigned char last = 0;

    assert_int_equal(gpu()->memset_async(ptr, 7, bytes, stream), RMM_DRIVER_OK);
    assert_int_equal(
        gpu()->memcpy_async(&last, (char *)ptr + bytes - 1, 1, stream), RMM_DRIVER_OK);
    assert_int_equal(gpu()->stream_synchronize(stream), RMM_DRIVER_OK);
    assert_int_equal(last, 7);
}

#define CASE(name, function)                                                           \
    {                                                                                  \
        name, function, NULL, NULL, NULL                                               \
    }

/* The driver that RMM_DRIVER names is in use: 0; else what main() returns. */
static inline int begin_cases(void)
{
    rmm_status_t status;
    const rmm_driver_t *driver = rmm__driver(&status);

    if (driver == NULL) {
        printf("skipped: %s\n", rmm_last_error_message());
        return status == RMM_ERR_NO_DEVICE ? SKIPPED : EXIT_FAILURE;
    }
    if (strcmp(driver->name, getenv("RMM_DRIVER")) != 0) {
        printf("the driver is %s\n", driver->name);
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}

#endif /* RMM_TESTS_CONFORMANCE_RMM_CASES_H */
