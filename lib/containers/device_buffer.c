/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Untyped memory of a resource, as a value.
 *
 * Invariants:
 *  - data is NULL if and only if capacity_bytes is 0; size_bytes <= capacity_bytes.
 *  - memory was requested with capacity_bytes and the alignment, so it is freed with
 *    the same.
 *  - a buffer that has memory has a resource, on which it holds one reference.
 * Every change is prepared beside the buffer and put in place once nothing can fail.
 *
 * Locking: none, the buffer is the caller's.
 */
#include <rmm/device_buffer.h>

#include <rmm/device.h>
#include <rmm/device_resource.h>

#include "base/resource_impl.h"
#include "containers/transfer.h"
#include "core/assert.h"
#include "core/round.h"

static const rmm_device_buffer_t empty_buffer = RMM_DEVICE_BUFFER_INIT;

/* --- where memory comes from ------------------------------------------------------ */

/* The device that a buffer of this resource belongs to; -1: host memory and no GPU. */
static rmm_status_t device_of(const rmm_resource_t *mr, int *device_out)
{
    rmm_status_t status;

    if (mr->device >= 0 || rmm__resource_is_forked(mr)) {
        *device_out = mr->device;
        return RMM_OK;
    }
    status = rmm_device_current(device_out);
    if (status == RMM_ERR_NO_DEVICE) {
        *device_out = -1; /* host memory works all the same */
        status = RMM_OK;
    }
    return status;
}

/* Give a buffer that has none a resource (NULL: the current device's), retained. */
static rmm_status_t settle(rmm_device_buffer_t *buffer, rmm_resource_t *mr)
{
    rmm_status_t status;

    if (mr != NULL) {
        rmm_resource_retain(mr);
    } else {
        status = rmm_get_current_device_resource(&mr);
        if (status != RMM_OK) {
            return status;
        }
    }
    status = device_of(mr, &buffer->device);
    if (status != RMM_OK) {
        rmm_resource_release(mr);
        return status;
    }
    buffer->mr = mr;
    return RMM_OK;
}

static rmm_status_t
obtain(rmm_device_buffer_t *buffer, size_t bytes, const void *src, size_t src_bytes)
{
    void *data;
    rmm_status_t status =
        rmm_resource_alloc(buffer->mr, bytes, buffer->alignment, buffer->stream, &data);

    if (status != RMM_OK) {
        return status;
    }
    status = rmm__copy_async(data, src, src_bytes, buffer->stream);
    if (status != RMM_OK) {
        rmm_resource_dealloc(
            buffer->mr, data, bytes, buffer->alignment, buffer->stream);
        return status;
    }
    buffer->data = data;
    buffer->capacity_bytes = bytes;
    return RMM_OK;
}

/* New memory for a buffer that holds none, begun with a copy, on the buffer's stream. */
static rmm_status_t
fill(rmm_device_buffer_t *buffer, size_t bytes, const void *src, size_t src_bytes)
{
    rmm_device_scope_t scope;
    rmm_status_t status;

    if (bytes == 0) {
        return RMM_OK;
    }
    if (rmm__resource_is_forked(buffer->mr)) {
        return obtain(buffer, bytes, NULL, 0); /* is refused, and says why */
    }
    status = rmm_device_scope_enter(buffer->device, &scope);
    if (status != RMM_OK) {
        return status;
    }
    status = obtain(buffer, bytes, src, src_bytes);
    rmm_device_scope_leave(&scope);
    return status;
}

static void give_back(const rmm_device_buffer_t *buffer, rmm_stream_t stream)
{
    rmm_device_scope_t scope;
    bool entered;

    if (buffer->data == NULL || rmm__resource_is_forked(buffer->mr)) {
        return; /* the parent's */
    }
    /* Refused while the process exits, say: the resource still finds its own device. */
    entered = rmm_device_scope_enter(buffer->device, &scope) == RMM_OK;
    if (buffer->mr->device < 0 && buffer->device >= 0) {
        /* A resource that makes no driver call cannot free in a stream's order. If the device is
         * not current, the wait is still right for all but another device's default stream. */
        (void)!rmm__wait_for_copies(stream);
    }
    rmm_resource_dealloc(
        buffer->mr, buffer->data, buffer->capacity_bytes, buffer->alignment, stream);
    if (entered) {
        rmm_device_scope_leave(&scope);
    }
}

