/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tests of adaptors share: an upstream that notes what it is asked for, answers
 * as told, and lets a test act at the moment when a block has just become free.
 */
#ifndef RMM_TESTS_SIM_ADAPTOR_HARNESS_H
#define RMM_TESTS_SIM_ADAPTOR_HARNESS_H

#include "sim/pool/pool_harness.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/count.h"
#include "base/resource_impl.h"
#include "core/error.h"
#include "core/host_memory.h"

typedef struct mock mock_t;

struct mock {
    rmm_resource_t base; /* first member */
    uintptr_t address;   /* what the next allocation gets; 0: a block of `memory` */
    rmm_resource_t *memory;
    rmm_status_t failure;            /* what a failing allocation answers */
    int failures;                    /* this many fail from now */
    bool refuses_frees;              /* as a resource that does not know the block */
    void (*freed)(mock_t *, void *); /* called inside dealloc: the block is free */
    void *argument;
    int allocs, deallocs, trims;
    rmm_request_t asked, given; /* the last ones */
    void *given_ptr;
};

static inline mock_t *mock_from(rmm_resource_t *mr)
{
    return RMM_CONTAINER_OF(mr, mock_t, base);
}

static inline rmm_status_t
mock_alloc(rmm_resource_t *mr, const rmm_request_t *request, void **ptr_out)
{
    mock_t *mock = mock_from(mr);
    rmm_request_t inner = *request;

    mock->allocs++;
    mock->asked = *request;
    if (mock->failures > 0) {
        mock->failures--;
        return rmm__error(mock->failure, "mock: told to fail");
    }
    inner.user = false;
    if (mock->address != 0) {
        *ptr_out = (void *)mock->address;
    } else if (rmm__resource_alloc(mock->memory, &inner, ptr_out) != RMM_OK) {
        return RMM_ERR_OUT_OF_MEMORY;
    }
    rmm__count_alloc(mr, request, 0);
    return RMM_OK;
}

static inline void
mock_dealloc(rmm_resource_t *mr, void *ptr, const rmm_request_t *request)
{
    mock_t *mock = mock_from(mr);
    rmm_request_t inner = *request;
    void (*freed)(mock_t *, void *) = mock->freed;

    mock->deallocs++;
    mock->given = *request;
    mock->given_ptr = ptr;
    if (mock->refuses_frees) {
        rmm__resource_refuse_free(mr, ptr, request, "told to refuse");
        return;
    }
    rmm__count_free(mr, request, 0);
    inner.user = false;
    if (mock->address == 0) {
        rmm__resource_dealloc(mock->memory, ptr, &inner);
    }
    if (freed != NULL) {
        mock->freed = NULL;
        freed(mock, mock->argument);
    }
}

static inline rmm_status_t mock_trim(rmm_resource_t *mr, size_t keep_bytes)
{
    mock_from(mr)->trims += 1 + (int)keep_bytes;
    return RMM_OK;
}

static inline void mock_destroy(rmm_resource_t *mr)
{
    rmm_resource_release(mock_from(mr)->memory);
    rmm__resource_fini(mr);
    free(mock_from(mr));
}

static const rmm_resource_ops_t mock_ops[] = {
    {"mock", mock_alloc, mock_dealloc, mock_trim, mock_destroy, NULL, false, true, NULL,
     false, NULL, NULL},
    {"mock", mock_alloc, mock_dealloc, mock_trim, mock_destroy, NULL, true, true, NULL,
     false, NULL, NULL},
};

/* Over the cuda resource, on device 0. */
static inline mock_t *make_mock_of(bool ready_on_all_streams)
{
    mock_t *mock = calloc(1, sizeof(*mock));

    assert_non_null(mock);
    mock->memory = make_cuda();
    mock->failure = RMM_ERR_OUT_OF_MEMORY;
    assert_ok(rmm__resource_init(
        &mock->base, &(rmm_resource_desc_t){
                         .ops = &mock_ops[ready_on_all_streams],
                         .properties = RMM_DEVICE_ACCESSIBLE}));
    return mock;
}

static inline mock_t *make_mock(void)
{
    return make_mock_of(false);
}

static inline uint64_t location_bytes(void)
{
    return rmm__location_live(0).bytes;
}

static inline uint64_t location_count(void)
{
    rmm_accounting_sums_t sums;

    rmm__location_sums(0, &sums);
    return rmm_live_count(sums.total_count, sums.freed_count);
}

/* An allocation that gets the block which is being freed. */
typedef struct reuse {
    rmm_resource_t *mr;
    size_t bytes;
    void *ptr; /* receives the block */
} reuse_t;

static inline void *take_same_block(void *argument)
{
    reuse_t *reuse = argument;

    return (void *)(intptr_t)rmm_resource_alloc(
        reuse->mr, reuse->bytes, 0, NULL, &reuse->ptr);
}

/* mock_t.freed: in upstream's dealloc the block is free already. */
static inline void reuse_on_another_thread(mock_t *mock, void *argument)
{
    pthread_t thread;
    void *status;

    assert_int_equal(pthread_create(&thread, NULL, take_same_block, argument), 0);
    assert_int_equal(pthread_join(thread, &status), 0);
    assert_int_equal((intptr_t)status, RMM_OK);
}

/* Nothing is out, was refused, or is left when it is gone. */
static inline void end_adaptor(rmm_resource_t *mr)
{
    assert_int_equal(stats_of(mr).current_bytes, 0);
    assert_int_equal(stats_of(mr).current_count, 0);
    assert_int_equal(stats_of(mr).invalid_free_count, 0);
    rmm_resource_release(mr);
    assert_int_equal(rmm_sim_allocated_bytes(0), 0);
    assert_int_equal(location_bytes(), 0);
    assert_int_equal(location_count(), 0);
    assert_int_equal(rmm__sim_library_events(), 0);
    assert_int_equal(rmm_sim_violations(), 0);
}

#endif /* RMM_TESTS_SIM_ADAPTOR_HARNESS_H */
