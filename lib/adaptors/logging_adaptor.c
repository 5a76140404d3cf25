/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Logs a row for every allocation and free that passes. A row costs its thread a reading of the
 * clock, the formatting, and a lock that is held no longer than these. row_writer.c writes.
 *
 * The clock is read under the writer's lock, so that times rise from row to row.
 */
#include <rmm/logging_adaptor.h>

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "adaptors/adaptor.h"
#include "adaptors/call_stack.h"
#include "adaptors/row_writer.h"
#include "core/assert.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/host_memory.h"
#include "core/thread_id.h"

#define CALLER_DEPTH 16u
#define CALLER_BYTES (RMM_ROW_BYTES - RMM_EVENT_CSV_BYTES - 128)
#define POOL_COLUMNS ",PoolBytes,UsedBytes"
#define EXTENDED_COLUMNS ",Device,DurationNs,Caller"

typedef struct logging {
    rmm_adaptor_t adaptor; /* first member */
    rmm_row_writer_t writer;
    bool extended;
    const rmm_resource_t *pool; /* borrowed: upstream, or what that stands on; NULL: no
                                   columns of it */
    void (*sink_destroy)(void *sink_arg); /* NULL: the program frees it */
} logging_t;

static logging_t *from_base(rmm_resource_t *mr)
{
    return RMM_CONTAINER_OF(mr, logging_t, adaptor.base);
}

/* --- rows --------------------------------------------------------------------------- */

/* The caller of the library, in a form that has no comma. */
static void describe_caller(char text[RMM_FRAME_BYTES])
{
    rmm_call_stack_t *stack = rmm__call_stack_capture(CALLER_DEPTH);
    size_t own;

    text[0] = '\0';
    if (stack == NULL) {
        return;
    }
    own = rmm__call_stack_own_frames(stack->frames, stack->count);
    if (own < stack->count) {
        rmm__call_stack_describe(stack->frames[own], text);
    }
    rmm__free(stack);
    for (char *at = text; *at != '\0'; at++) {
        *at = *at == ',' || *at == '\n' ? ';' : *at;
    }
}

typedef struct pool_figures {
    uint64_t pool_bytes, used_bytes;
} pool_figures_t;

/* The resource that the blocks belong to, below adaptors and bins. */
static const rmm_resource_t *pool_below(const rmm_resource_t *mr)
{
    while (mr->upstream != NULL &&
           !atomic_load_explicit(&mr->ops, memory_order_relaxed)->owns_blocks) {
        mr = mr->upstream;
    }
    return mr;
}

/* Without the writer's lock: a CUDA memory pool is asked, which is a call of the driver. What is in
 * use comes first, so that it is not more than a pool that grows meanwhile. */
static pool_figures_t figures_of(const rmm_resource_t *pool)
{
    void (*refresh)(const rmm_resource_t *) =
        atomic_load_explicit(&pool->ops, memory_order_relaxed)->refresh;

    uint64_t used_bytes = RMM_ACCOUNTING_GET(&pool->accounting, current_bytes);

    if (refresh != NULL) {
        refresh(pool);
    }
    return (pool_figures_t){
        RMM_ACCOUNTING_GET(&pool->accounting, reserved_bytes), used_bytes};
}

/* These columns stand in the place of the newline at to[-1], and end with one. */
static char *put_figures(char *to, const pool_figures_t *figures)
{
    to[-1] = ',';
    to = rmm__csv_decimal(to, figures->pool_bytes);
    *to++ = ',';
    to = rmm__csv_decimal(to, figures->used_bytes);
    *to++ = '\n';
    return to;
}

/* Likewise. */
static char *
put_extension(char *to, int device, int64_t duration_ns, const char *caller)
{
    size_t length = strnlen(caller, CALLER_BYTES);

    to[-1] = ',';
    to = device >= 0 ? rmm__csv_decimal(to, (uint64_t)device) : stpcpy(to, "-1");
    *to++ = ',';
    to = duration_ns >= 0 ? rmm__csv_decimal(to, (uint64_t)duration_ns)
                          : stpcpy(to, "-1");
    *to++ = ',';
    memcpy(to, caller, length);
    to += length;
    *to++ = '\n';
    return to;
}

static void put_row(logging_t *self, rmm_event_t *event, int64_t duration_ns)
{
    char caller[RMM_FRAME_BYTES];
    pool_figures_t figures = {0, 0};
    char *row;
    char *end;

    if (self->extended) {
        describe_caller(caller);
    }
    if (self->pool != NULL) {
        figures = figures_of(self->pool);
    }
    event->thread = rmm__thread_id();
    row = rmm__row_begin(&self->writer);
    if (row == NULL) {
        return;
    }
    event->time_ns = rmm__clock_ns(CLOCK_REALTIME);
    end = row + rmm__event_csv(row, event, &self->writer.clock);
    if (self->pool != NULL) {
        end = put_figures(end, &figures);
    }
    if (self->extended) {
        end = put_extension(end, self->adaptor.base.device, duration_ns, caller);
    }
    rmm__row_end(&self->writer, (size_t)(end - row), event->time_ns);
}

static rmm_event_t
event_of(uint32_t action, const void *ptr, const rmm_request_t *request)
{
    return (rmm_event_t){
        .action = action,
        .pointer = (uint64_t)(uintptr_t)ptr,
        .bytes = request->bytes,
        .stream = (uint64_t)(uintptr_t)request->stream,
    };
}

/* --- ops ---------------------------------------------------------------------------- */

