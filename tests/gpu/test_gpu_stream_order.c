/* SPDX-License-Identifier: Apache-2.0 */
/*
 * docs/concepts/stream-order.md on two real GPUs: the traffic of tests/stress with larger
 * copies, and single calls behind work that takes a while. No kernels, and no access of one GPU
 * to the other's memory but by copies, so peer access is not needed.
 *
 * With fewer than two GPUs the program says so and exits with 77.
 */
#include "gpu/gpu_harness.h"

#include <inttypes.h>
#include <string.h>

#include "harness/stream_traffic.h"

enum { STEPS = 4000, ROUNDS = 3, BUSY_COPIES = 40 };
#define BUSY_BYTES (64 * MIB)
#define BYTES (4 * MIB)

/* Memory that the other GPU may copy from as it is. */
static const char *const specs[] = {"cuda", "pool:512MiB", "managed", "pinned"};

/* --- random traffic ------------------------------------------------------------------- */

static void add_resources(traffic_t *t, int device)
{
    assert_ok(rmm_device_set(device));
    for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); i++) {
        assert_ok(rmm_resource_create_from_spec(
            specs[i], &t->resources[t->resource_count++]));
    }
}

TEST_CASE(every_read_sees_what_was_written_before)
{
    static traffic_t traffic;

    assert_real_gpu();
    for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
        traffic =
            (traffic_t){.most_bytes = MIB, .random = seed, .own_streams_only = true};
        add_resources(&traffic, 0);
        add_resources(&traffic, 1);
        traffic_begin(&traffic);
        while (traffic.operations < STEPS) {
            traffic_step(&traffic);
        }
        traffic_end(&traffic);
        printf(
            "seed %" PRIu64 ": %" PRIu64 " bytes compared, %" PRIu64 " wrong\n", seed,
            traffic.compared, traffic.wrong_bytes);
        assert_int_equal(traffic.wrong_bytes, 0);
    }
}

/* --- behind work that takes a while --------------------------------------------------- */

typedef struct busy {
    rmm_resource_t *mr;
    rmm_device_buffer_t from, to;
} busy_t;

/* Some milliseconds of copies within the device, queued on the stream. */
static void keep_busy(busy_t *busy, int device, rmm_stream_t stream)
{
    assert_ok(rmm_device_set(device));
    assert_ok(rmm_cuda_resource_create(&busy->mr));
    assert_ok(rmm_device_buffer_init(&busy->from, BUSY_BYTES, stream, busy->mr));
    assert_ok(rmm_device_buffer_init(&busy->to, BUSY_BYTES, stream, busy->mr));
    for (int i = 0; i < BUSY_COPIES; i++) {
        assert_ok(rmm_memcpy_async(
            rmm_device_buffer_data(&busy->to), rmm_device_buffer_data(&busy->from),
            BUSY_BYTES, stream));
    }
}

static void end_busy(busy_t *busy)
{
    rmm_device_buffer_fini(&busy->from);
    rmm_device_buffer_fini(&busy->to);
    rmm_resource_release(busy->mr);
}

static void *pinned_bytes(rmm_resource_t *pinned)
{
    void *bytes;

    assert_ok(rmm_resource_alloc_sync(pinned, BYTES, 0, &bytes));
    memset(bytes, 0, BYTES);
    return bytes;
}

static void assert_all(const unsigned char *bytes, int value)
{
    for (size_t i = 0; i < BYTES; i++) {
        if (bytes[i] != value) {
            fail_msg("byte %zu is %d, not %d", i, bytes[i], value);
        }
    }
}

/* A block of GPU 0, which a stream of GPU 1 copies to the host when it comes to that. */
static void free_under_a_copy(const char *spec)
{
    rmm_stream_t stream;
    rmm_resource_t *mr, *pinned;
    busy_t busy;
    void *block, *next, *seen;

    assert_ok(rmm_device_set(1));
    assert_ok(rmm_stream_create(RMM_STREAM_NON_BLOCKING, &stream));
    keep_busy(&busy, 1, stream);
    assert_ok(rmm_device_set(0));
    assert_ok(rmm_resource_create_from_spec(spec, &mr));
    assert_ok(rmm_pinned_resource_create(&pinned));
    seen = pinned_bytes(pinned);
    assert_ok(rmm_resource_alloc(mr, BYTES, 0, RMM_STREAM_LEGACY, &block));
    assert_ok(rmm_memset_async(block, 1, BYTES, RMM_STREAM_LEGACY));
    assert_ok(rmm_stream_order(0, RMM_STREAM_LEGACY, 1, stream));
    assert_ok(rmm_device_set(1));
    assert_ok(rmm_memcpy_async(seen, block, BYTES, stream));
    rmm_resource_dealloc(mr, block, BYTES, 0, stream);
    assert_ok(rmm_device_set(0));
    assert_ok(rmm_resource_alloc(mr, BYTES, 0, RMM_STREAM_LEGACY, &next));
    assert_ok(rmm_memset_async(next, 2, BYTES, RMM_STREAM_LEGACY));
    assert_ok(rmm_stream_synchronize(RMM_STREAM_LEGACY));
    assert_ok(rmm_stream_synchronize(stream));
    assert_all(seen, 1);
    rmm_resource_dealloc(mr, next, BYTES, 0, RMM_STREAM_LEGACY);
    rmm_resource_dealloc_sync(pinned, seen, BYTES, 0);
    end_busy(&busy);
    assert_ok(rmm_stream_destroy(stream));
    rmm_resource_release(mr);
    rmm_resource_release(pinned);
}