/* --- order between streams ---------------------------------------------------------- */

static bool is_of_parent(const rmm_device_buffer_t *buffer)
{
    return buffer->mr == NULL || rmm__resource_is_forked(buffer->mr);
}

/* Later work on this stream, a free at last, runs behind the work of the old stream. */
static rmm_status_t go_over(rmm_device_buffer_t *buffer, rmm_stream_t stream)
{
    return buffer->data == NULL || is_of_parent(buffer)
               ? RMM_OK
               : rmm_stream_take_over(buffer->device, buffer->stream, stream);
}

/* On dst's stream: behind what was queued on src's, and before what will be, the end of src
 * above all. */
static rmm_status_t
copy_between(const rmm_device_buffer_t *dst, const rmm_device_buffer_t *src)
{
    rmm_device_scope_t scope;
    rmm_status_t status = rmm_stream_order(
        rmm_device_buffer_device(src), src->stream, dst->device, dst->stream);

    if (status == RMM_OK) {
        status = rmm_device_scope_enter(dst->device, &scope);
    }
    if (status != RMM_OK) {
        return status;
    }
    status = rmm__copy_async(dst->data, src->data, dst->size_bytes, dst->stream);
    if (status == RMM_OK) {
        status = rmm_stream_order(
            dst->device, dst->stream, rmm_device_buffer_device(src), src->stream);
        if (status != RMM_OK) {
            status =
                rmm__wait_for_copies(dst->stream); /* then it cannot come too late */
        }
    }
    rmm_device_scope_leave(&scope);
    return status;
}

/* --- begin and end ---------------------------------------------------------------- */

static rmm_status_t begin(
    rmm_device_buffer_t *buffer, const void *src, size_t bytes, size_t align,
    rmm_stream_t stream, rmm_resource_t *mr)
{
    rmm_device_buffer_t fresh = empty_buffer;
    rmm_status_t status;

    fresh.alignment = align;
    fresh.stream = stream;
    status = settle(&fresh, mr);
    if (status != RMM_OK) {
        return status;
    }
    status = fill(&fresh, bytes, src, src != NULL ? bytes : 0);
    if (status != RMM_OK) {
        rmm_resource_release(fresh.mr);
        return status;
    }
    fresh.size_bytes = bytes;
    *buffer = fresh;
    return RMM_OK;
}

rmm_status_t rmm_device_buffer_init(
    rmm_device_buffer_t *buffer, size_t bytes, rmm_stream_t stream, rmm_resource_t *mr)
{
    RMM_CHECK_ARG(buffer != NULL, "the buffer is NULL");
    return begin(buffer, NULL, bytes, RMM_ALIGN_DEFAULT, stream, mr);
}

rmm_status_t rmm_device_buffer_init_aligned(
    rmm_device_buffer_t *buffer, size_t bytes, size_t align, rmm_stream_t stream,
    rmm_resource_t *mr)
{
    RMM_CHECK_ARG(buffer != NULL, "the buffer is NULL");
    RMM_CHECK_ALIGN(rmm__is_power_of_two(align), "align is not a power of two");
    return begin(buffer, NULL, bytes, align, stream, mr);
}

rmm_status_t rmm_device_buffer_init_copy_from(
    rmm_device_buffer_t *buffer, const void *src, size_t bytes, rmm_stream_t stream,
    rmm_resource_t *mr)
{
    RMM_CHECK_ARG(buffer != NULL, "the buffer is NULL");
    RMM_CHECK_ARG(src != NULL || bytes == 0, "src is NULL");
    return begin(buffer, src, bytes, RMM_ALIGN_DEFAULT, stream, mr);
}

rmm_status_t rmm_device_buffer_init_copy_from_aligned(
    rmm_device_buffer_t *buffer, const void *src, size_t bytes, size_t align,
    rmm_stream_t stream, rmm_resource_t *mr)
{
    RMM_CHECK_ARG(buffer != NULL, "the buffer is NULL");
    RMM_CHECK_ARG(src != NULL || bytes == 0, "src is NULL");
    RMM_CHECK_ALIGN(rmm__is_power_of_two(align), "align is not a power of two");
    return begin(buffer, src, bytes, align, stream, mr);
}