static rmm_status_t
logging_alloc(rmm_resource_t *mr, const rmm_request_t *request, void **ptr_out)
{
    logging_t *self = from_base(mr);
    uint64_t start_ns = self->extended ? rmm__clock_ns(CLOCK_MONOTONIC) : 0;
    rmm_status_t status = rmm__resource_alloc(mr->upstream, request, ptr_out);
    uint64_t took_ns = self->extended ? rmm__clock_ns(CLOCK_MONOTONIC) - start_ns : 0;
    rmm_event_t event = event_of(RMM_EVENT_FAILURE, NULL, request);

    if (status != RMM_OK) {
        put_row(self, &event, (int64_t)took_ns);
        return rmm__adaptor_failed(&self->adaptor, status);
    }
    event = event_of(RMM_EVENT_ALLOCATE, *ptr_out, request);
    put_row(self, &event, (int64_t)took_ns);
    rmm__adaptor_count_alloc(&self->adaptor, request->bytes);
    return RMM_OK;
}

static void logging_dealloc(rmm_resource_t *mr, void *ptr, const rmm_request_t *request)
{
    logging_t *self = from_base(mr);
    rmm_event_t event = event_of(RMM_EVENT_FREE, ptr, request);

    put_row(self, &event, -1);
    (void)rmm__adaptor_free(&self->adaptor, ptr, request);
}

/* The program's function runs last, when nothing refers to its argument any more. */
static void logging_destroy(rmm_resource_t *mr)
{
    logging_t *self = from_base(mr);
    void (*sink_destroy)(void *) = self->sink_destroy;
    void *sink_arg = self->writer.sink_arg;

    rmm__row_writer_fini(&self->writer);
    rmm__adaptor_destroy(mr);
    if (sink_destroy != NULL) {
        sink_destroy(sink_arg);
    }
}

static const rmm_resource_ops_t logging_ops[] = RMM_ADAPTOR_OPS(
    "logging", logging_alloc, logging_dealloc, rmm__adaptor_trim, logging_destroy);

/* --- public ------------------------------------------------------------------------- */

const char *rmm_logging_header(uint32_t format)
{
    switch (format) {
    case RMM_LOGGING_FORMAT_RMM:
        return RMM_EVENT_CSV_HEADER;
    case RMM_LOGGING_FORMAT_EXTENDED:
        return RMM_EVENT_CSV_HEADER EXTENDED_COLUMNS;
    case RMM_LOGGING_FORMAT_POOL_SIZE:
        return RMM_EVENT_CSV_HEADER POOL_COLUMNS;
    case RMM_LOGGING_FORMAT_EXTENDED | RMM_LOGGING_FORMAT_POOL_SIZE:
        return RMM_EVENT_CSV_HEADER POOL_COLUMNS EXTENDED_COLUMNS;
    default:
        return NULL;
    }
}

const char *rmm_logging_path(const rmm_resource_t *mr)
{
    const logging_t *self = (const logging_t *)mr;

    return mr != NULL && rmm__adaptor_is(mr, logging_ops) && self->writer.path != NULL
               ? self->writer.path
               : "";
}

rmm_status_t rmm_logging_flush(rmm_resource_t *mr)
{
    RMM_CHECK_ARG(mr != NULL, "the resource is NULL");
    RMM_CHECK_ARG(
        rmm__adaptor_is(mr, logging_ops), "the resource is not a logging adaptor");
    return rmm__row_writer_flush(&from_base(mr)->writer);
}

static rmm_status_t choose_options(rmm_logging_options_t *opts)
{
    const char *path = secure_getenv("RMM_LOG_FILE");

    RMM_CHECK_ARG(
        rmm_logging_header(opts->format) != NULL,
        "format is none of RMM_LOGGING_FORMAT_*, combined with |");
    if (opts->path == NULL && opts->sink == NULL && path != NULL && path[0] != '\0') {
        opts->path = path;
    }
    RMM_CHECK_ARG(
        opts->path != NULL || opts->sink != NULL,
        "the allocation log has no destination: set path, sink, or the variable "
        "RMM_LOG_FILE");
    return RMM_OK;
}

rmm_status_t rmm_logging_adaptor_create(
    rmm_resource_t *upstream, const rmm_logging_options_t *options,
    rmm_resource_t **out)
{
    rmm_logging_options_t opts;
    rmm_adaptor_t *adaptor;
    logging_t *self;
    rmm_status_t status = RMM_OPTIONS_OVER(upstream, out, &opts, options);

    if (status == RMM_OK) {
        status = choose_options(&opts);
    }
    if (status == RMM_OK) {
        status = rmm__adaptor_create(
            &(rmm_adaptor_plan_t){logging_ops, sizeof(logging_t), opts.name}, upstream,
            &adaptor);
    }
    if (status != RMM_OK) {
        return status;
    }
    self = from_base(&adaptor->base);
    self->extended = (opts.format & RMM_LOGGING_FORMAT_EXTENDED) != 0;
    self->pool =
        (opts.format & RMM_LOGGING_FORMAT_POOL_SIZE) != 0 ? pool_below(upstream) : NULL;
    if (self->extended) {
        rmm__call_stack_prepare();
    }
    status = rmm__row_writer_init(
        &self->writer, &adaptor->base, &opts, rmm_logging_header(opts.format));
    if (status != RMM_OK) {
        rmm__adaptor_destroy(&adaptor->base);
        return status;
    }
    self->sink_destroy = opts.sink_destroy;
    *out = &adaptor->base;
    return RMM_OK;
}
