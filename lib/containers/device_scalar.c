/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One value: an array of one element.
 *
 * Locking: none, the scalar is the caller's.
 */
#include <rmm/device_scalar.h>

#include "core/assert.h"

static rmm_status_t check_new(const rmm_device_scalar_t *scalar, size_t value_bytes)
{
    RMM_CHECK_ARG(scalar != NULL, "the scalar is NULL");
    RMM_CHECK_ARG(value_bytes != 0, "value_bytes is 0");
    return RMM_OK;
}

rmm_status_t rmm_device_scalar_init(
    rmm_device_scalar_t *scalar, size_t value_bytes, rmm_stream_t stream,
    rmm_resource_t *mr)
{
    return rmm_device_scalar_init_aligned(
        scalar, value_bytes, RMM_ALIGN_DEFAULT, stream, mr);
}

rmm_status_t rmm_device_scalar_init_aligned(
    rmm_device_scalar_t *scalar, size_t value_bytes, size_t align, rmm_stream_t stream,
    rmm_resource_t *mr)
{
    rmm_status_t status = check_new(scalar, value_bytes);

    return status != RMM_OK ? status
                            : rmm_device_array_init_aligned(
                                  &scalar->array, value_bytes, align, 1, stream, mr);
}

rmm_status_t rmm_device_scalar_init_value(
    rmm_device_scalar_t *scalar, size_t value_bytes, const void *value,
    rmm_stream_t stream, rmm_resource_t *mr)
{
    return rmm_device_scalar_init_value_aligned(
        scalar, value_bytes, RMM_ALIGN_DEFAULT, value, stream, mr);
}

rmm_status_t rmm_device_scalar_init_value_aligned(
    rmm_device_scalar_t *scalar, size_t value_bytes, size_t align, const void *value,
    rmm_stream_t stream, rmm_resource_t *mr)
{
    rmm_status_t status = check_new(scalar, value_bytes);

    if (status != RMM_OK) {
        return status;
    }
    RMM_CHECK_ARG(value != NULL, "value is NULL");
    status = rmm_device_buffer_init_copy_from_aligned(
        &scalar->array.buffer, value, value_bytes, align, stream, mr);
    if (status == RMM_OK) {
        scalar->array.element_bytes = value_bytes;
    }
    return status;
}

void rmm_device_scalar_fini(rmm_device_scalar_t *scalar)
{
    if (scalar != NULL) {
        rmm_device_array_fini(&scalar->array);
    }
}

rmm_status_t rmm_device_scalar_copy(
    rmm_device_scalar_t *dst, const rmm_device_scalar_t *src, rmm_stream_t stream,
    rmm_resource_t *mr)
{
    RMM_CHECK_ARG(dst != NULL && src != NULL, "a scalar is NULL");
    return rmm_device_array_copy(&dst->array, &src->array, stream, mr);
}

void rmm_device_scalar_move(rmm_device_scalar_t *dst, rmm_device_scalar_t *src)
{
    rmm_device_array_move(&dst->array, &src->array);
}

static rmm_status_t check_has_value(const rmm_device_scalar_t *scalar)
{
    RMM_CHECK_ARG(scalar != NULL, "the scalar is NULL");
    return rmm_device_scalar_size(scalar) != 0
               ? RMM_OK
               : rmm__error(
                     RMM_ERR_OUT_OF_RANGE,
                     "device scalar: no value, it was moved from or has ended");
}

rmm_status_t rmm_device_scalar_value(
    const rmm_device_scalar_t *scalar, void *value_out, rmm_stream_t stream)
{
    rmm_status_t status = check_has_value(scalar);

    return status != RMM_OK
               ? status
               : rmm_device_array_get_element(&scalar->array, 0, value_out, stream);
}

rmm_status_t rmm_device_scalar_set_value_async(
    rmm_device_scalar_t *scalar, const void *value, rmm_stream_t stream)
{
    rmm_status_t status = check_has_value(scalar);

    return status != RMM_OK
               ? status
               : rmm_device_array_set_element_async(&scalar->array, 0, value, stream);
}

rmm_status_t rmm_device_scalar_set_value_to_zero_async(
    rmm_device_scalar_t *scalar, rmm_stream_t stream)
{
    rmm_status_t status = check_has_value(scalar);

    return status != RMM_OK
               ? status
               : rmm_device_array_set_element_to_zero_async(&scalar->array, 0, stream);
}

void rmm_device_scalar_set_stream(rmm_device_scalar_t *scalar, rmm_stream_t stream)
{
    rmm_device_array_set_stream(&scalar->array, stream);
}

void *rmm_device_scalar_data(const rmm_device_scalar_t *scalar)
{
    return rmm_device_array_data(&scalar->array);
}

size_t rmm_device_scalar_size(const rmm_device_scalar_t *scalar)
{
    return rmm_device_array_size(&scalar->array);
}

rmm_stream_t rmm_device_scalar_stream(const rmm_device_scalar_t *scalar)
{
    return rmm_device_array_stream(&scalar->array);
}

rmm_resource_t *rmm_device_scalar_resource(const rmm_device_scalar_t *scalar)
{
    return rmm_device_array_resource(&scalar->array);
}