void rmm_device_buffer_fini(rmm_device_buffer_t *buffer)
{
    if (buffer != NULL) {
        give_back(buffer, buffer->stream);
        rmm_resource_release(buffer->mr);
        *buffer = empty_buffer;
    }
}

rmm_status_t rmm_device_buffer_copy(
    rmm_device_buffer_t *dst, const rmm_device_buffer_t *src, rmm_stream_t stream,
    rmm_resource_t *mr)
{
    rmm_device_buffer_t fresh;
    rmm_status_t status;

    RMM_CHECK_ARG(dst != NULL && src != NULL, "a buffer is NULL");
    status = begin(
        &fresh, NULL, src->size_bytes, rmm_device_buffer_alignment(src), stream, mr);
    if (status == RMM_OK && src->size_bytes != 0) {
        status = copy_between(&fresh, src);
        if (status != RMM_OK) {
            rmm_device_buffer_fini(&fresh);
        }
    }
    if (status != RMM_OK) {
        return status;
    }
    if (dst == src && dst->device == fresh.device) {
        dst->stream = stream; /* the copy reads there what is freed now */
    }
    rmm_device_buffer_fini(dst);
    *dst = fresh;
    return RMM_OK;
}

void rmm_device_buffer_move(rmm_device_buffer_t *dst, rmm_device_buffer_t *src)
{
    if (dst == src) {
        return;
    }
    rmm_device_buffer_fini(dst);
    *dst = *src;
    *src = empty_buffer;
    src->alignment = 1; /* as RMM has it */
}

/* --- change ----------------------------------------------------------------------- */

/* Other memory with the contents, or none at all; on failure the buffer is as it was. */
static rmm_status_t
reallocate(rmm_device_buffer_t *buffer, size_t capacity_bytes, rmm_stream_t stream)
{
    rmm_device_buffer_t next = *buffer;
    rmm_status_t status = RMM_OK;

    next.data = NULL;
    next.capacity_bytes = 0;
    next.alignment = rmm_device_buffer_alignment(buffer);
    next.stream = stream;
    if (next.mr == NULL) {
        status = settle(&next, NULL);
    }
    if (status != RMM_OK) {
        return status;
    }
    status = fill(&next, capacity_bytes, buffer->data, buffer->size_bytes);
    if (status != RMM_OK) {
        if (buffer->mr == NULL) {
            rmm_resource_release(next.mr);
        }
        return status;
    }
    give_back(buffer, stream); /* behind the copy */
    *buffer = next;
    return RMM_OK;
}

rmm_status_t
rmm_device_buffer_resize(rmm_device_buffer_t *buffer, size_t bytes, rmm_stream_t stream)
{
    rmm_status_t status;

    RMM_CHECK_ARG(buffer != NULL, "the buffer is NULL");
    status = go_over(buffer, stream);
    if (status == RMM_OK && bytes > buffer->capacity_bytes) {
        status = reallocate(buffer, bytes, stream);
    }
    if (status == RMM_OK) {
        buffer->size_bytes = bytes;
        buffer->stream = stream;
    }
    return status;
}

rmm_status_t rmm_device_buffer_reserve(
    rmm_device_buffer_t *buffer, size_t capacity_bytes, rmm_stream_t stream)
{
    rmm_status_t status;

    RMM_CHECK_ARG(buffer != NULL, "the buffer is NULL");
    status = go_over(buffer, stream);
    if (status == RMM_OK && capacity_bytes > buffer->capacity_bytes) {
        status = reallocate(buffer, capacity_bytes, stream);
    }
    if (status == RMM_OK) {
        buffer->stream = stream;
    }
    return status;
}

rmm_status_t
rmm_device_buffer_shrink_to_fit(rmm_device_buffer_t *buffer, rmm_stream_t stream)
{
    rmm_status_t status;

    RMM_CHECK_ARG(buffer != NULL, "the buffer is NULL");
    status = go_over(buffer, stream);
    if (status == RMM_OK && buffer->capacity_bytes != buffer->size_bytes) {
        status = reallocate(buffer, buffer->size_bytes, stream);
    }
    if (status == RMM_OK) {
        buffer->stream = stream;
    }
    return status;
}

