/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The public stream functions: argument checks, the driver table, and the ids of the
 * streams made here (stream_ids.h).
 */
#include <rmm/stream.h>

#include <stddef.h>

#include "core/assert.h"
#include "driver/driver.h"
#include "driver/stream_ids.h"

static bool is_built_in(rmm_stream_t stream)
{
    return rmm_stream_is_default(stream) || rmm_stream_is_per_thread_default(stream);
}

/* An id that is unknown, or for which there is no room, is queried each time. */
static void
keep_id(const rmm_driver_t *driver, rmm_stream_t stream, bool never_captures)
{
    rmm_stream_key_t key;

    /* one that was destroyed behind our back had this handle: no longer that id */
    rmm__stream_id_forget(stream);
    if (driver->stream_key(stream, &key) == RMM_DRIVER_OK && key.capture_id == 0) {
        (void)rmm__stream_id_keep(
            stream,
            key.stream_id | (never_captures ? RMM_STREAM_ID_NEVER_CAPTURES : 0));
    }
}

rmm_status_t rmm_stream_create(uint32_t flags, rmm_stream_t *stream_out)
{
    const rmm_driver_t *driver;
    rmm_stream_t stream;
    rmm_status_t status;
    int error;

    RMM_CHECK_ARG(stream_out != NULL, "stream_out is NULL");
    RMM_CHECK_ARG(
        (flags & ~(RMM_STREAM_NON_BLOCKING | RMM_STREAM_NEVER_CAPTURES)) == 0,
        "unknown flag");

    driver = rmm__driver(&status);
    if (driver == NULL) {
        return status;
    }
    error = driver->stream_create(flags & RMM_STREAM_NON_BLOCKING, &stream);
    if (error != RMM_DRIVER_OK) {
        return rmm__driver_error(driver, error, "creating a stream");
    }
    keep_id(driver, stream, (flags & RMM_STREAM_NEVER_CAPTURES) != 0);
    rmm__stream_made(stream);
    *stream_out = stream;
    return RMM_OK;
}

rmm_status_t rmm_stream_destroy(rmm_stream_t stream)
{
    const rmm_driver_t *driver;
    rmm_status_t status;
    int error;

    if (is_built_in(stream)) {
        return RMM_OK;
    }
    driver = rmm__driver(&status);
    if (driver == NULL) {
        return status;
    }
    rmm__stream_id_forget(stream); /* before another stream can get the handle */
    rmm__stream_ended(stream);
    error = driver->stream_destroy(stream);
    if (error != RMM_DRIVER_OK) {
        return rmm__driver_error(driver, error, "destroying a stream");
    }
    return RMM_OK;
}

rmm_status_t rmm_stream_synchronize(rmm_stream_t stream)
{
    rmm_status_t status;
    const rmm_driver_t *driver = rmm__driver(&status);
    int error;

    if (driver == NULL) {
        return status;
    }
    error = driver->stream_synchronize(stream);
    if (error != RMM_DRIVER_OK) {
        return rmm__driver_error(driver, error, "waiting for a stream");
    }
    return RMM_OK;
}
