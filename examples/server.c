/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server that can be watched: it answers requests for ever, or as many as its argument says. The
 * library publishes its figures without any code here; this program only gives its pool a name and
 * prints where to look. SIGTERM and SIGINT end it.
 */
#include <rmm/rmm.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t ended;

static void end(int signal_number)
{
    (void)signal_number;
    ended = 1;
}

/* Input, scratch memory of a size that the request decides, output. */
static rmm_status_t answer(rmm_resource_t *mr, rmm_stream_t stream, unsigned number)
{
    rmm_device_buffer_t input = RMM_DEVICE_BUFFER_INIT,
                        scratch = RMM_DEVICE_BUFFER_INIT;
    size_t bytes = (size_t)(1 + number % 8) << 20;
    rmm_status_t status = rmm_device_buffer_init(&input, 1 << 16, stream, mr);
    if (status == RMM_OK) {
        status = rmm_device_buffer_init(&scratch, bytes, stream, mr);
    }
    if (status == RMM_OK) { /* here the kernels would be launched */
        void *data = rmm_device_buffer_data(&scratch);
        status = rmm_memset_async(data, (int)number, bytes, stream);
    }
    rmm_device_buffer_fini(&scratch); /* behind that work, without waiting for it */
    rmm_device_buffer_fini(&input);
    return status;
}

int main(int argc, char **argv)
{
    unsigned long count = argc > 1 ? strtoul(argv[1], NULL, 10) : 0, done = 0;
    struct timespec pause = {0, 10000000};
    rmm_pool_options_t options = RMM_POOL_OPTIONS_INIT;
    rmm_resource_t *cuda, *pool;
    rmm_stream_pool_t *streams;
    rmm_stats_t stats = RMM_STATS_INIT;

    options.name = "requests";
    signal(SIGTERM, end);
    signal(SIGINT, end);
    if (rmm_cuda_resource_create(&cuda) ||
        rmm_pool_resource_create(cuda, &options, &pool) ||
        rmm_stream_pool_create(4, RMM_STREAM_NON_BLOCKING, &streams)) {
        return fprintf(stderr, "%s\n", rmm_last_error_message()), 1;
    }
    fprintf(
        stderr, "watch: grep . /rmm/proc/%d/gpu0/mr/*.requests/*_bytes\n", getpid());
    for (; !ended && (count == 0 || done < count); done++) {
        if (answer(pool, rmm_stream_pool_get(streams), (unsigned)done) != RMM_OK) {
            fprintf(stderr, "request %lu: %s\n", done, rmm_last_error_message());
        }
        nanosleep(&pause, NULL);
    }
    if (rmm_resource_get_stats(pool, &stats) == RMM_OK) {
        printf("%lu requests, peak %u KiB\n", done, (unsigned)(stats.peak_bytes >> 10));
    }
    rmm_stream_pool_destroy(streams);
    rmm_resource_release(pool);
    rmm_resource_release(cuda);
    return 0;
}
