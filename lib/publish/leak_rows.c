/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of the list of leaks; see leak_rows.h.
 *
 * Locking: `opening` lets one thread make the file; fork() holds it (core/fork.h). One atomic
 * word says which chunks are taken. It and the free lists are in private memory, because every
 * process that may write the file may write the shared part.
 */
#include "publish/leak_rows.h"

#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "core/assert.h"
#include "core/clock.h"
#include "core/fork.h"
#include "core/host_memory.h"
#include "core/mutex.h"
#include "core/thread_id.h"
#include "publish/accounting.h"
#include "publish/leak_modules.h"
#include "publish/publisher.h"
#include "segment/segment_leaks.h"

typedef struct leaks_file {
    rmm_leaks_header_t header;
    rmm_leaks_module_t modules[RMM_LEAK_MODULES];
    rmm_leaks_row_t rows[RMM_LEAK_CHUNK_ROWS * RMM_LEAK_CHUNKS];
} leaks_file_t;

static rmm_mutex_t opening = RMM_MUTEX_INITIALIZER;
static bool opened;                    /* or could not be */
static _Atomic(leaks_file_t *) file;   /* NULL: none */
static _Atomic(uint64_t) chunks_taken; /* bit i: chunk i */

/* --- the file ----------------------------------------------------------------------- */

static bool is_publishing(void)
{
    bool shared;

    rmm__mutex_lock(&rmm__publisher.lock);
    shared = rmm__publisher.state == RMM_PUBLISH_SHARED;
    rmm__mutex_unlock(&rmm__publisher.lock);
    return shared;
}

static void fill_header(rmm_leaks_header_t *header)
{
    header->magic = RMM_LEAKS_MAGIC;
    header->version_major = RMM_LEAKS_MAJOR;
    header->version_minor = RMM_LEAKS_MINOR;
    header->header_bytes = sizeof(*header);
    header->file_bytes = sizeof(leaks_file_t);
    header->rows_offset = offsetof(leaks_file_t, rows);
    header->rows_stride = sizeof(rmm_leaks_row_t);
    header->rows_count = RMM_LEAK_CHUNK_ROWS * RMM_LEAK_CHUNKS;
    header->modules_offset = offsetof(leaks_file_t, modules);
    header->modules_stride = sizeof(rmm_leaks_module_t);
    header->modules_count = RMM_LEAK_MODULES;
    /* release: a thread that sees `ready` sees all of it */
    atomic_store_explicit(&header->ready, 1, memory_order_release);
}

RMM_AT_LOAD static void join_forks(void)
{
    rmm__fork_join(RMM_FORK_LEAKS, &opening, NULL);
}

static void open_file_locked(void)
{
    leaks_file_t *leaks;
    void *memory;

    RMM_ASSERT_LOCKED(&opening);
    if (!is_publishing() ||
        rmm__publish_side_file(RMM_LEAKS_SUFFIX, sizeof(leaks_file_t), &memory) !=
            RMM_OK) {
        return;
    }
    leaks = memory;
    fill_header(&leaks->header);
    rmm__leak_modules_open(&leaks->header, leaks->modules);
    /* release: pairs with file_now() */
    atomic_store_explicit(&file, leaks, memory_order_release);
}

static leaks_file_t *file_now(void)
{
    /* acquire: pairs with open_file_locked() */
    return atomic_load_explicit(&file, memory_order_acquire);
}

void rmm__leak_rows_open(rmm_leak_rows_t *rows, uint32_t resource_id)
{
    rows->resource_id = resource_id;
    rmm__mutex_lock(&opening);
    if (!opened) {
        opened = true;
        open_file_locked();
    }
    rmm__mutex_unlock(&opening);
}

/* --- chunks ------------------------------------------------------------------------- */

/* RMM_LEAK_CHUNKS: none is left. */
static uint32_t take_chunk(void)
{
    uint64_t taken = atomic_load_explicit(&chunks_taken, memory_order_relaxed);

    while (taken != UINT64_MAX) {
        uint32_t chunk = (uint32_t)__builtin_ctzll(~taken);

        /* acquire: pairs with close: the thread that had it is done with its rows */
        if (atomic_compare_exchange_weak_explicit(
                &chunks_taken, &taken, taken | UINT64_C(1) << chunk,
                memory_order_acquire, memory_order_relaxed)) {
            return chunk;
        }
    }
    return RMM_LEAK_CHUNKS;
}

static void give_chunks(uint64_t chunks)
{
    /* release: pairs with take_chunk() */
    atomic_fetch_and_explicit(&chunks_taken, ~chunks, memory_order_release);
}

static_assert(RMM_LEAK_CHUNKS == 64, "one bit each");

