/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The contents of a sleeping engine (saved.h).
 *
 * Cost: one copy for each run of live blocks. A copy takes the driver about 2 us, in which it
 * moves 100 KiB: so a run goes on over free memory of up to GAP_BYTES, where that is mapped. The
 * buffers are large, since pinning memory takes longer than the copy into it: 60 ms for 256 MiB
 * on an H200 machine, where the copy takes 5 ms. A program that sleeps often keeps them.
 */
#include "pool/saved.h"

#include <inttypes.h>
#include <stdlib.h>

#include "core/host_memory.h"

#define BUFFER_BYTES ((uint64_t)256 * 1024 * 1024)
#define GAP_BYTES ((uint64_t)64 * 1024)

/* --- which memory --------------------------------------------------------------------- */

typedef struct search {
    engine_t *engine;
    saved_t *saved;
    const uint64_t *discarded; /* units, sorted, each of them once */
    uint64_t discarded_count, discarded_found;
} search_t;

static int compare_units(const void *a, const void *b)
{
    uint64_t one = *(const uint64_t *)a;
    uint64_t other = *(const uint64_t *)b;

    return (one > other) - (one < other);
}

static bool is_discarded(search_t *search, uint64_t unit)
{
    bool is_one = search->discarded_count != 0 &&
                  bsearch(
                      &unit, search->discarded, search->discarded_count, sizeof(unit),
                      compare_units) != NULL;

    search->discarded_found += is_one;
    return is_one;
}

/* Is there memory between these units, of which no more than a part of a piece is missing? */
static bool is_mapped_between(const engine_t *engine, uint64_t last, uint64_t next)
{
    const engine_range_t *range = &engine->range;
    uint32_t index = rmm__pieces_from_locked(engine, last + 1);
    const engine_piece_t *piece =
        &range->pieces[index - 1]; /* a live block is in one */
    uint64_t end = piece->unit + piece->units;

    return next < end ||
           (index < range->piece_count && range->pieces[index].unit == end);
}

static void keep_run_locked(search_t *search, uint64_t unit, uint64_t units)
{
    saved_t *saved = search->saved;
    saved_run_t *last =
        saved->run_count != 0 ? &saved->runs[saved->run_count - 1] : NULL;
    uint64_t end = last != NULL ? last->unit + last->units : 0;

    if (last != NULL && (unit - end) * RMM_BLOCKS_UNIT <= GAP_BYTES &&
        (unit == end || is_mapped_between(search->engine, end - 1, unit))) {
        last->units = unit + units - last->unit;
    } else {
        RMM_ASSERT(saved->run_count < saved->run_capacity);
        saved->runs[saved->run_count++] = (saved_run_t){unit, units};
    }
}

static bool look_at(void *context, const rmm_block_info_t *info)
{
    search_t *search = context;

    if (info->heap == RMM_HEAP_NONE && info->tag != TAG_GIVEN_UP &&
        !is_discarded(search, info->unit)) {
        keep_run_locked(search, info->unit, info->units);
    }
    return true;
}

/* The addresses as sorted units, without doubles; UINT64_MAX for what can be no block. */
static uint64_t sort_discarded(const engine_sleep_plan_t *plan, uint64_t *units)
{
    uint64_t count = 0;

    for (size_t i = 0; i < plan->discarded_count; i++) {
        uintptr_t address = (uintptr_t)plan->discarded[i];

        units[i] =
            address % RMM_BLOCKS_UNIT == 0 ? address / RMM_BLOCKS_UNIT : UINT64_MAX;
    }
    qsort(units, plan->discarded_count, sizeof(*units), compare_units);
    for (size_t i = 0; i < plan->discarded_count; i++) {
        if (count == 0 || units[count - 1] != units[i]) {
            units[count++] = units[i];
        }
    }
    return count;
}

