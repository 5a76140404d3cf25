/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every thread of the log is one here, and they take turns in the log's order.
 *
 * Two loops: run_fast() holds nothing but the allocator's calls, since it is what the
 * clock runs around; run_careful() waits for the recorded moments, queues patterns and
 * follows what is held.
 */
#include "replay/replay.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/clock.h"
#include "replay/held.h"

#define NS_PER_SECOND UINT64_C(1000000000)

static void sleep_until(uint64_t moment_ns)
{
    struct timespec moment = {
        .tv_sec = (time_t)(moment_ns / NS_PER_SECOND),
        .tv_nsec = (long)(moment_ns % NS_PER_SECOND),
    };
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &moment, NULL) == EINTR) {
    }
}

/* At most a century: tiny factors must not overflow. */
static uint64_t scaled(uint64_t due_ns, double speed)
{
    double ns = (double)due_ns / speed;
    return ns < 3e18 ? (uint64_t)ns : UINT64_C(3000000000000000000);
}

static void note_failure(replay_t *replay, const plan_op_t *op)
{
    if (replay->failure_count < REPLAY_FAILURES_SHOWN) {
        replay_failure_t *failure = &replay->failures[replay->failure_count];
        failure->line = op->line;
        failure->bytes = op->bytes;
        snprintf(
            failure->message, sizeof failure->message, "%s", rmm_last_error_message());
    }
    replay->failure_count++;
}

static inline rmm_status_t
allocate(replay_t *replay, uint32_t index, const plan_op_t *op)
{
    replay_handle_t *handle = &replay->handles[op->handle];
    rmm_status_t status = rmm_resource_alloc(
        replay->resource, op->bytes, 0, replay->streams[op->stream], &handle->address);
    handle->op = index;
    handle->used = status == RMM_OK;
    if (status != RMM_OK) {
        note_failure(replay, op);
    }
    return status;
}

/* A block whose allocation failed has no free. */
static inline void deallocate(replay_t *replay, const plan_op_t *op)
{
    replay_handle_t *handle = &replay->handles[op->handle];
    if (handle->used) {
        handle->used = false;
        rmm_resource_dealloc(
            replay->resource, handle->address, op->bytes, 0,
            replay->streams[op->stream]);
    }
}

/* Operations of one thread that follow each other. */
typedef struct stretch {
    replay_t *replay;
    uint32_t begin;
    uint32_t end;
    uint64_t start_ns; /* of the run */
    uint64_t elapsed_ns;
    bool worked;
} stretch_t;

static void run_fast(void *context)
{
    stretch_t *stretch = context;
    replay_t *replay = stretch->replay;
    const plan_op_t *ops = replay->plan->ops;
    uint64_t begin = clock_ns();
    for (uint32_t i = stretch->begin; i < stretch->end; i++) {
        if (ops[i].is_free) {
            deallocate(replay, &ops[i]);
        } else {
            (void)allocate(replay, i, &ops[i]);
        }
    }
    stretch->elapsed_ns += clock_ns() - begin;
}

rmm_status_t replay_try(replay_t *replay)
{
    const plan_t *plan = replay->plan;
    for (uint32_t i = 0; i < plan->op_count; i++) {
        const plan_op_t *op = &plan->ops[i];
        rmm_status_t status = RMM_OK;
        if (op->is_free) {
            deallocate(replay, op);
        } else {
            status = allocate(replay, i, op);
        }
        if (status != RMM_OK) {
            return status;
        }
    }
    return RMM_OK;
}

static bool verify_worked(replay_t *replay, const char *what, int error)
{
    if (error != 0) {
        snprintf(
            replay->error, sizeof replay->error, "--verify cannot %s: %s", what,
            replay->verify->error_text(error));
    }
    return error == 0;
}

/* Numbers differ between runs too, or last run's bytes would look right. */
static verify_block_t block_of(const replay_t *replay, const replay_handle_t *handle)
{
    return (verify_block_t){
        .address = handle->address,
        .bytes = replay->plan->ops[handle->op].bytes,
        .op = replay->run_count * replay->plan->op_count + handle->op,
    };
}

