/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hash table of whatever is looked up by an address or a number and need not be as fast as
 * the pools: open addressing, at most half full. With it resources whose allocations are slow
 * anyway (cudaMalloc, pinned memory) refuse a wrong free, and their accounting stays exact.
 *
 * The diagnosis and the tools compile it too, with core/plain_memory.c.
 *
 * Locking: none; the owner serialises.
 */
#ifndef RMM_CORE_POINTER_MAP_H
#define RMM_CORE_POINTER_MAP_H

#include <stdbool.h>
#include <stddef.h>

typedef struct rmm_pointer_map_entry {
    void *
        ptr; /* an entry of which all is zero is empty: key NULL needs one of the next two */
    size_t bytes;
    void *owner; /* as inserted */
} rmm_pointer_map_entry_t;

typedef struct rmm_pointer_map {
    rmm_pointer_map_entry_t *entries;
    size_t capacity; /* power of two, or 0 */
    size_t count;
    size_t promised; /* room requested by reserve and not yet used */
} rmm_pointer_map_t;

void rmm__pointer_map_fini(rmm_pointer_map_t *map);

/* Make room for one more insert; false without host memory. Each success is followed by
 * one insert or one unreserve. */
bool rmm__pointer_map_reserve(rmm_pointer_map_t *map);
void rmm__pointer_map_unreserve(rmm_pointer_map_t *map);

/* ptr is not in the map; room was reserved. */
void rmm__pointer_map_insert(rmm_pointer_map_t *map, void *ptr, size_t bytes);
/* The same, with whom the block came from. */
void rmm__pointer_map_insert_entry(
    rmm_pointer_map_t *map, const rmm_pointer_map_entry_t *entry);
/* The same, but if ptr is in the map, its entry is replaced: true, and *stale_out is it. */
bool rmm__pointer_map_replace_entry(
    rmm_pointer_map_t *map, const rmm_pointer_map_entry_t *entry,
    rmm_pointer_map_entry_t *stale_out);

/* False if absent. */
bool rmm__pointer_map_find(
    const rmm_pointer_map_t *map, const void *ptr, size_t *bytes);
bool rmm__pointer_map_find_entry(
    const rmm_pointer_map_t *map, const void *ptr, rmm_pointer_map_entry_t *entry);
bool rmm__pointer_map_erase(rmm_pointer_map_t *map, const void *ptr);

/* Find and, if it has these bytes, erase: NULL if ptr is not in the map, else where its
 * entry is copied to. */
const rmm_pointer_map_entry_t *rmm__pointer_map_take(
    rmm_pointer_map_t *map, const void *ptr, size_t bytes,
    rmm_pointer_map_entry_t *entry);

/* Any one entry, for emptying a map: erase it, and call again. *from begins at 0 and is where
 * to go on, so all entries are found in one pass if none is inserted meanwhile. False if there
 * is none from there on. */
bool rmm__pointer_map_any(
    const rmm_pointer_map_t *map, size_t *from, rmm_pointer_map_entry_t *out);

#endif /* RMM_CORE_POINTER_MAP_H */