void rmm_device_buffer_set_stream(rmm_device_buffer_t *buffer, rmm_stream_t stream)
{
    /* a driver that refuses this refuses the end as well; it has set the last error */
    (void)!go_over(buffer, stream);
    buffer->stream = stream;
}

rmm_status_t rmm_device_buffer_prefetch(
    const rmm_device_buffer_t *buffer, int device, rmm_stream_t stream)
{
    rmm_device_scope_t scope;
    rmm_status_t status;

    RMM_CHECK_ARG(buffer != NULL, "the buffer is NULL");
    status = rmm_device_scope_enter(rmm_device_buffer_device(buffer), &scope);
    if (status != RMM_OK) {
        return status;
    }
    status = rmm_prefetch(buffer->data, buffer->size_bytes, device, stream);
    rmm_device_scope_leave(&scope);
    return status;
}

/* --- to and from the host ----------------------------------------------------------- */

static rmm_status_t check_copy(
    const rmm_device_buffer_t *buffer, size_t offset, const void *host, size_t bytes)
{
    size_t size;

    RMM_CHECK_ARG(buffer != NULL, "the buffer is NULL");
    RMM_CHECK_ARG(host != NULL || bytes == 0, "host is NULL");
    size = buffer->size_bytes;
    return offset <= size && bytes <= size - offset
               ? RMM_OK
               : rmm__error(
                     RMM_ERR_OUT_OF_RANGE,
                     "device buffer: %zu bytes at offset %zu exceed the buffer of %zu "
                     "bytes",
                     bytes, offset, size);
}

/* On the buffer's device, and done when it returns. */
static rmm_status_t copy_and_wait(
    const rmm_device_buffer_t *buffer, void *dst, const void *src, size_t bytes,
    rmm_stream_t stream)
{
    rmm_device_scope_t scope;
    rmm_status_t status;

    if (bytes == 0) {
        return RMM_OK;
    }
    status = rmm_device_scope_enter(rmm_device_buffer_device(buffer), &scope);
    if (status != RMM_OK) {
        return status;
    }
    status = rmm__copy(dst, src, bytes, stream);
    rmm_device_scope_leave(&scope);
    return status;
}

rmm_status_t rmm_device_buffer_copy_to_host(
    const rmm_device_buffer_t *buffer, size_t offset, void *host, size_t bytes,
    rmm_stream_t stream)
{
    rmm_status_t status = check_copy(buffer, offset, host, bytes);

    return status == RMM_OK
               ? copy_and_wait(
                     buffer, host, (const char *)buffer->data + offset, bytes, stream)
               : status;
}

rmm_status_t rmm_device_buffer_copy_from_host(
    rmm_device_buffer_t *buffer, size_t offset, const void *host, size_t bytes,
    rmm_stream_t stream)
{
    rmm_status_t status = check_copy(buffer, offset, host, bytes);

    return status == RMM_OK
               ? copy_and_wait(
                     buffer, (char *)buffer->data + offset, host, bytes, stream)
               : status;
}

/* --- questions -------------------------------------------------------------------- */

void *rmm_device_buffer_data(const rmm_device_buffer_t *buffer)
{
    return buffer->data;
}

size_t rmm_device_buffer_size(const rmm_device_buffer_t *buffer)
{
    return buffer->size_bytes;
}

size_t rmm_device_buffer_capacity(const rmm_device_buffer_t *buffer)
{
    return buffer->capacity_bytes;
}

bool rmm_device_buffer_is_empty(const rmm_device_buffer_t *buffer)
{
    return buffer->size_bytes == 0;
}

size_t rmm_device_buffer_alignment(const rmm_device_buffer_t *buffer)
{
    return buffer->alignment != 0 ? buffer->alignment : RMM_ALIGN_DEFAULT;
}

rmm_stream_t rmm_device_buffer_stream(const rmm_device_buffer_t *buffer)
{
    return buffer->stream;
}

rmm_resource_t *rmm_device_buffer_resource(const rmm_device_buffer_t *buffer)
{
    return buffer->mr;
}

int rmm_device_buffer_device(const rmm_device_buffer_t *buffer)
{
    return buffer->mr != NULL ? buffer->device : -1;
}
