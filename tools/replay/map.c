/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linear probing; a removal moves the followers back (Knuth 6.4, algorithm R), so that
 * a log with millions of frees leaves no tombstones.
 */
#include "replay/map.h"

#include <assert.h>
#include <stdlib.h>

#define FIRST_CAPACITY 64

/* The multiplier of splitmix64's last step; spreads addresses that end in zeros. */
static size_t home(const map_t *map, uint64_t key)
{
    key = (key ^ (key >> 31)) * UINT64_C(0x94d049bb133111eb);
    return (size_t)(key ^ (key >> 29)) & (map->capacity - 1);
}

/* Where the key is, or the free place where it belongs. */
static size_t find_place(const map_t *map, uint64_t key)
{
    size_t place = home(map, key);
    while (map->entries[place].used && map->entries[place].key != key) {
        place = (place + 1) & (map->capacity - 1);
    }
    return place;
}

void map_init(map_t *map)
{
    *map = (map_t){0};
}

void map_fini(map_t *map)
{
    free(map->entries);
    map_init(map);
}

const uint32_t *map_find(const map_t *map, uint64_t key)
{
    if (map->count == 0) {
        return NULL;
    }
    const map_entry_t *entry = &map->entries[find_place(map, key)];
    return entry->used ? &entry->value : NULL;
}

static bool grow(map_t *map)
{
    map_t larger = {
        .capacity = map->capacity == 0 ? FIRST_CAPACITY : map->capacity * 2,
        .count = map->count,
    };
    larger.entries = calloc(larger.capacity, sizeof *larger.entries);
    if (larger.entries == NULL) {
        return false;
    }
    for (size_t i = 0; i < map->capacity; i++) {
        if (map->entries[i].used) {
            larger.entries[find_place(&larger, map->entries[i].key)] = map->entries[i];
        }
    }
    free(map->entries);
    *map = larger;
    return true;
}

bool map_insert(map_t *map, uint64_t key, uint32_t value)
{
    if (map->count * 2 >= map->capacity && !grow(map)) {
        return false;
    }
    map_entry_t *entry = &map->entries[find_place(map, key)];
    assert(!entry->used && "the key is not there yet");
    *entry = (map_entry_t){key, value, true};
    map->count++;
    return true;
}

void map_remove(map_t *map, uint64_t key)
{
    size_t mask = map->capacity - 1;
    size_t hole = find_place(map, key);
    assert(map->entries[hole].used && "the key is there");
    for (size_t next = (hole + 1) & mask; map->entries[next].used;
         next = (next + 1) & mask) {
        size_t wanted = home(map, map->entries[next].key);
        /* It may move back if its home does not lie behind the hole. */
        if (((next - wanted) & mask) >= ((next - hole) & mask)) {
            map->entries[hole] = map->entries[next];
            hole = next;
        }
    }
    map->entries[hole].used = false;
    map->count--;
}
