/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linear probing; erase shifts the entries behind it back, so that there are no
 * tombstones (Knuth, The Art of Computer Programming, vol. 3, 6.4, algorithm R).
 */
#include "core/pointer_map.h"

#include <assert.h>
#include <stdint.h>

#include "core/hash.h"
#include "core/host_memory.h"

#define MIN_CAPACITY 64

static size_t home_of(const rmm_pointer_map_t *map, const void *ptr)
{
    return (size_t)(rmm__hash((uintptr_t)ptr) >> 32) & (map->capacity - 1);
}

static bool is_empty(const rmm_pointer_map_entry_t *entry)
{
    return entry->ptr == NULL && entry->bytes == 0 && entry->owner == NULL;
}

/* Index of ptr's entry, or of the empty entry where it would go. */
static size_t bucket_of(const rmm_pointer_map_t *map, const void *ptr)
{
    size_t index = home_of(map, ptr);

    while (map->entries[index].ptr != ptr && !is_empty(&map->entries[index])) {
        index = (index + 1) & (map->capacity - 1);
    }
    return index;
}

void rmm__pointer_map_fini(rmm_pointer_map_t *map)
{
    rmm__free(map->entries);
    *map = (rmm_pointer_map_t){0};
}

static bool grow(rmm_pointer_map_t *map)
{
    rmm_pointer_map_t old = *map;
    size_t capacity = old.capacity != 0 ? 2 * old.capacity : MIN_CAPACITY;
    rmm_pointer_map_entry_t *entries = rmm__calloc(capacity, sizeof(*entries));

    if (entries == NULL) {
        return false;
    }
    map->entries = entries;
    map->capacity = capacity;
    for (size_t i = 0; i < old.capacity; i++) {
        if (!is_empty(&old.entries[i])) {
            map->entries[bucket_of(map, old.entries[i].ptr)] = old.entries[i];
        }
    }
    rmm__free(old.entries);
    return true;
}

bool rmm__pointer_map_reserve(rmm_pointer_map_t *map)
{
    if (2 * (map->count + map->promised + 1) > map->capacity && !grow(map)) {
        return false;
    }
    map->promised++;
    return true;
}

void rmm__pointer_map_unreserve(rmm_pointer_map_t *map)
{
    assert(map->promised > 0);
    map->promised--;
}

void rmm__pointer_map_insert(rmm_pointer_map_t *map, void *ptr, size_t bytes)
{
    rmm__pointer_map_insert_entry(map, &(rmm_pointer_map_entry_t){ptr, bytes, NULL});
}

void rmm__pointer_map_insert_entry(
    rmm_pointer_map_t *map, const rmm_pointer_map_entry_t *entry)
{
    size_t index = bucket_of(map, entry->ptr);

    assert(map->promised > 0 && is_empty(&map->entries[index]));
    map->promised--;
    map->entries[index] = *entry;
    map->count++;
}

bool rmm__pointer_map_replace_entry(
    rmm_pointer_map_t *map, const rmm_pointer_map_entry_t *entry,
    rmm_pointer_map_entry_t *stale_out)
{
    bool is_there = rmm__pointer_map_find_entry(map, entry->ptr, stale_out);

    if (is_there) {
        rmm__pointer_map_erase(map, entry->ptr);
    }
    rmm__pointer_map_insert_entry(map, entry);
    return is_there;
}

bool rmm__pointer_map_find(const rmm_pointer_map_t *map, const void *ptr, size_t *bytes)
{
    rmm_pointer_map_entry_t entry;
    bool found = rmm__pointer_map_find_entry(map, ptr, &entry);

    if (found) {
        *bytes = entry.bytes;
    }
    return found;
}

bool rmm__pointer_map_find_entry(
    const rmm_pointer_map_t *map, const void *ptr, rmm_pointer_map_entry_t *entry)
{
    size_t index;

    if (map->count == 0) {
        return false;
    }
    index = bucket_of(map, ptr);
    if (is_empty(&map->entries[index])) {
        return false;
    }
    *entry = map->entries[index];
    return true;
}

/* Entries behind the hole that probed past it move up. */
static void erase_at(rmm_pointer_map_t *map, size_t hole)
{
    size_t mask = map->capacity - 1;

    for (size_t i = (hole + 1) & mask; !is_empty(&map->entries[i]);
         i = (i + 1) & mask) {
        size_t home = home_of(map, map->entries[i].ptr);

        if (((i - home) & mask) >=
            ((i - hole) & mask)) { /* its probe passes the hole */
            map->entries[hole] = map->entries[i];
            hole = i;
        }
    }
    map->entries[hole] = (rmm_pointer_map_entry_t){0};
    map->count--;
}

bool rmm__pointer_map_erase(rmm_pointer_map_t *map, const void *ptr)
{
    size_t bytes;

    if (!rmm__pointer_map_find(map, ptr, &bytes)) {
        return false;
    }
    erase_at(map, bucket_of(map, ptr));
    return true;
}

const rmm_pointer_map_entry_t *rmm__pointer_map_take(
    rmm_pointer_map_t *map, const void *ptr, size_t bytes,
    rmm_pointer_map_entry_t *entry)
{
    size_t index;

    if (map->count == 0) {
        return NULL;
    }
    index = bucket_of(map, ptr);
    if (is_empty(&map->entries[index])) {
        return NULL;
    }
    *entry = map->entries[index];
    if (entry->bytes == bytes) {
        erase_at(map, index);
    }
    return entry;
}

/* An erased entry leaves its place to one behind it, never to one before: there is none. */
bool rmm__pointer_map_any(
    const rmm_pointer_map_t *map, size_t *from, rmm_pointer_map_entry_t *out)
{
    for (size_t i = *from; map->count != 0 && i < map->capacity; i++) {
        if (!is_empty(&map->entries[i])) {
            *out = map->entries[i];
            *from = i;
            return true;
        }
    }
    return false;
}
