/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Invariants:
 *  - the engine's own map is the truth; the side file is only written, so whatever
 *    another process scribbles there changes figures but breaks nothing.
 *  - row i of the side file is block i of the map.
 *  - a row changes between an odd and an even sequence only. Every store in between is a
 *    release, so a reader that sees one of them sees the odd sequence too (a fence would
 *    do as well, but thread sanitizers do not know fences).
 *
 * Cost: a launch is one lock, one clock read, one probe for the kernel, and for each word
 * two comparisons unless it points near a block.
 */
#include "diag/engine.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/clock.h"
#include "core/mutex.h"
#include "diag/live_map.h"

struct rmm_diag_engine {
    rmm_mutex_t lock; /* protects all that follows, and writes to the side file */
    rmm_live_map_t map;
    rmm_kernel_table_t kernels;
    uint64_t *seen; /* per row: the last launch that counted it */
    uint64_t launch_number;
    rmm_diag_header_t *header;
    rmm_diag_kernel_t *kernel_entries;
    rmm_diag_row_t *rows;
};

/* Only the lock's holder writes: a plain add of an atomic, no locked instruction. */
#define ADD(counter, value)                                                            \
    atomic_store_explicit(                                                             \
        (counter), atomic_load_explicit((counter), memory_order_relaxed) + (value),    \
        memory_order_relaxed)

/* --- rows -------------------------------------------------------------------------- */

/* release: pairs with the acquire loads of a reader; see the top of the file */
#define ROW_SET(row, field, value)                                                     \
    atomic_store_explicit(&(row)->field, (value), memory_order_release)
#define ROW_GET(row, field) atomic_load_explicit(&(row)->field, memory_order_relaxed)

static void row_begin(rmm_diag_row_t *row)
{
    ROW_SET(row, sequence, ROW_GET(row, sequence) | 1u);
}

static void row_end(rmm_diag_row_t *row)
{
    ROW_SET(row, sequence, ROW_GET(row, sequence) + 1);
}

static void row_open(rmm_diag_row_t *row, const rmm_diag_block_v1_t *block)
{
    row_begin(row);
    ROW_SET(row, address, block->address);
    ROW_SET(row, bytes, block->bytes);
    ROW_SET(row, stream_id, block->stream_id);
    ROW_SET(row, resource_id, block->resource_id);
    ROW_SET(row, device, block->device);
    ROW_SET(row, first_kernel, RMM_DIAG_NO_KERNEL);
    ROW_SET(row, last_kernel, RMM_DIAG_NO_KERNEL);
    ROW_SET(row, launches, 0);
    ROW_SET(row, allocated_ns, rmm__clock_ns(CLOCK_MONOTONIC));
    ROW_SET(row, first_use_ns, 0);
    ROW_SET(row, last_use_ns, 0);
    ROW_SET(row, live, 1);
    row_end(row);
}

static void row_close(rmm_diag_row_t *row)
{
    row_begin(row);
    ROW_SET(row, live, 0);
    row_end(row);
}

static void row_use(rmm_diag_row_t *row, uint32_t kernel, uint64_t when_ns)
{
    uint64_t launches = ROW_GET(row, launches);

    row_begin(row);
    if (launches == 0) {
        ROW_SET(row, first_kernel, kernel);
        ROW_SET(row, first_use_ns, when_ns);
    }
    ROW_SET(row, last_kernel, kernel);
    ROW_SET(row, last_use_ns, when_ns);
    ROW_SET(row, launches, launches + 1);
    row_end(row);
}

/* --- blocks ------------------------------------------------------------------------ */

static void forget_block_locked(rmm_diag_engine_t *engine, uint32_t index)
{
    RMM_ASSERT_LOCKED(&engine->lock);
    row_close(&engine->rows[index]);
    rmm__live_map_erase(&engine->map, index);
}

/* Memory that is handed out was free: what still stands there was freed unseen. */
static void
forget_overlaps_locked(rmm_diag_engine_t *engine, uint64_t start, uint64_t end)
{
    uint32_t index = rmm__live_map_overlap(&engine->map, start, end);

    while (index != RMM_LIVE_NONE) {
        forget_block_locked(engine, index);
        index = rmm__live_map_overlap(&engine->map, start, end);
    }
}

