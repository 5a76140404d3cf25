/* SPDX-License-Identifier: Apache-2.0 */
#include <rmm/rmm.h>
#include <stdio.h>

/* Three numbers on the device, grown to a thousand, one of them changed. */
static rmm_status_t use(rmm_stream_t stream, float *third_out)
{
    static const float values[3] = {1.0f, 2.0f, 3.0f};
    RMM_DEVICE_ARRAY(float) xs = RMM_DEVICE_ARRAY_OF_INIT(float);
    rmm_status_t status = rmm_device_array_float_resize(&xs, 3, stream);

    for (size_t i = 0; i < 3 && status == RMM_OK; i++) {
        status = rmm_device_array_float_set_element_async(&xs, i, &values[i], stream);
    }
    if (status == RMM_OK) {
        status = rmm_device_array_float_resize(&xs, 1000, stream);
    }
    if (status == RMM_OK) { /* a kernel would get rmm_device_array_float_data(&xs) */
        status = rmm_device_array_float_set_element(&xs, 1, -2.0f, stream);
    }
    if (status == RMM_OK) {
        status = rmm_device_array_float_get_element(&xs, 2, third_out, stream);
    }
    rmm_device_array_float_fini(&xs); /* in the order of `stream`, without waiting */
    return status;
}

int main(void)
{
    rmm_stream_pool_t *streams = NULL;
    float third = 0.0f;
    rmm_status_t status =
        rmm_stream_pool_create(RMM_STREAM_POOL_DEFAULT_COUNT, 0, &streams);

    if (status == RMM_OK) {
        status = use(rmm_stream_pool_get(streams), &third);
    }
    if (status != RMM_OK) {
        fprintf(stderr, "%s\n", rmm_last_error_message());
    } else {
        printf("the third of 1000 elements is %g\n", third);
    }
    rmm_stream_pool_destroy(streams);
    return status == RMM_OK ? 0 : 1;
}