/* No request is served, so there will be no more live blocks than now. */
static bool reserve_runs(saved_t *saved, engine_t *engine)
{
    uint64_t wanted;
    saved_run_t *runs;

    rmm__mutex_lock(&engine->lock);
    wanted = rmm__blocks_live_count(engine->blocks);
    rmm__mutex_unlock(&engine->lock);
    saved->run_count = 0;
    if (wanted <= saved->run_capacity) {
        return true;
    }
    runs = rmm__resize(
        saved->runs, saved->run_capacity * sizeof(*runs), wanted * sizeof(*runs));
    if (runs != NULL) {
        saved->runs = runs;
        saved->run_capacity = wanted;
    }
    return runs != NULL;
}

static rmm_status_t no_host_memory(void)
{
    return rmm__error(
        RMM_ERR_OUT_OF_HOST_MEMORY, "no host memory for the list of blocks to keep");
}

rmm_status_t
rmm__saved_find(saved_t *saved, engine_t *engine, const engine_sleep_plan_t *plan)
{
    search_t search = {.engine = engine, .saved = saved};
    uint64_t *discarded = NULL;
    rmm_status_t status = RMM_OK;

    saved->run_count = 0;
    if (plan->discards_all) {
        return RMM_OK;
    }
    if (plan->discarded_count != 0) {
        discarded = rmm__calloc(plan->discarded_count, sizeof(*discarded));
        if (discarded == NULL) {
            return no_host_memory();
        }
        search.discarded_count = sort_discarded(plan, discarded);
        search.discarded = discarded;
    }
    if (!reserve_runs(saved, engine)) {
        status = no_host_memory();
    } else {
        rmm__mutex_lock(&engine->lock);
        rmm__blocks_walk(engine->blocks, look_at, &search);
        rmm__mutex_unlock(&engine->lock);
    }
    if (status == RMM_OK && search.discarded_found != search.discarded_count) {
        status = rmm__error(
            RMM_ERR_INVALID_ARGUMENT,
            "a block whose contents are to be discarded is no live block of the pool");
    }
    rmm__free(discarded);
    return status;
}

/* --- buffers -------------------------------------------------------------------------- */

static uint64_t bytes_of_runs(const saved_t *saved)
{
    uint64_t units = 0;

    for (uint64_t i = 0; i < saved->run_count; i++) {
        units += saved->runs[i].units;
    }
    return units * RMM_BLOCKS_UNIT;
}

static void give_back_buffers(saved_t *saved)
{
    for (uint64_t i = 0; i < saved->buffer_count; i++) {
        saved->host->give_back(
            saved->host_context, saved->buffers[i].ptr, saved->buffers[i].bytes);
    }
    saved->buffer_count = 0;
}

static void close_host(saved_t *saved)
{
    give_back_buffers(saved);
    if (saved->host != NULL) {
        saved->host->close(saved->host_context);
    }
    saved->host = NULL;
    saved->host_context = NULL;
}

void rmm__saved_open(saved_t *saved, const engine_sleep_plan_t *plan)
{
    if (saved->host != NULL && saved->host_context == plan->host_context) {
        plan->host->close(plan->host_context); /* it is open already */
        return;
    }
    close_host(saved);
    saved->host = plan->host;
    saved->host_context = plan->host_context;
}

static rmm_status_t add_buffer(saved_t *saved, uint64_t bytes)
{
    saved_buffer_t buffer = {.bytes = bytes < BUFFER_BYTES ? bytes : BUFFER_BYTES};
    rmm_status_t status;
    void *ptr;

    if (saved->buffer_count == saved->buffer_capacity) {
        uint64_t wanted = saved->buffer_capacity != 0 ? saved->buffer_capacity * 2 : 8;
        saved_buffer_t *grown = rmm__resize(
            saved->buffers, saved->buffer_capacity * sizeof(*grown),
            wanted * sizeof(*grown));

        if (grown == NULL) {
            return no_host_memory();
        }
        saved->buffers = grown;
        saved->buffer_capacity = wanted;
    }
    status = saved->host->obtain(saved->host_context, buffer.bytes, &ptr);
    if (status == RMM_OK) {
        buffer.ptr = ptr;
        saved->buffers[saved->buffer_count++] = buffer;
    }
    return status;
}

/* --- copies --------------------------------------------------------------------------- */

typedef enum way { OUT, IN } way_t;

