/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hash table from 64-bit keys to 32-bit values: addresses, threads and streams of a
 * log to their indexes. Open addressing, at most half full.
 */
#ifndef RMM_TOOLS_REPLAY_MAP_H
#define RMM_TOOLS_REPLAY_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct map_entry {
    uint64_t key;
    uint32_t value;
    bool used;
} map_entry_t;

typedef struct map {
    map_entry_t *entries;
    size_t capacity; /* power of two, or 0 */
    size_t count;
} map_t;

void map_init(map_t *map);
void map_fini(map_t *map);

/* NULL where the key is not there; valid until the map changes. */
const uint32_t *map_find(const map_t *map, uint64_t key);

/* The key must not be there. False: no host memory, nothing changed. */
bool map_insert(map_t *map, uint64_t key, uint32_t value);

/* The key must be there. */
void map_remove(map_t *map, uint64_t key);

#endif /* RMM_TOOLS_REPLAY_MAP_H */
