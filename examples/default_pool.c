/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pool as the default resource of the device: whatever names no resource allocates from it, here
 * a device buffer, elsewhere a library that knows nothing of the pool.
 */
#include <rmm/rmm.h>
#include <stdio.h>

static rmm_status_t make_pool_the_default(void)
{
    rmm_pool_options_t options = RMM_POOL_OPTIONS_INIT;
    rmm_resource_t *pool = NULL;

    options.initial_bytes = 64 << 20; /* taken from the driver now, in one call */
    options.maximum_bytes = 256 << 20;
    options.name = "work"; /* its folder in /rmm */
    rmm_status_t status = rmm_auto_resource_create(&options, &pool);
    if (status == RMM_OK) {
        status = rmm_set_current_device_resource(pool, NULL);
    }
    rmm_resource_release(pool); /* the device keeps it */
    return status;
}

static rmm_status_t use_it(rmm_stats_t *stats)
{
    rmm_device_buffer_t buffer = RMM_DEVICE_BUFFER_INIT;
    rmm_resource_t *mr;
    rmm_status_t status =
        rmm_device_buffer_init(&buffer, 10 << 20, RMM_STREAM_DEFAULT, NULL);
    if (status != RMM_OK || (status = rmm_get_current_device_resource(&mr)) != RMM_OK) {
        return status;
    }
    status = rmm_resource_get_stats(mr, stats);
    rmm_resource_release(mr); /* a get retains */
    rmm_device_buffer_fini(&buffer);
    return status;
}

int main(void)
{
    rmm_stats_t stats = RMM_STATS_INIT;
    if (make_pool_the_default() != RMM_OK || use_it(&stats) != RMM_OK) {
        fprintf(stderr, "%s\n", rmm_last_error_message());
        return 1;
    }
    printf("the pool holds %u MiB\n", (unsigned)(stats.reserved_bytes >> 20));
    printf("the buffer takes %u MiB of it\n", (unsigned)(stats.current_bytes >> 20));
    return rmm_reset_current_device_resource() == RMM_OK ? 0 : 1;
}
