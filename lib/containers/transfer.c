/* SPDX-License-Identifier: Apache-2.0 */
/* Copies, fills and waits of the containers: see transfer.h. */
#include "containers/transfer.h"

#include <string.h>

#include "driver/driver.h"

rmm_status_t
rmm__copy_async(void *dst, const void *src, size_t bytes, rmm_stream_t stream)
{
    const rmm_driver_t *driver;
    rmm_status_t status;
    int error;

    if (bytes == 0) {
        return RMM_OK;
    }
    driver = rmm__driver(&status);
    if (driver == NULL && status == RMM_ERR_NO_DEVICE) {
        memcpy(dst, src, bytes);
        return RMM_OK;
    }
    if (driver == NULL) {
        return status;
    }
    error = driver->memcpy_async(dst, src, bytes, stream);
    return error == RMM_DRIVER_OK ? RMM_OK
                                  : rmm__driver_error(driver, error, "copying");
}

rmm_status_t rmm__fill_async(void *dst, int value, size_t bytes, rmm_stream_t stream)
{
    const rmm_driver_t *driver;
    rmm_status_t status;
    int error;

    if (bytes == 0) {
        return RMM_OK;
    }
    driver = rmm__driver(&status);
    if (driver == NULL && status == RMM_ERR_NO_DEVICE) {
        memset(dst, value, bytes);
        return RMM_OK;
    }
    if (driver == NULL) {
        return status;
    }
    error = driver->memset_async(dst, value, bytes, stream);
    return error == RMM_DRIVER_OK ? RMM_OK
                                  : rmm__driver_error(driver, error, "filling");
}

rmm_status_t rmm__wait_for_copies(rmm_stream_t stream)
{
    rmm_status_t status;
    const rmm_driver_t *driver = rmm__driver(&status);
    int error;

    if (driver == NULL) {
        return status == RMM_ERR_NO_DEVICE ? RMM_OK : status;
    }
    error = rmm__driver_wait_stream(driver, stream);
    if (error == RMM_DRIVER_OK) {
        return RMM_OK;
    }
    status = rmm__driver_error(driver, error, "waiting for a stream");
    /* A stream that captures has queued nothing, and a device synchronise would ruin
     * the captures of others. */
    if (error != RMM_DRIVER_CAPTURE_UNSUPPORTED &&
        error != RMM_DRIVER_CAPTURE_INVALIDATED) {
        (void)driver->device_synchronize();
    }
    return status;
}
