/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The chunks of an engine, by address, so that a search is one of O(log n). It has no lock:
 * the engine's protects it.
 *
 * Cost: an insertion moves the entries behind it. Drivers mostly give rising addresses, so
 * these are few. 65,536 entries are 1 MiB, which is moved in less time than cudaMalloc takes.
 */
#ifndef RMM_POOL_CHUNK_LIST_H
#define RMM_POOL_CHUNK_LIST_H

#include <stdbool.h>
#include <stdint.h>

typedef struct engine_chunk {
    uint64_t unit;
    uint32_t units; /* 0: it was taken out by a trim that still runs */
} engine_chunk_t;

typedef struct engine_chunks {
    engine_chunk_t *chunks; /* by unit */
    uint32_t count, capacity;
} engine_chunks_t;

/* The index of the first entry at this unit or behind it; the count if there is none. */
uint32_t rmm__chunk_list_place(const engine_chunks_t *list, uint64_t unit);

/* Is any of these units part of a chunk? unit + units must not wrap. */
bool rmm__chunk_list_overlaps(
    const engine_chunks_t *list, uint64_t unit, uint32_t units);

/* Room for one more entry. False: no host memory, and nothing changed. */
bool rmm__chunk_list_reserve(engine_chunks_t *list);
/* Needs the room. The chunk overlaps no other. */
void rmm__chunk_list_insert(engine_chunks_t *list, uint64_t unit, uint32_t units);

/* Remove the entries without units. */
void rmm__chunk_list_compact(engine_chunks_t *list);

#endif /* RMM_POOL_CHUNK_LIST_H */
