/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handles. A CUDA handle is a pointer, and using it after its end is a crash or, once it
 * is recycled, silence. Here it is a number in the guise of a pointer, looked up in a
 * table whose entries stay for ever: a stale one is always recognised until it is recycled,
 * which happens as early as possible (last destroyed first), as a program that keeps
 * handles too long should find out.
 *
 * An entry's address gives its handle and back: chunk and place make the low half, the
 * table's tag the high half. Lookup needs no lock: chunks only appear.
 */
#include "driver/sim/internal.h"

#include <stdlib.h>

#define HANDLE_STEP 16u /* handles look aligned, and are never 0, 1 or 2 */
#define TAG_SHIFT 32

sim_entry_t *rmm__sim_entry(const sim_table_t *table, const void *handle)
{
    uintptr_t value = (uintptr_t)handle;
    uintptr_t low = value & UINT32_MAX;
    uintptr_t index = low / HANDLE_STEP - 1;
    sim_entry_t *chunk;

    if (value >> TAG_SHIFT != table->tag || low < HANDLE_STEP ||
        low % HANDLE_STEP != 0 || index >= SIM_CHUNKS * SIM_CHUNK_ENTRIES) {
        return NULL;
    }
    /* acquire: pairs with the release in grow() */
    chunk = atomic_load_explicit(
        &table->chunks[index / SIM_CHUNK_ENTRIES], memory_order_acquire);
    return chunk != NULL ? &chunk[index % SIM_CHUNK_ENTRIES] : NULL;
}

void *rmm__sim_entry_handle(const sim_table_t *table, const sim_entry_t *entry)
{
    return (
        void
            *)((table->tag << TAG_SHIFT) | ((uintptr_t)entry->index + 1) * HANDLE_STEP);
}

static bool grow(sim_table_t *table)
{
    uint32_t chunk_index = table->count / SIM_CHUNK_ENTRIES;
    sim_entry_t *chunk;

    if (chunk_index == SIM_CHUNKS) {
        return false;
    }
    chunk = calloc(SIM_CHUNK_ENTRIES, sizeof(*chunk));
    if (chunk == NULL) {
        return false;
    }
    for (uint32_t i = SIM_CHUNK_ENTRIES; i-- > 0;) {
        chunk[i].index = table->count + i;
        chunk[i].next_free = table->free_list;
        table->free_list = &chunk[i];
    }
    table->count += SIM_CHUNK_ENTRIES;
    /* release: pairs with rmm__sim_entry() */
    atomic_store_explicit(&table->chunks[chunk_index], chunk, memory_order_release);
    return true;
}

sim_entry_t *rmm__sim_entry_take_locked(sim_table_t *table, void *object)
{
    sim_entry_t *entry;

    RMM_ASSERT_LOCKED(&rmm__sim_lock);
    if (table->free_list == NULL && !grow(table)) {
        return NULL;
    }
    entry = table->free_list;
    table->free_list = entry->next_free;
    entry->object = object;
    entry->was_used = true;
    return entry;
}

void rmm__sim_entry_give_locked(sim_table_t *table, sim_entry_t *entry)
{
    RMM_ASSERT_LOCKED(&rmm__sim_lock);
    atomic_store_explicit(&entry->id, 0, memory_order_relaxed);
    atomic_store_explicit(&entry->capture_id, 0, memory_order_relaxed);
    entry->object = NULL;
    entry->next_free = table->free_list;
    table->free_list = entry;
}

/* "destroyed", or "unknown" if no object ever had this handle. */
static const char *fate_of(const sim_entry_t *entry)
{
    return entry != NULL && entry->was_used ? "destroyed" : "unknown";
}

void *rmm__sim_find_locked(
    const sim_table_t *table, const void *handle, const char *call, int *error)
{
    sim_entry_t *entry = rmm__sim_entry(table, handle);

    RMM_ASSERT_LOCKED(&rmm__sim_lock);
    if (entry == NULL || entry->object == NULL) {
        rmm__sim_violation_locked(
            "%s: %s %s %p", call, fate_of(entry), table->what, handle);
        *error = RMM_DRIVER_INVALID_HANDLE;
        return NULL;
    }
    return entry->object;
}
