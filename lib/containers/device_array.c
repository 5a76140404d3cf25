/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Elements of one size over a device buffer.
 *
 * Invariant: the buffer's size is a multiple of element_bytes, so that it holds whole
 * elements only. element_bytes is 0 only in storage of zeros, which then refuses to grow.
 *
 * Locking: none, the array is the caller's.
 */
#include <rmm/device_array.h>

#include <rmm/device.h>

#include "containers/transfer.h"
#include "core/assert.h"

static rmm_status_t bytes_of(size_t count, size_t element_bytes, size_t *bytes_out)
{
    if (element_bytes == 0) {
        return rmm__error(
            RMM_ERR_INVALID_ARGUMENT, "device array: the element size is 0");
    }
    if (count > SIZE_MAX / element_bytes) {
        return rmm__error(
            RMM_ERR_INVALID_ARGUMENT,
            "device array: %zu elements of %zu bytes exceed SIZE_MAX", count,
            element_bytes);
    }
    *bytes_out = count * element_bytes;
    return RMM_OK;
}

/* --- begin and end ---------------------------------------------------------------- */

rmm_status_t rmm_device_array_init(
    rmm_device_array_t *array, size_t element_bytes, size_t count, rmm_stream_t stream,
    rmm_resource_t *mr)
{
    return rmm_device_array_init_aligned(
        array, element_bytes, RMM_ALIGN_DEFAULT, count, stream, mr);
}

rmm_status_t rmm_device_array_init_aligned(
    rmm_device_array_t *array, size_t element_bytes, size_t align, size_t count,
    rmm_stream_t stream, rmm_resource_t *mr)
{
    rmm_status_t status;
    size_t bytes = 0;

    RMM_CHECK_ARG(array != NULL, "the array is NULL");
    status = bytes_of(count, element_bytes, &bytes);
    if (status == RMM_OK) {
        status =
            rmm_device_buffer_init_aligned(&array->buffer, bytes, align, stream, mr);
    }
    if (status == RMM_OK) {
        array->element_bytes = element_bytes;
    }
    return status;
}

void rmm_device_array_fini(rmm_device_array_t *array)
{
    if (array != NULL) {
        const size_t align = array->buffer.alignment; /* the next growth needs it */

        rmm_device_buffer_fini(&array->buffer);
        array->buffer.alignment = align;
    }
}

rmm_status_t rmm_device_array_copy(
    rmm_device_array_t *dst, const rmm_device_array_t *src, rmm_stream_t stream,
    rmm_resource_t *mr)
{
    rmm_status_t status;

    RMM_CHECK_ARG(dst != NULL && src != NULL, "an array is NULL");
    status = rmm_device_buffer_copy(&dst->buffer, &src->buffer, stream, mr);
    if (status == RMM_OK) {
        dst->element_bytes = src->element_bytes;
    }
    return status;
}

void rmm_device_array_move(rmm_device_array_t *dst, rmm_device_array_t *src)
{
    rmm_device_array_release(src, &dst->buffer);
    dst->element_bytes = src->element_bytes;
}

void rmm_device_array_release(
    rmm_device_array_t *array, rmm_device_buffer_t *buffer_out)
{
    const size_t align = array->buffer.alignment; /* the next growth needs it */

    rmm_device_buffer_move(buffer_out, &array->buffer);
    array->buffer.alignment = align;
}

/* --- change ----------------------------------------------------------------------- */

rmm_status_t
rmm_device_array_resize(rmm_device_array_t *array, size_t count, rmm_stream_t stream)
{
    rmm_status_t status;
    size_t bytes = 0;

    RMM_CHECK_ARG(array != NULL, "the array is NULL");
    status = bytes_of(count, array->element_bytes, &bytes);
    return status == RMM_OK ? rmm_device_buffer_resize(&array->buffer, bytes, stream)
                            : status;
}

rmm_status_t rmm_device_array_reserve(
    rmm_device_array_t *array, size_t capacity, rmm_stream_t stream)
{
    rmm_status_t status;
    size_t bytes = 0;

    RMM_CHECK_ARG(array != NULL, "the array is NULL");
    status = bytes_of(capacity, array->element_bytes, &bytes);
    return status == RMM_OK ? rmm_device_buffer_reserve(&array->buffer, bytes, stream)
                            : status;
}

rmm_status_t
rmm_device_array_shrink_to_fit(rmm_device_array_t *array, rmm_stream_t stream)
{
    RMM_CHECK_ARG(array != NULL, "the array is NULL");
    return rmm_device_buffer_shrink_to_fit(&array->buffer, stream);
}

void rmm_device_array_set_stream(rmm_device_array_t *array, rmm_stream_t stream)
{
    rmm_device_buffer_set_stream(&array->buffer, stream);
}

/* --- elements --------------------------------------------------------------------- */

static rmm_status_t check_index(const rmm_device_array_t *array, size_t index)
{
    size_t count = rmm_device_array_size(array);

    return index < count ? RMM_OK
                         : rmm__error(
                               RMM_ERR_OUT_OF_RANGE,
                               "device array: index %zu is out of range, the array has "
                               "%zu elements",
                               index, count);
}

typedef enum when { QUEUED, DONE } when_t;

/* One element, to or from the host: on the array's device, so that a default stream is
 * that of this device. src NULL: zeros, always queued. */
