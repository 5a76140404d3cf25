/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host memory, in a process that has no GPU: RMM_DRIVER is one that does not exist, so
 * every question to a driver would fail.
 */
#include "harness/harness.h"

#include <stdlib.h>
#include <string.h>

#include <rmm/rmm.h>

#include "core/host_memory.h"
#include "driver/driver.h"

static rmm_resource_t *make_host(void)
{
    rmm_resource_t *host;

    assert_ok(rmm_host_resource_create(&host));
    return host;
}

static rmm_stats_t stats_of(const rmm_resource_t *mr)
{
    rmm_stats_t stats = RMM_STATS_INIT;

    assert_ok(rmm_resource_get_stats(mr, &stats));
    return stats;
}

TEST_CASE(gives_every_alignment)
{
    rmm_resource_t *host = make_host();

    for (size_t align = 16; align <= RMM_ALIGN_MAX; align *= 2) {
        void *ptr;

        assert_ok(rmm_resource_alloc(host, 1000, align, NULL, &ptr));
        assert_int_equal((uintptr_t)ptr % align, 0);
        memset(ptr, 1, 1000);
        rmm_resource_dealloc(host, ptr, 1000, align, NULL);
    }
    assert_int_equal(stats_of(host).current_bytes, 0);
    rmm_resource_release(host);
}

TEST_CASE(works_without_any_driver)
{
    rmm_resource_t *host = make_host();
    rmm_status_t status;
    void *ptr;

    assert_ok(rmm_resource_alloc_sync(host, 1000, 0, &ptr));
    assert_int_equal(rmm_resource_properties(host), RMM_HOST_ACCESSIBLE);
    assert_int_equal(stats_of(host).reserved_bytes, 1000);
    rmm_resource_dealloc_sync(host, ptr, 1000, 0);
    rmm_resource_release(host);
    assert_null(rmm__driver(&status));
}

TEST_CASE(says_out_of_memory)
{
    rmm_resource_t *host = make_host();
    void *ptr = NULL;

    assert_int_equal(
        rmm_resource_alloc(host, (size_t)1 << 50, 0, NULL, &ptr),
        RMM_ERR_OUT_OF_MEMORY);
    assert_null(ptr);
    assert_int_equal(stats_of(host).oom_count, 1);
    rmm_resource_release(host);
}

TEST_CASE(frees_what_is_out_at_its_end)
{
    rmm_resource_t *host = make_host();
    void *ptr;

    assert_ok(rmm_resource_alloc(host, 1000, 0, NULL, &ptr));
    rmm_resource_release(host); /* the address sanitizer would tell of a leak */
    host = make_host();
    assert_int_equal(stats_of(host).current_bytes, 0);
    rmm_resource_release(host);
}

TEST_CASE(no_pool_can_be_built_on_it)
{
    rmm_resource_t *host = make_host();
    rmm_resource_t *pool = NULL;

    assert_int_equal(rmm_pool_resource_create(host, NULL, &pool), RMM_ERR_UNSUPPORTED);
    assert_non_null(strstr(rmm_last_error_message(), "pinned"));
    assert_null(pool);
    rmm_resource_release(host);
}

/* The n-th request for host memory fails, until the scenario succeeds. */
static rmm_status_t
program_alloc(size_t bytes, rmm_stream_t stream, void *payload, void **ptr_out)
{
    *ptr_out = aligned_alloc(256, (bytes + 255) / 256 * 256);
    return *ptr_out != NULL ? RMM_OK : RMM_ERR_OUT_OF_MEMORY;
}

static void program_dealloc(void *ptr, size_t bytes, rmm_stream_t stream, void *payload)
{
    free(ptr);
}

TEST_CASE(a_callback_for_host_memory_needs_no_driver_either)
{
    rmm_callback_options_t options = RMM_CALLBACK_OPTIONS_INIT;
    rmm_resource_t *mr = NULL;
    void *ptr;

    options.alloc = program_alloc;
    options.dealloc = program_dealloc;
    assert_int_not_equal(rmm_callback_resource_create(&options, &mr), RMM_OK);
    assert_null(mr);
    options.properties = RMM_HOST_ACCESSIBLE;
    assert_ok(rmm_callback_resource_create(&options, &mr));
    assert_int_equal(rmm_resource_properties(mr), RMM_HOST_ACCESSIBLE);
    assert_ok(rmm_resource_alloc_sync(mr, 1000, 0, &ptr));
    memset(ptr, 1, 1000);
    rmm_resource_dealloc_sync(mr, ptr, 1000, 0);
    assert_ok(rmm_resource_alloc(mr, 1000, 0, NULL, &ptr)); /* left to the end */
    rmm_resource_release(mr);
}

TEST_CASE(survives_every_failing_request)
{
    bool struck = true;

    for (uint64_t n = 1; struck; n++) {
        rmm_resource_t *host = NULL;
        void *ptr = NULL;
        rmm_status_t status;

        rmm__host_memory_fail(n);
        status = rmm_host_resource_create(&host);
        if (status == RMM_OK) {
            status = rmm_resource_alloc(host, 1000, 0, NULL, &ptr);
            if (status == RMM_OK) {
                rmm_resource_dealloc(host, ptr, 1000, 0, NULL);
            }
            assert_int_equal(stats_of(host).current_bytes, 0);
            rmm_resource_release(host);
        }
        struck = rmm__host_memory_fail_struck();
        rmm__host_memory_fail(0);
        assert_true(
            status == RMM_OK || status == RMM_ERR_OUT_OF_HOST_MEMORY ||
            status == RMM_ERR_OUT_OF_MEMORY);
        assert_true(struck || status == RMM_OK);
    }
}