static bool fill(replay_t *replay, const plan_op_t *op)
{
    verify_block_t block = block_of(replay, &replay->handles[op->handle]);
    return block.bytes == 0 ||
           verify_worked(
               replay, "write a pattern",
               replay->verify->fill(
                   replay->verify_state, &block, replay->streams[op->stream]));
}

/* Checks on the stream of the free, behind the stream that wrote the pattern. */
static bool check(replay_t *replay, const replay_handle_t *handle, uint32_t stream)
{
    const plan_t *plan = replay->plan;
    uint32_t writer = plan->ops[handle->op].stream;
    verify_block_t block = block_of(replay, handle);
    if (block.bytes == 0) {
        return true;
    }
    if (writer != stream && !verify_worked(
                                replay, "order two streams",
                                replay->verify->order(
                                    replay->verify_state, replay->streams[writer],
                                    replay->streams[stream]))) {
        return false;
    }
    return verify_worked(
        replay, "check a pattern",
        replay->verify->check(replay->verify_state, &block, replay->streams[stream]));
}

static bool note(replay_t *replay, const plan_op_t *op)
{
    rmm_stats_t stats;
    if (replay->csv == NULL) {
        return true;
    }
    if (!held_stats(replay->resource, &stats)) {
        snprintf(replay->error, sizeof replay->error, "%s", rmm_last_error_message());
        return false;
    }
    csv_note(replay->csv, op->due_ns, stats.current_bytes, stats.reserved_bytes);
    return true;
}

static bool run_careful_op(replay_t *replay, uint32_t index)
{
    const plan_op_t *op = &replay->plan->ops[index];
    const replay_handle_t *handle = &replay->handles[op->handle];
    bool verify = replay->verify != NULL;
    if (!op->is_free) {
        return allocate(replay, index, op) != RMM_OK || !verify || fill(replay, op);
    }
    if (verify && handle->used && !check(replay, handle, op->stream)) {
        return false;
    }
    deallocate(replay, op);
    return true;
}

static void run_careful(void *context)
{
    stretch_t *stretch = context;
    replay_t *replay = stretch->replay;
    for (uint32_t i = stretch->begin; i < stretch->end && stretch->worked; i++) {
        if (replay->speed > 0) {
            sleep_until(
                stretch->start_ns + scaled(replay->plan->ops[i].due_ns, replay->speed));
        }
        stretch->worked =
            run_careful_op(replay, i) && note(replay, &replay->plan->ops[i]);
    }
}

static uint32_t stretch_end(const plan_t *plan, uint32_t begin)
{
    uint32_t end = begin + 1;
    while (end < plan->op_count && plan->ops[end].thread == plan->ops[begin].thread) {
        end++;
    }
    return end;
}

static bool check_left(replay_t *replay)
{
    for (size_t i = 0; i < replay->plan->handle_count; i++) {
        const replay_handle_t *handle = &replay->handles[i];
        if (handle->used &&
            !check(replay, handle, replay->plan->ops[handle->op].stream)) {
            return false;
        }
    }
    return true;
}

bool replay_run(replay_t *replay)
{
    const plan_t *plan = replay->plan;
    bool fast = replay->speed == 0 && replay->verify == NULL && replay->csv == NULL;
    if (replay->run_count > 0) {
        replay_free_left(replay);
    }
    stretch_t stretch = {.replay = replay, .start_ns = clock_ns(), .worked = true};
    for (; stretch.begin < plan->op_count && stretch.worked;
         stretch.begin = stretch.end) {
        stretch.end = stretch_end(plan, stretch.begin);
        crew_call(
            replay->crew, plan->ops[stretch.begin].thread,
            fast ? run_fast : run_careful, &stretch);
    }
    if (!stretch.worked || (replay->verify != NULL && !check_left(replay))) {
        return false;
    }
    if (replay->run_count == 0 || stretch.elapsed_ns < replay->best_elapsed_ns) {
        replay->best_elapsed_ns = stretch.elapsed_ns;
    }
    replay->elapsed_ns += stretch.elapsed_ns;
    replay->run_count++;
    return true;
}

