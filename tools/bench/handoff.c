/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A producer's stream allocates, a consumer's frees: what one stream gives back the other
 * asks for. The streams are brought in order between the halves, outside the clock.
 */
#include "bench/workload.h"

#include "bench/script.h"
#include "common/clock.h"

#define BLOCKS 64
#define BLOCK_MAX_BYTES (UINT64_C(1) << 20)

typedef struct handoff {
    trial_t *trial;
    rmm_stream_t producer, consumer;
    void *blocks[BLOCKS];
    size_t bytes[BLOCKS];
    size_t live;
    uint64_t elapsed_ns;
} handoff_t;

static void record(handoff_t *handoff, uint64_t *before_ns)
{
    uint64_t now_ns = clock_ns();
    handoff->elapsed_ns += now_ns - *before_ns;
    latencies_add(handoff->trial->latencies, now_ns - *before_ns);
    *before_ns = now_ns;
}

static rmm_status_t produce(handoff_t *handoff)
{
    rmm_resource_t *resource = handoff->trial->resource;
    uint64_t before_ns = clock_ns();
    for (size_t i = 0; i < BLOCKS; i++) {
        rmm_status_t status = rmm_resource_alloc(
            resource, handoff->bytes[i], 0, handoff->producer, &handoff->blocks[i]);
        if (status != RMM_OK) {
            return status;
        }
        handoff->live++;
        record(handoff, &before_ns);
    }
    return rmm_stream_synchronize(handoff->producer);
}

static rmm_status_t consume(handoff_t *handoff)
{
    rmm_resource_t *resource = handoff->trial->resource;
    uint64_t before_ns = clock_ns();
    while (handoff->live > 0) {
        size_t i = --handoff->live;
        rmm_resource_dealloc(
            resource, handoff->blocks[i], handoff->bytes[i], 0, handoff->consumer);
        record(handoff, &before_ns);
    }
    return rmm_stream_synchronize(handoff->consumer);
}

static rmm_status_t make_rounds(handoff_t *handoff, uint64_t least_ns)
{
    trial_t *trial = handoff->trial;
    uint64_t until_ns = clock_ns() + least_ns;
    rmm_status_t status = RMM_OK;
    while (clock_ns() < until_ns && status == RMM_OK) {
        if (!latencies_reserve(trial->latencies, 2 * (size_t)BLOCKS)) {
            trial_refuse(trial, "no host memory");
            return RMM_OK;
        }
        status = produce(handoff);
        rmm_status_t freed = consume(handoff);
        status = status != RMM_OK ? status : freed;
        trial->operations += BLOCKS;
    }
    return status;
}

/* The warm-up's figures are dropped. */
static rmm_status_t measure(handoff_t *handoff)
{
    trial_t *trial = handoff->trial;
    size_t kept = trial->latencies->count;
    rmm_status_t status = make_rounds(handoff, trial->scale->warm_ns);
    trial->latencies->count = kept;
    trial->operations = 0;
    handoff->elapsed_ns = 0;
    if (status == RMM_OK) {
        status = make_rounds(handoff, trial->scale->run_ns);
        trial->value = (double)handoff->elapsed_ns / (double)trial->operations;
    }
    return status;
}

void run_handoff(const workload_t *workload, trial_t *trial)
{
    handoff_t handoff = {.trial = trial};
    uint64_t random = trial->seed;
    (void)workload;
    for (size_t i = 0; i < BLOCKS; i++) {
        handoff.bytes[i] = script_random(&random) % BLOCK_MAX_BYTES + 1;
    }
    rmm_status_t status = rmm_stream_create(RMM_STREAM_NON_BLOCKING, &handoff.producer);
    if (status == RMM_OK) {
        status = rmm_stream_create(RMM_STREAM_NON_BLOCKING, &handoff.consumer);
        if (status == RMM_OK) {
            trial_fail(trial, measure(&handoff));
            status = rmm_stream_destroy(handoff.consumer);
        }
        trial_fail(trial, status);
        status = rmm_stream_destroy(handoff.producer);
    }
    trial_fail(trial, status);
}
