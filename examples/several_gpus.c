/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pool for each GPU. A resource belongs to the device that is current when it is created, so each
 * is made inside of a scope; afterwards every device has its pool as default.
 */
#include <rmm/rmm.h>
#include <stdio.h>

static rmm_status_t set_up(int device)
{
    rmm_device_scope_t scope;
    rmm_resource_t *pool = NULL;
    rmm_status_t status = rmm_device_scope_enter(device, &scope);
    if (status != RMM_OK) {
        return status;
    }
    status =
        rmm_auto_resource_create(NULL, &pool); /* the other GPUs may use its memory */
    if (status == RMM_OK) {
        status = rmm_set_per_device_resource(device, pool, NULL);
    }
    rmm_resource_release(pool);
    rmm_device_scope_leave(&scope); /* the device before is current again */
    return status;
}

/* A buffer on this device; its default stream and its resource are those of the device. */
static rmm_status_t work(int device, unsigned char *first)
{
    rmm_device_buffer_t buffer = RMM_DEVICE_BUFFER_INIT;
    rmm_device_scope_t scope;
    rmm_status_t status = rmm_device_scope_enter(device, &scope);
    if (status != RMM_OK) {
        return status;
    }
    status = rmm_device_buffer_init(&buffer, 1000, RMM_STREAM_DEFAULT, NULL);
    if (status == RMM_OK) {
        void *data = rmm_device_buffer_data(&buffer);
        status = rmm_memset_async(data, device + 1, 1000, RMM_STREAM_DEFAULT);
    }
    if (status == RMM_OK) {
        status =
            rmm_device_buffer_copy_to_host(&buffer, 0, first, 1, RMM_STREAM_DEFAULT);
    }
    if (status == RMM_OK) {
        status = rmm_stream_synchronize(RMM_STREAM_DEFAULT);
    }
    rmm_device_buffer_fini(&buffer);
    rmm_device_scope_leave(&scope);
    return status;
}

int main(void)
{
    int count = 0;
    rmm_status_t status = rmm_device_count(&count);
    for (int device = 0; device < count && status == RMM_OK; device++) {
        status = set_up(device);
    }
    for (int device = 0; device < count && status == RMM_OK; device++) {
        unsigned char first = 0;
        status = work(device, &first);
        if (status == RMM_OK) {
            printf(
                "device %d of %d: its buffer begins with %d\n", device, count, first);
        }
    }
    if (status != RMM_OK) {
        fprintf(stderr, "%s\n", rmm_last_error_message());
    }
    return status == RMM_OK ? 0 : 1;
}