static rmm_status_t transfer(
    const rmm_device_array_t *array, void *dst, const void *src, rmm_stream_t stream,
    when_t when)
{
    size_t bytes = array->element_bytes;
    rmm_device_scope_t scope;
    rmm_status_t status =
        rmm_device_scope_enter(rmm_device_buffer_device(&array->buffer), &scope);

    if (status != RMM_OK) {
        return status;
    }
    if (src == NULL) {
        status = rmm__fill_async(dst, 0, bytes, stream);
    } else if (when == DONE) {
        status = rmm__copy(dst, src, bytes, stream);
    } else {
        status = rmm__copy_async(dst, src, bytes, stream);
    }
    rmm_device_scope_leave(&scope);
    return status;
}

static rmm_status_t
set(rmm_device_array_t *array, size_t index, const void *value, rmm_stream_t stream,
    when_t when)
{
    rmm_status_t status;

    RMM_CHECK_ARG(array != NULL, "the array is NULL");
    RMM_CHECK_ARG(value != NULL, "value is NULL");
    status = check_index(array, index);
    return status == RMM_OK
               ? transfer(
                     array, rmm_device_array_element(array, index), value, stream, when)
               : status;
}

rmm_status_t rmm_device_array_set_element(
    rmm_device_array_t *array, size_t index, const void *value, rmm_stream_t stream)
{
    return set(array, index, value, stream, DONE);
}

rmm_status_t rmm_device_array_set_element_async(
    rmm_device_array_t *array, size_t index, const void *value, rmm_stream_t stream)
{
    return set(array, index, value, stream, QUEUED);
}

rmm_status_t rmm_device_array_set_element_to_zero_async(
    rmm_device_array_t *array, size_t index, rmm_stream_t stream)
{
    rmm_status_t status;

    RMM_CHECK_ARG(array != NULL, "the array is NULL");
    status = check_index(array, index);
    return status == RMM_OK ? transfer(
                                  array, rmm_device_array_element(array, index), NULL,
                                  stream, QUEUED)
                            : status;
}

rmm_status_t rmm_device_array_get_element(
    const rmm_device_array_t *array, size_t index, void *value_out, rmm_stream_t stream)
{
    rmm_status_t status;

    RMM_CHECK_ARG(array != NULL, "the array is NULL");
    RMM_CHECK_ARG(value_out != NULL, "value_out is NULL");
    status = check_index(array, index);
    return status == RMM_OK ? transfer(
                                  array, value_out,
                                  rmm_device_array_element(array, index), stream, DONE)
                            : status;
}

rmm_status_t rmm_device_array_front(
    const rmm_device_array_t *array, void *value_out, rmm_stream_t stream)
{
    return rmm_device_array_get_element(array, 0, value_out, stream);
}

rmm_status_t rmm_device_array_back(
    const rmm_device_array_t *array, void *value_out, rmm_stream_t stream)
{
    size_t count = array != NULL ? rmm_device_array_size(array) : 0;

    return rmm_device_array_get_element(
        array, count != 0 ? count - 1 : 0, value_out, stream);
}

rmm_status_t rmm_device_array_prefetch(
    const rmm_device_array_t *array, size_t first, size_t count, int device,
    rmm_stream_t stream)
{
    rmm_device_scope_t scope;
    rmm_status_t status;
    size_t size;

    RMM_CHECK_ARG(array != NULL, "the array is NULL");
    size = rmm_device_array_size(array);
    if (first > size || count > size - first) {
        return rmm__error(
            RMM_ERR_OUT_OF_RANGE,
            "device array: %zu elements from index %zu exceed the array of %zu "
            "elements",
            count, first, size);
    }
    status = rmm_device_scope_enter(rmm_device_buffer_device(&array->buffer), &scope);
    if (status != RMM_OK) {
        return status;
    }
    status = rmm_prefetch(
        rmm_device_array_element(array, first), count * array->element_bytes, device,
        stream);
    rmm_device_scope_leave(&scope);
    return status;
}

/* --- questions -------------------------------------------------------------------- */

void *rmm_device_array_element(const rmm_device_array_t *array, size_t index)
{
    char *data = rmm_device_buffer_data(&array->buffer);

    return data != NULL ? data + index * array->element_bytes : NULL;
}

void *rmm_device_array_data(const rmm_device_array_t *array)
{
    return rmm_device_buffer_data(&array->buffer);
}

static size_t whole(const rmm_device_array_t *array, size_t bytes)
{
    return array->element_bytes != 0 ? bytes / array->element_bytes : 0;
}

size_t rmm_device_array_size(const rmm_device_array_t *array)
{
    return whole(array, rmm_device_buffer_size(&array->buffer));
}

size_t rmm_device_array_capacity(const rmm_device_array_t *array)
{
    return whole(array, rmm_device_buffer_capacity(&array->buffer));
}

bool rmm_device_array_is_empty(const rmm_device_array_t *array)
{
    return rmm_device_buffer_is_empty(&array->buffer);
}

rmm_stream_t rmm_device_array_stream(const rmm_device_array_t *array)
{
    return rmm_device_buffer_stream(&array->buffer);
}

rmm_resource_t *rmm_device_array_resource(const rmm_device_array_t *array)
{
    return rmm_device_buffer_resource(&array->buffer);
}
