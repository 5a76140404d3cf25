/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVTX ranges as a profiler sees them: one for each allocation and each free of a user, none
 * for what resources do among themselves.
 */
#include "sim/pool/pool_harness.h"

#include <string.h>

/* called by nvtx_injected.c */
void test_saw_begin(const char *domain, const char *name, uint64_t payload);
void test_saw_end(const char *domain);

typedef struct seen {
    unsigned allocs, deallocs, others;
    uint64_t bytes;
    int depth, deepest;
} seen_t;

static seen_t seen;

void test_saw_begin(const char *domain, const char *name, uint64_t payload)
{
    bool ours = strcmp(domain, "rmm-c") == 0;

    seen.allocs += ours && strcmp(name, "allocate") == 0;
    seen.deallocs += ours && strcmp(name, "deallocate") == 0;
    seen.others += !ours;
    seen.bytes = payload;
    seen.depth++;
    if (seen.depth > seen.deepest) {
        seen.deepest = seen.depth;
    }
}

void test_saw_end(const char *domain)
{
    seen.others += strcmp(domain, "rmm-c") != 0;
    seen.depth--;
}

static int forget(void **state)
{
    (void)state;
    memset(&seen, 0, sizeof(seen));
    return 0;
}

static void expect_seen(unsigned allocs, unsigned deallocs)
{
    assert_int_equal(seen.allocs, allocs);
    assert_int_equal(seen.deallocs, deallocs);
    assert_int_equal(seen.others, 0);
    assert_int_equal(seen.depth, 0);
    assert_int_equal(seen.deepest, 1);
}

TEST_CASE_WITH(one_range_for_each_call, forget, NULL)
{
    rmm_resource_t *cuda = make_cuda();
    void *ptr = take(cuda, 1000, NULL);

    (void)state;
    expect_seen(1, 0);
    assert_int_equal(seen.bytes, 1000);
    give(cuda, ptr, 1000, NULL);
    expect_seen(1, 1);
    assert_int_equal(seen.bytes, 1000);
    assert_ok(rmm_resource_alloc_sync(cuda, 2000, 0, &ptr));
    rmm_resource_dealloc_sync(cuda, ptr, 2000, 0);
    expect_seen(2, 2);
    rmm_resource_release(cuda);
}

TEST_CASE_WITH(a_failure_ends_its_range, forget, NULL)
{
    rmm_resource_t *pool = make_pool(0, MIB);
    void *ptr;

    (void)state;
    assert_int_equal(
        rmm_resource_alloc(pool, 2 * MIB, 0, NULL, &ptr), RMM_ERR_OUT_OF_MEMORY);
    expect_seen(1, 0);
    rmm_resource_release(pool);
}

/* binning over pool over cuda: a bin takes a chunk of the pool, the pool one of cuda */
TEST_CASE_WITH(what_resources_do_among_themselves_is_not_shown, forget, NULL)
{
    rmm_resource_t *mr = NULL;

    (void)state;
    assert_ok(rmm_resource_create_from_spec("binning", &mr));
    for (unsigned i = 1; i <= 3; i++) {
        give(mr, take(mr, 100 * KIB, NULL), 100 * KIB, NULL);
        expect_seen(i, i);
    }
    rmm_resource_release(mr);
    expect_seen(3, 3);
}

static rmm_status_t
alloc_from(size_t bytes, rmm_stream_t stream, void *payload, void **ptr_out)
{
    return rmm_resource_alloc(payload, bytes, 0, stream, ptr_out);
}

static void dealloc_to(void *ptr, size_t bytes, rmm_stream_t stream, void *payload)
{
    rmm_resource_dealloc(payload, ptr, bytes, 0, stream);
}

TEST_CASE_WITH(what_a_callback_takes_is_not_shown, forget, NULL)
{
    rmm_callback_options_t options = RMM_CALLBACK_OPTIONS_INIT;
    rmm_resource_t *cuda = make_cuda();
    rmm_resource_t *mr = NULL;

    (void)state;
    options.alloc = alloc_from;
    options.dealloc = dealloc_to;
    options.payload = cuda;
    assert_ok(rmm_callback_resource_create(&options, &mr));
    give(mr, take(mr, 1000, NULL), 1000, NULL);
    expect_seen(1, 1);
    rmm_resource_release(mr);
    rmm_resource_release(cuda);
}