TEST_CASE(a_free_waits_for_a_stream_of_the_other_gpu)
{
    assert_real_gpu();
    for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); i++) {
        free_under_a_copy(specs[i]);
    }
}

/* The default streams of the two GPUs have one handle. */
static void copy_across(rmm_stream_t stream)
{
    rmm_resource_t *mr[2], *pinned;
    rmm_device_buffer_t src = RMM_DEVICE_BUFFER_INIT, dst = RMM_DEVICE_BUFFER_INIT;
    busy_t busy;
    void *seen, *next;

    for (int device = 0; device < 2; device++) {
        assert_ok(rmm_device_set(device));
        assert_ok(rmm_resource_create_from_spec("pool:64MiB", &mr[device]));
    }
    assert_ok(rmm_pinned_resource_create(&pinned));
    seen = pinned_bytes(pinned);
    keep_busy(&busy, 1, stream);
    assert_ok(rmm_device_buffer_init(&src, BYTES, stream, mr[1]));
    assert_ok(rmm_memset_async(rmm_device_buffer_data(&src), 3, BYTES, stream));
    assert_ok(rmm_device_set(0));
    assert_ok(rmm_device_buffer_copy(&dst, &src, stream, mr[0]));
    rmm_device_buffer_fini(&src);
    assert_ok(rmm_device_set(1));
    assert_ok(rmm_resource_alloc(mr[1], BYTES, 0, stream, &next));
    assert_ok(rmm_memset_async(next, 4, BYTES, stream));
    assert_ok(rmm_device_buffer_copy_to_host(&dst, 0, seen, BYTES, stream));
    assert_all(seen, 3);
    rmm_resource_dealloc(mr[1], next, BYTES, 0, stream);
    rmm_device_buffer_fini(&dst);
    end_busy(&busy);
    rmm_resource_dealloc_sync(pinned, seen, BYTES, 0);
    rmm_resource_release(pinned);
    rmm_resource_release(mr[0]);
    rmm_resource_release(mr[1]);
    assert_ok(rmm_device_set(0));
}

TEST_CASE(a_copy_across_gpus_is_ordered_with_its_source)
{
    assert_real_gpu();
    copy_across(RMM_STREAM_PER_THREAD);
    copy_across(RMM_STREAM_LEGACY);
}

/* --- captures ------------------------------------------------------------------------- */

static int legacy_is_open(void)
{
    rmm_status_t status;
    int is_open = -1;

    assert_cuda(rmm__driver(&status)->legacy_is_open(&is_open));
    return is_open;
}

static void end_whole_capture(cudaStream_t stream)
{
    cudaGraph_t graph;

    assert_cuda(cudaStreamEndCapture(stream, &graph));
    assert_cuda(cudaGraphDestroy(graph));
}

TEST_CASE(a_capture_that_forbids_the_default_stream_stays_whole)
{
    rmm_stream_t blocking, other;
    rmm_device_buffer_t src = RMM_DEVICE_BUFFER_INIT, dst = RMM_DEVICE_BUFFER_INIT;
    rmm_resource_t *mr;

    assert_real_gpu();
    assert_ok(rmm_device_set(0));
    assert_ok(rmm_stream_create(0, &blocking));
    assert_ok(rmm_stream_create(RMM_STREAM_NON_BLOCKING, &other));
    assert_ok(rmm_resource_create_from_spec("pool:64MiB", &mr));
    assert_ok(rmm_device_buffer_init(&src, BYTES, RMM_STREAM_LEGACY, mr));
    assert_ok(rmm_stream_synchronize(RMM_STREAM_LEGACY));
    assert_int_equal(legacy_is_open(), 1);

    assert_cuda(cudaStreamBeginCapture(other, cudaStreamCaptureModeGlobal));
    assert_int_equal(legacy_is_open(), 1);
    end_whole_capture(other);
    assert_cuda(cudaStreamBeginCapture(blocking, cudaStreamCaptureModeGlobal));
    assert_int_equal(legacy_is_open(), 0);
    assert_ok(rmm_device_buffer_copy(&dst, &src, other, mr));
    rmm_device_buffer_set_stream(&dst, RMM_STREAM_LEGACY);
    rmm_device_buffer_set_stream(&dst, other);
    end_whole_capture(blocking);
    assert_cuda(cudaGetLastError());

    rmm_device_buffer_fini(&dst);
    rmm_device_buffer_fini(&src);
    assert_ok(rmm_stream_destroy(blocking));
    assert_ok(rmm_stream_destroy(other));
    rmm_resource_release(mr);
}

int main(int argc, char **argv)
{
    int count = 0;

    if (gpu_is_missing()) {
        return SKIPPED;
    }
    if (rmm_device_count(&count) != RMM_OK || count < 2) {
        printf("skipped: %d device here, two are needed\n", count);
        return SKIPPED;
    }
    return harness_run_cases(NULL, NULL);
}
