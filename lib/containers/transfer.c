/* SPDX-License-Identifier: Apache-2.0 */
/* Copies, fills and waits of the containers: see transfer.h. */
#include "containers/transfer.h"

#include <string.h>

#include "driver/driver.h"

/* No driver and RMM_OK: there is no GPU, so that nothing is queued. */
static rmm_status_t find_driver(const rmm_driver_t **driver_out)
{
    rmm_status_t status;

    *driver_out = rmm__driver(&status);
    return *driver_out != NULL || status == RMM_ERR_NO_DEVICE ? RMM_OK : status;
}

rmm_status_t
rmm__copy_async(void *dst, const void *src, size_t bytes, rmm_stream_t stream)
{
    const rmm_driver_t *driver = NULL;
    rmm_status_t status = bytes != 0 ? find_driver(&driver) : RMM_OK;

    if (bytes == 0 || status != RMM_OK) {
        return status;
    }
    if (driver == NULL) {
        memcpy(dst, src, bytes);
        return RMM_OK;
    }
    return rmm__driver_status(
        driver, driver->memcpy_async(dst, src, bytes, stream), "copying");
}

rmm_status_t rmm__fill_async(void *dst, int value, size_t bytes, rmm_stream_t stream)
{
    const rmm_driver_t *driver = NULL;
    rmm_status_t status = bytes != 0 ? find_driver(&driver) : RMM_OK;

    if (bytes == 0 || status != RMM_OK) {
        return status;
    }
    if (driver == NULL) {
        memset(dst, value, bytes);
        return RMM_OK;
    }
    return rmm__driver_status(
        driver, driver->memset_async(dst, value, bytes, stream), "filling");
}

rmm_status_t rmm__wait_for_copies(rmm_stream_t stream)
{
    const rmm_driver_t *driver;
    rmm_status_t status = find_driver(&driver);
    int error;

    if (driver == NULL) {
        return status;
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

rmm_status_t rmm__copy(void *dst, const void *src, size_t bytes, rmm_stream_t stream)
{
    rmm_status_t status = rmm__copy_async(dst, src, bytes, stream);

    return status == RMM_OK && bytes != 0 ? rmm__wait_for_copies(stream) : status;
}
