/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tests of the driver over HIP share: streams that the program makes by HIP itself,
 * so that the library does not know how they begin and end.
 */
#ifndef RMM_TESTS_HIP_HIP_HARNESS_H
#define RMM_TESTS_HIP_HIP_HARNESS_H

#include "driver/sim/control.h"
#include "sim/pool/pool_harness.h"

#include "driver/hip_internal.h"

static inline const rmm_driver_t *hip_driver(void)
{
    rmm_status_t status;
    const rmm_driver_t *driver = rmm__driver(&status);

    assert_non_null(driver);
    assert_string_equal(driver->name, "hip");
    assert_true(rmm_sim_active());
    return driver;
}

static inline rmm_stream_t foreign_stream(void)
{
    hip_stream_t stream = NULL;

    assert_cuda(rmm__hip.hipStreamCreateWithFlags(&stream, 0));
    return (rmm_stream_t)(void *)stream;
}

static inline void end_foreign(rmm_stream_t stream)
{
    assert_cuda(rmm__hip.hipStreamDestroy((hip_stream_t)(void *)stream));
}

static inline uint64_t id_of(rmm_stream_t stream)
{
    rmm_stream_key_t key;

    assert_cuda(hip_driver()->stream_key(stream, &key));
    assert_int_equal(key.capture_id, 0);
    return key.stream_id;
}

static inline void assert_no_violations(void)
{
    assert_string_equal(rmm__sim_violation_text(), "");
}

#endif /* RMM_TESTS_HIP_HIP_HARNESS_H */