bool replay_verify_finish(replay_t *replay, verify_report_t *report)
{
    return verify_worked(
        replay, "read its result",
        replay->verify->finish(replay->verify_state, report));
}

void replay_free_left(replay_t *replay)
{
    for (size_t i = 0; i < replay->plan->handle_count; i++) {
        if (replay->handles[i].used) {
            plan_op_t op = replay->plan->ops[replay->handles[i].op];
            deallocate(replay, &op);
        }
    }
}

/* Streams of our own do not wait for the default one: order errors show sooner. */
static bool make_streams(replay_t *replay)
{
    const plan_t *plan = replay->plan;
    for (size_t i = 0; i < plan->stream_count; i++) {
        if (plan->streams[i].is_default) {
            replay->streams[i] = RMM_STREAM_LEGACY;
            continue;
        }
        rmm_status_t status =
            rmm_stream_create(RMM_STREAM_NON_BLOCKING, &replay->streams[i]);
        if (status != RMM_OK) {
            snprintf(
                replay->error, sizeof replay->error,
                "cannot create stream %zu of %zu: %s", i + 1, plan->stream_count,
                rmm_last_error_message());
            return false;
        }
    }
    return true;
}

/* The first call that needs a GPU makes the process's context, which may take 100 ms: not
 * within the first operation. */
static bool make_context(replay_t *replay)
{
    if ((rmm_resource_properties(replay->resource) & RMM_DEVICE_ACCESSIBLE) != 0 &&
        rmm_stream_synchronize(RMM_STREAM_LEGACY) != RMM_OK) {
        snprintf(
            replay->error, sizeof replay->error, "cannot use the GPU: %s",
            rmm_last_error_message());
        return false;
    }
    return true;
}

static bool make_all(replay_t *replay)
{
    const plan_t *plan = replay->plan;
    replay->handles = calloc(plan->handle_count, sizeof *replay->handles);
    replay->streams = calloc(plan->stream_count, sizeof(rmm_stream_t));
    if (replay->handles == NULL || replay->streams == NULL) {
        snprintf(replay->error, sizeof replay->error, "no host memory for the replay");
        return false;
    }
    replay->crew = crew_create(plan->thread_count);
    if (replay->crew == NULL) {
        snprintf(
            replay->error, sizeof replay->error, "cannot start %zu threads: %s",
            plan->thread_count, strerror(errno));
        return false;
    }
    if (!make_context(replay) || !make_streams(replay)) {
        return false;
    }
    return replay->verify == NULL ||
           verify_worked(replay, "start", replay->verify->open(&replay->verify_state));
}

bool replay_open(
    replay_t *replay, const plan_t *plan, rmm_resource_t *resource, double speed,
    const verify_backend_t *verify)
{
    *replay = (replay_t){
        .plan = plan, .resource = resource, .speed = speed, .verify = verify};
    if (!make_all(replay)) {
        replay_close(replay);
        return false;
    }
    return true;
}

void replay_close(replay_t *replay)
{
    if (replay->handles != NULL) {
        replay_free_left(replay);
    }
    if (replay->verify_state != NULL) {
        replay->verify->close(replay->verify_state);
    }
    for (size_t i = 0; replay->streams != NULL && i < replay->plan->stream_count; i++) {
        if (replay->streams[i] != NULL) {
            rmm_stream_destroy(replay->streams[i]);
        }
    }
    crew_destroy(replay->crew);
    free(replay->handles);
    free(replay->streams);
    replay->crew = NULL;
    replay->handles = NULL;
    replay->streams = NULL;
    replay->verify_state = NULL;
}

const plan_op_t *replay_op(const replay_t *replay, uint64_t op)
{
    return &replay->plan->ops[op % replay->plan->op_count];
}
