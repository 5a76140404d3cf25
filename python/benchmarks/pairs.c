/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loop that pairs.py compares Python with: allocations and frees from C.
 */
#include <stdint.h>
#include <time.h>

#include <rmm/rmm.h>

static int64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* The nanoseconds of `count` pairs of an allocation and a free; -1: one failed. */
int64_t
resource_pairs(rmm_resource_t *mr, size_t bytes, rmm_stream_t stream, size_t count);
int64_t
resource_pairs(rmm_resource_t *mr, size_t bytes, rmm_stream_t stream, size_t count)
{
    int64_t start = now_ns();

    for (size_t i = 0; i < count; i++) {
        void *ptr;

        if (rmm_resource_alloc(mr, bytes, 0, stream, &ptr) != RMM_OK) {
            return -1;
        }
        rmm_resource_dealloc(mr, ptr, bytes, 0, stream);
    }
    return now_ns() - start;
}

/* The same of buffers. */
int64_t
buffer_pairs(rmm_resource_t *mr, size_t bytes, rmm_stream_t stream, size_t count);
int64_t
buffer_pairs(rmm_resource_t *mr, size_t bytes, rmm_stream_t stream, size_t count)
{
    int64_t start = now_ns();

    for (size_t i = 0; i < count; i++) {
        rmm_device_buffer_t buffer = RMM_DEVICE_BUFFER_INIT;

        if (rmm_device_buffer_init(&buffer, bytes, stream, mr) != RMM_OK) {
            return -1;
        }
        rmm_device_buffer_fini(&buffer);
    }
    return now_ns() - start;
}