static void raise_rows_used(rmm_leaks_header_t *header, uint32_t used)
{
    uint32_t seen = atomic_load_explicit(&header->rows_used, memory_order_relaxed);

    while (seen < used && !atomic_compare_exchange_weak_explicit(
                              &header->rows_used, &seen, used, memory_order_relaxed,
                              memory_order_relaxed)) {
    }
}

/* Room for all rows of one more chunk, so that clearing a row never needs memory. */
RMM_COLD static bool add_chunk(rmm_leak_rows_t *rows, leaks_file_t *leaks)
{
    size_t capacity = rows->free_capacity + RMM_LEAK_CHUNK_ROWS;
    uint32_t chunk = take_chunk();
    uint32_t *resized;

    if (chunk == RMM_LEAK_CHUNKS) {
        return false;
    }
    resized = rmm__resize(
        rows->free, rows->free_capacity * sizeof(*resized),
        capacity * sizeof(*resized));
    if (resized == NULL) {
        give_chunks(UINT64_C(1) << chunk);
        return false;
    }
    rows->free = resized;
    rows->free_capacity = capacity;
    rows->chunks |= UINT64_C(1) << chunk;
    for (uint32_t i = RMM_LEAK_CHUNK_ROWS; i > 0; i--) { /* low rows first */
        rows->free[rows->free_count++] = chunk * RMM_LEAK_CHUNK_ROWS + i - 1;
    }
    raise_rows_used(&leaks->header, (chunk + 1) * RMM_LEAK_CHUNK_ROWS);
    return true;
}

void rmm__leak_rows_close(rmm_leak_rows_t *rows)
{
    RMM_ASSERT(rows->free_count == rows->free_capacity && "a row is still shown");
    give_chunks(rows->chunks);
    rmm__free(rows->free);
    *rows = (rmm_leak_rows_t){0};
}

/* --- rows --------------------------------------------------------------------------- */

/* release: a reader that sees the value sees the odd sequence before it */
#define SET(field, value) atomic_store_explicit(&(field), (value), memory_order_release)

static void begin_change(rmm_leaks_row_t *row)
{
    uint32_t sequence = atomic_load_explicit(&row->sequence, memory_order_relaxed);

    atomic_store_explicit(&row->sequence, sequence | 1, memory_order_relaxed);
}

static void end_change(rmm_leaks_row_t *row)
{
    uint32_t sequence = atomic_load_explicit(&row->sequence, memory_order_relaxed);

    SET(row->sequence, (sequence | 1) + 1);
}

static void fill_row(rmm_leaks_row_t *row, uint32_t resource_id, const rmm_leak_t *leak)
{
    uint32_t count = leak->frame_count < RMM_LEAKS_FRAMES ? (uint32_t)leak->frame_count
                                                          : RMM_LEAKS_FRAMES;

    begin_change(row);
    SET(row->resource_id, resource_id);
    SET(row->address, (uint64_t)(uintptr_t)leak->ptr);
    SET(row->bytes, (uint64_t)leak->bytes);
    /* some milliseconds are enough for an age, and a quarter of the cost */
    SET(row->allocated_ns, rmm__clock_ns(CLOCK_MONOTONIC_COARSE));
    SET(row->stream, (uint64_t)(uintptr_t)leak->stream);
    SET(row->thread, rmm__thread_id());
    SET(row->device, leak->device);
    SET(row->frame_count, count);
    for (uint32_t i = 0; i < count; i++) {
        SET(row->frames[i], (uint64_t)(uintptr_t)leak->frames[i]);
    }
    end_change(row);
}

uint32_t rmm__leak_row_show(rmm_leak_rows_t *rows, const rmm_leak_t *leak)
{
    leaks_file_t *leaks = file_now();
    uint32_t row;

    if (leaks == NULL) {
        return RMM_NO_LEAK_ROW;
    }
    if (rows->free_count == 0 && !add_chunk(rows, leaks)) {
        atomic_fetch_add_explicit(&leaks->header.unlisted, 1, memory_order_relaxed);
        return RMM_NO_LEAK_ROW;
    }
    row = rows->free[--rows->free_count];
    fill_row(&leaks->rows[row], rows->resource_id, leak);
    return row;
}

void rmm__leak_row_clear(rmm_leak_rows_t *rows, uint32_t row)
{
    leaks_file_t *leaks = file_now();

    if (leaks == NULL) {
        return;
    }
    if (row == RMM_NO_LEAK_ROW) {
        atomic_fetch_sub_explicit(&leaks->header.unlisted, 1, memory_order_relaxed);
        return;
    }
    begin_change(&leaks->rows[row]);
    SET(leaks->rows[row].resource_id, 0);
    end_change(&leaks->rows[row]);
    rows->free[rows->free_count++] = row;
}
