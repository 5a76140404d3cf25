/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which stream a free means that the thread-safe adaptor keeps for later: the default stream
 * of the device that was current when it was made. On two simulated devices, in 20 orders.
 */
#include "sim/adaptors/adaptor_harness.h"

#include "driver/sim/control.h"

typedef struct late_free {
    rmm_resource_t *mr;
    void *block;
    unsigned char seen[MIB];
} late_free_t;

/* Called from inside an allocation that device 1 makes: frees memory that device 0 uses. */
static bool free_on_device_0(size_t bytes, void *payload)
{
    late_free_t *late = payload;

    if (late->block != NULL) {
        assert_cuda(rmm__sim_device_set(0));
        assert_cuda(rmm_sim_memset_async(late->block, 1, MIB, RMM_STREAM_PER_THREAD));
        assert_cuda(
            rmm_sim_memcpy_async(late->seen, late->block, MIB, RMM_STREAM_PER_THREAD));
        rmm_resource_dealloc(late->mr, late->block, MIB, 0, RMM_STREAM_PER_THREAD);
        late->block = NULL;
        assert_cuda(rmm__sim_device_set(1));
    }
    return false;
}

TEST_CASE(a_kept_free_means_the_stream_that_it_was_made_on)
{
    static late_free_t late;
    rmm_failure_callback_options_t options = RMM_FAILURE_CALLBACK_OPTIONS_INIT;
    rmm_resource_t *pool = make_pool(MIB, MIB);
    rmm_resource_t *callback;
    rmm_stream_t stream = make_stream(RMM_STREAM_NON_BLOCKING);

    options.callback = free_on_device_0;
    options.arg = &late;
    assert_ok(rmm_failure_callback_adaptor_create(pool, &options, &callback));
    assert_ok(rmm_thread_safe_adaptor_create(callback, NULL, &late.mr));
    for (uint64_t seed = 1; seed <= 20; seed++) {
        void *block;

        rmm__sim_reseed(seed);
        late.block = take(late.mr, MIB, RMM_STREAM_PER_THREAD);
        assert_cuda(rmm__sim_device_set(1));
        assert_int_equal(
            rmm_resource_alloc(late.mr, MIB, 0, stream, &block), RMM_ERR_OUT_OF_MEMORY);
        assert_null(late.block);
        block = take(late.mr, MIB, stream);
        assert_cuda(rmm_sim_memset_async(block, 2, MIB, stream));
        assert_ok(rmm_stream_synchronize(stream));
        assert_cuda(rmm__sim_device_set(0));
        assert_ok(rmm_stream_synchronize(RMM_STREAM_PER_THREAD));
        for (size_t i = 0; i < MIB; i += 1000) {
            assert_int_equal(late.seen[i], 1);
        }
        give(late.mr, block, MIB, stream);
    }
    rmm_resource_release(late.mr);
    rmm_resource_release(callback);
    rmm_resource_release(pool);
    assert_ok(rmm_stream_destroy(stream));
    assert_int_equal(rmm_sim_violations(), 0);
}
