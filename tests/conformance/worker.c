/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See worker.h. All that is asked of the GPU goes through the driver table, so that the
 * simulated and a real one do the same.
 */
#include "conformance/worker.h"

#include "harness/harness.h"

#include <stdio.h>
#include <string.h>

#include <rmm/sim.h>

#include "driver/driver.h"
#include "driver/sim/control.h"

static const rmm_driver_t *gpu(void)
{
    rmm_status_t status;

    return rmm__driver(&status);
}

bool worker_note(worker_t *worker, bool holds, int line)
{
    if (!holds && worker->failures++ == 0) {
        worker->first_failure = line;
        snprintf(
            worker->message, sizeof(worker->message), "%.199s",
            rmm_last_error_message());
    }
    return holds;
}

uint64_t worker_draw(worker_t *worker, uint64_t limit)
{
    worker->random =
        worker->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (worker->random >> 33) % limit;
}

rmm_status_t worker_obtain(worker_t *worker, size_t bytes, void **ptr)
{
    return worker->order == ORDER_SYNC
               ? rmm_resource_alloc_sync(worker->mr, bytes, 0, ptr)
               : rmm_resource_alloc(worker->mr, bytes, 0, worker->stream, ptr);
}

static bool has(const worker_t *worker, uint32_t property)
{
    return (rmm_resource_properties(worker->mr) & property) != 0;
}

static char *end_of(const block_t *block, int end)
{
    size_t some = block->bytes < END_BYTES ? block->bytes : END_BYTES;

    return (char *)block->ptr + (end == 0 ? 0 : block->bytes - some);
}

static size_t end_bytes(const block_t *block)
{
    return block->bytes < END_BYTES ? block->bytes : END_BYTES;
}

/* Around what the worker itself queues, and not around the library's calls. */
typedef struct own_calls {
    int device, mode;
} own_calls_t;

static own_calls_t begin_own_calls(worker_t *worker)
{
    own_calls_t previous = {-1, RMM_CAPTURE_MODE_RELAXED};

    if (worker->has_device) {
        EXPECT(worker, gpu()->device_get(&previous.device) == RMM_DRIVER_OK);
        EXPECT(worker, gpu()->device_set(worker->device) == RMM_DRIVER_OK);
    }
    if (worker->spares_captures) {
        EXPECT(worker, gpu()->capture_mode_exchange(&previous.mode) == RMM_DRIVER_OK);
    }
    return previous;
}

static void end_own_calls(worker_t *worker, own_calls_t *previous)
{
    if (worker->spares_captures) {
        EXPECT(worker, gpu()->capture_mode_exchange(&previous->mode) == RMM_DRIVER_OK);
    }
    if (previous->device >= 0) {
        EXPECT(worker, gpu()->device_set(previous->device) == RMM_DRIVER_OK);
    }
}

static void write_mark(worker_t *worker, const block_t *block)
{
    own_calls_t previous = begin_own_calls(worker);

    for (int end = 0; end < 2; end++) {
        if (!has(worker, RMM_DEVICE_ACCESSIBLE)) {
            memset(end_of(block, end), block->mark, end_bytes(block));
        } else {
            EXPECT(
                worker, gpu()->memset_async(
                            end_of(block, end), block->mark, end_bytes(block),
                            worker->stream) == RMM_DRIVER_OK);
        }
    }
    end_own_calls(worker, &previous);
    if (worker->order == ORDER_SYNC) {
        worker_wait(worker);
    }
}

bool worker_take(worker_t *worker, size_t bytes, block_t *block)
{
    *block = (block_t){
        .bytes = bytes, .mark = (unsigned char)(1 + worker_draw(worker, 200))};
    if (!EXPECT(worker, worker_obtain(worker, bytes, &block->ptr) == RMM_OK)) {
        return false;
    }
    EXPECT(worker, (bytes == 0) == (block->ptr == NULL));
    EXPECT(worker, (uintptr_t)block->ptr % RMM_ALIGN_DEFAULT == 0);
    if (bytes != 0) {
        write_mark(worker, block);
    }
    return true;
}

static void read_mark(worker_t *worker, const block_t *block)
{
    sample_t *sample = &worker->samples[worker->sample_count++];
    own_calls_t previous = begin_own_calls(worker);

    sample->mark = block->mark;
    sample->end_bytes = end_bytes(block);
    for (int end = 0; end < 2; end++) {
        if (!has(worker, RMM_DEVICE_ACCESSIBLE)) {
            memcpy(sample->ends[end], end_of(block, end), sample->end_bytes);
        } else {
            EXPECT(
                worker, gpu()->memcpy_async(
                            sample->ends[end], end_of(block, end), sample->end_bytes,
                            worker->stream) == RMM_DRIVER_OK);
        }
    }
    end_own_calls(worker, &previous);
    if (worker->order == ORDER_SYNC) {
        worker_wait(worker);
        if (has(worker, RMM_HOST_ACCESSIBLE)) {
            EXPECT(worker, *(unsigned char *)block->ptr == block->mark);
        }
    }
}

void worker_give(worker_t *worker, const block_t *block)
{
    if (block->bytes != 0) {
        read_mark(worker, block);
    }
    if (worker->order == ORDER_SYNC) {
        rmm_resource_dealloc_sync(worker->mr, block->ptr, block->bytes, 0);
    } else {
        rmm_resource_dealloc(worker->mr, block->ptr, block->bytes, 0, worker->stream);
    }
}

void worker_wait(worker_t *worker)
{
    own_calls_t previous = begin_own_calls(worker);

    EXPECT(worker, gpu()->stream_synchronize(worker->stream) == RMM_DRIVER_OK);
    end_own_calls(worker, &previous);
}

void worker_compare(worker_t *worker)
{
    worker_wait(worker);
    for (size_t i = 0; i < worker->sample_count; i++) {
        const sample_t *sample = &worker->samples[i];
        size_t wrong = 0;

        for (size_t k = 0; k < sample->end_bytes; k++) {
            wrong += sample->ends[0][k] != sample->mark;
            wrong += sample->ends[1][k] != sample->mark;
        }
        EXPECT(worker, wrong == 0);
    }
    worker->sample_count = 0;
}

void worker_assert(const worker_t *worker)
{
    if (worker->failures != 0) {
        fail_msg(
            "%s: %llu failures, the first at line %d; last error there: %s",
            worker->subject->name, (unsigned long long)worker->failures,
            worker->first_failure, worker->message);
    }
}

rmm_resource_t *subject_begin(const subject_t *subject)
{
    rmm_resource_t *mr = NULL;

    assert_ok(subject_make(subject, &mr));
    assert_non_null(mr);
    return mr;
}

/* Over HIP the driver itself keeps events, one for each stream that it met. */
static bool keeps_events(void)
{
    rmm_status_t status;

    return strcmp(rmm__driver(&status)->name, "sim") != 0;
}

void subject_end(rmm_resource_t *mr)
{
    rmm_stats_t stats = RMM_STATS_INIT;

    assert_ok(rmm_resource_get_stats(mr, &stats));
    assert_int_equal(stats.current_bytes, 0);
    assert_int_equal(stats.current_count, 0);
    assert_int_equal(stats.invalid_free_count, 0);
    rmm_resource_release(mr);
    if (rmm_sim_active()) {
        assert_int_equal(rmm_sim_allocated_bytes(0), 0);
        assert_int_equal(rmm_sim_allocated_bytes(1), 0);
        assert_true(keeps_events() || rmm__sim_library_events() == 0);
        assert_string_equal(rmm__sim_violation_text(), "");
    }
}