static void
add_block_locked(rmm_diag_engine_t *engine, const rmm_diag_block_v1_t *block)
{
    uint64_t end = block->address + block->bytes;
    uint32_t index = 0;

    RMM_ASSERT_LOCKED(&engine->lock);
    forget_overlaps_locked(engine, block->address, end);
    index = rmm__live_map_insert(&engine->map, block->address, end);
    if (index == RMM_LIVE_NONE) {
        ADD(&engine->header->blocks_dropped, 1);
        return;
    }
    row_open(&engine->rows[index], block);
    /* release: the rows below are written; pairs with the reader's first look */
    atomic_store_explicit(
        &engine->header->rows_used, engine->map.fresh, memory_order_release);
}

void rmm__diag_engine_on_alloc(void *context, const rmm_diag_block_v1_t *block)
{
    rmm_diag_engine_t *engine = context;

    if (block->bytes == 0 || block->address + block->bytes < block->address) {
        return;
    }
    rmm__mutex_lock(&engine->lock);
    add_block_locked(engine, block);
    rmm__mutex_unlock(&engine->lock);
}

void rmm__diag_engine_on_free(void *context, const rmm_diag_block_v1_t *block)
{
    rmm_diag_engine_t *engine = context;
    uint32_t index = 0;

    rmm__mutex_lock(&engine->lock);
    index = rmm__live_map_find(&engine->map, block->address);
    if (index != RMM_LIVE_NONE) {
        const rmm_live_node_t *node = &engine->map.nodes[index];

        if (node->start == block->address && node->end - node->start == block->bytes) {
            forget_block_locked(engine, index);
        }
    }
    rmm__mutex_unlock(&engine->lock);
}

/* --- events ------------------------------------------------------------------------ */

static uint32_t
name_kernel_locked(rmm_diag_engine_t *engine, const rmm_diag_event_v1_t *event)
{
    uint32_t entry =
        rmm__kernel_table_entry(&engine->kernels, event->function, event->name);

    RMM_ASSERT_LOCKED(&engine->lock);
    if (entry == RMM_DIAG_NO_KERNEL) {
        ADD(&engine->header->launches_unnamed, 1);
        return entry;
    }
    ADD(&engine->kernel_entries[entry].launches, 1);
    /* release: the entry's name is written; pairs with a reader's load */
    atomic_store_explicit(
        &engine->header->kernels_used, engine->kernels.count, memory_order_release);
    return entry;
}

static void
on_launch_locked(rmm_diag_engine_t *engine, const rmm_diag_event_v1_t *event)
{
    uint32_t kernel = name_kernel_locked(engine, event);
    uint64_t when_ns = rmm__clock_ns(CLOCK_MONOTONIC);

    RMM_ASSERT_LOCKED(&engine->lock);
    ADD(&engine->header->launches, 1);
    engine->launch_number++;
    for (size_t i = 0; i < event->word_count; i++) {
        uint32_t index = rmm__live_map_find(&engine->map, event->words[i]);

        if (index != RMM_LIVE_NONE && engine->seen[index] != engine->launch_number) {
            engine->seen[index] = engine->launch_number;
            row_use(&engine->rows[index], kernel, when_ns);
        }
    }
}

void rmm__diag_engine_on_event(void *context, const rmm_diag_event_v1_t *event)
{
    rmm_diag_engine_t *engine = context;

    /* Other kinds carry what order and bounds will look at; usage counts kernels. */
    if (event->struct_size < sizeof(*event) || event->kind != RMM_DIAG_LAUNCH) {
        return;
    }
    rmm__mutex_lock(&engine->lock);
    on_launch_locked(engine, event);
    rmm__mutex_unlock(&engine->lock);
}

void rmm__diag_engine_parameters_unknown(rmm_diag_engine_t *engine)
{
    rmm__mutex_lock(&engine->lock);
    ADD(&engine->header->parameter_failures, 1);
    rmm__mutex_unlock(&engine->lock);
}

/* --- making ------------------------------------------------------------------------ */

static size_t kernels_offset(void)
{
    return sizeof(rmm_diag_header_t);
}

static size_t rows_offset(uint32_t kernel_count)
{
    return kernels_offset() + kernel_count * sizeof(rmm_diag_kernel_t);
}