/* Copy what lies below `before`, and no more than fits into the buffers there are. */
static int copy(
    const saved_t *saved, engine_t *engine, saved_cursor_t *at, uint64_t before,
    way_t way, rmm_stream_t stream)
{
    while (at->run < saved->run_count && at->buffer < saved->buffer_count) {
        const saved_run_t *run = &saved->runs[at->run];
        const saved_buffer_t *buffer = &saved->buffers[at->buffer];
        char *there = rmm__range_address(run->unit) + at->run_bytes;
        char *here = buffer->ptr + at->buffer_bytes;
        uint64_t end =
            run->unit + run->units < before ? run->unit + run->units : before;
        uint64_t bytes = buffer->bytes - at->buffer_bytes;
        int error;

        if (there >= rmm__range_address(end)) {
            return RMM_DRIVER_OK;
        }
        if (bytes > (uint64_t)(rmm__range_address(end) - there)) {
            bytes = (uint64_t)(rmm__range_address(end) - there);
        }
        rmm__driver_own_enter(); /* no use of the blocks, and no end of one is meant */
        error = rmm__driver_own_leave(
            way == OUT ? engine->driver->memcpy_async(here, there, bytes, stream)
                       : engine->driver->memcpy_async(there, here, bytes, stream));
        if (error != RMM_DRIVER_OK) {
            return error;
        }
        at->run_bytes += bytes;
        at->buffer_bytes += bytes;
        if (at->run_bytes == run->units * RMM_BLOCKS_UNIT) {
            at->run++;
            at->run_bytes = 0;
        }
        if (at->buffer_bytes == buffer->bytes) {
            at->buffer++;
            at->buffer_bytes = 0;
        }
    }
    return RMM_DRIVER_OK;
}

/* The reason of before is that of the host memory's resource, which knows nothing of a sleep. */
static rmm_status_t stays_awake(rmm_status_t status, uint64_t held, uint64_t bytes)
{
    return rmm__error_cuda(
        status, rmm__error_native(),
        "%s: to sleep, the pool needs %" PRIu64
        " bytes of host memory for its contents, and got %" PRIu64
        ": it is still awake",
        rmm__error_message(), bytes, held);
}

static rmm_status_t begin_copies(saved_t *saved, engine_t *engine, rmm_stream_t stream)
{
    saved_cursor_t cursor = {0};
    uint64_t bytes = bytes_of_runs(saved);
    uint64_t held = 0;
    rmm_status_t status = RMM_OK;
    int error;

    for (uint64_t i = 0; i < saved->buffer_count; i++) {
        held += saved->buffers[i].bytes;
    }
    error = copy(saved, engine, &cursor, UINT64_MAX, OUT, stream);
    while (error == RMM_DRIVER_OK && status == RMM_OK && held < bytes) {
        status = add_buffer(saved, bytes - held);
        if (status == RMM_OK) {
            held += saved->buffers[saved->buffer_count - 1].bytes;
            error = copy(saved, engine, &cursor, UINT64_MAX, OUT, stream);
        } else {
            status = stays_awake(status, held, bytes);
        }
    }
    return status == RMM_OK
               ? rmm__driver_status(engine->driver, error, "copying to host memory")
               : status;
}

rmm_status_t rmm__saved_copy_out(saved_t *saved, engine_t *engine, rmm_stream_t stream)
{
    rmm_status_t status = begin_copies(saved, engine, stream);
    rmm_status_t synchronised = rmm__driver_status(
        engine->driver, engine->driver->stream_synchronize(stream),
        "waiting for the copies to host memory");
    return status == RMM_OK ? synchronised : status;
}

int rmm__saved_copy_in(
    const saved_t *saved, engine_t *engine, saved_cursor_t *cursor, uint64_t before,
    rmm_stream_t stream)
{
    return copy(saved, engine, cursor, before, IN, stream);
}

void rmm__saved_drop(saved_t *saved, bool keeps_buffers)
{
    rmm__free(saved->runs);
    saved->runs = NULL;
    saved->run_count = 0;
    saved->run_capacity = 0;
    if (!keeps_buffers) {
        close_host(saved);
        rmm__free(saved->buffers);
        saved->buffers = NULL;
        saved->buffer_capacity = 0;
    }
}