size_t rmm__diag_file_bytes(uint32_t row_count, uint32_t kernel_count)
{
    return rows_offset(kernel_count) + row_count * sizeof(rmm_diag_row_t);
}

static void lay_out(rmm_diag_engine_t *engine, const rmm_diag_engine_desc_t *desc)
{
    unsigned char *memory = desc->memory;
    rmm_diag_header_t *header = desc->memory;

    header->magic = RMM_DIAG_MAGIC;
    header->version_major = RMM_DIAG_MAJOR;
    header->version_minor = RMM_DIAG_MINOR;
    header->header_bytes = sizeof(*header);
    header->file_bytes = rmm__diag_file_bytes(desc->row_count, desc->kernel_count);
    header->kernels_offset = (uint32_t)kernels_offset();
    header->kernels_stride = sizeof(rmm_diag_kernel_t);
    header->kernels_count = desc->kernel_count;
    header->rows_offset = (uint32_t)rows_offset(desc->kernel_count);
    header->rows_stride = sizeof(rmm_diag_row_t);
    header->rows_count = desc->row_count;
    engine->header = header;
    engine->kernel_entries = (void *)(memory + header->kernels_offset);
    engine->rows = (void *)(memory + header->rows_offset);
}

rmm_diag_engine_t *rmm__diag_engine_create(const rmm_diag_engine_desc_t *desc)
{
    rmm_diag_engine_t *engine = calloc(1, sizeof(*engine));

    if (engine == NULL) {
        return NULL;
    }
    rmm__mutex_init(&engine->lock);
    lay_out(engine, desc);
    engine->seen = calloc(desc->row_count, sizeof(*engine->seen));
    if (engine->seen == NULL) {
        goto err_free_engine;
    }
    if (!rmm__live_map_init(&engine->map, desc->row_count)) {
        goto err_free_seen;
    }
    if (!rmm__kernel_table_init(
            &engine->kernels, engine->kernel_entries, desc->kernel_count,
            desc->demangle)) {
        goto err_fini_map;
    }
    return engine;

err_fini_map:
    rmm__live_map_fini(&engine->map);
err_free_seen:
    free(engine->seen);
err_free_engine:
    rmm__mutex_fini(&engine->lock);
    free(engine);
    return NULL;
}

void rmm__diag_engine_destroy(rmm_diag_engine_t *engine)
{
    if (engine == NULL) {
        return;
    }
    rmm__kernel_table_fini(&engine->kernels);
    rmm__live_map_fini(&engine->map);
    free(engine->seen);
    rmm__mutex_fini(&engine->lock);
    free(engine);
}

/* Cut to fit; one line. */
static void copy_line(char *to, size_t room, const char *from)
{
    size_t i = 0;

    for (; i + 1 < room && from[i] != '\0'; i++) {
        to[i] = (unsigned char)from[i] < ' ' ? ' ' : from[i];
    }
    to[i] = '\0';
}

void rmm__diag_engine_publish(
    rmm_diag_engine_t *engine, const char *mode, const char *source)
{
    rmm_diag_header_t *header = engine->header;

    copy_line(header->mode, sizeof(header->mode), mode);
    copy_line(header->source, sizeof(header->source), source);
    /* release: all that does not change is written; pairs with diag_reader.c */
    atomic_store_explicit(&header->ready, 1, memory_order_release);
}

bool rmm__diag_engine_check(rmm_diag_engine_t *engine)
{
    uint32_t live = 0;
    bool good = false;

    rmm__mutex_lock(&engine->lock);
    good = rmm__live_map_check(&engine->map);
    for (uint32_t i = 0; i < engine->map.fresh; i++) {
        const rmm_diag_row_t *row = &engine->rows[i];
        const rmm_live_node_t *node = &engine->map.nodes[i];

        good = good && ROW_GET(row, sequence) % 2 == 0;
        if (ROW_GET(row, live) != 0) {
            live++;
            good = good && ROW_GET(row, address) == node->start &&
                   ROW_GET(row, bytes) == node->end - node->start;
        }
    }
    good = good && live == engine->map.count;
    rmm__mutex_unlock(&engine->lock);
    return good;
}
