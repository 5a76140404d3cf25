/* SPDX-License-Identifier: Apache-2.0 */
/* The chunks of an engine, by address. See chunk_list.h. */
#include "pool/chunk_list.h"

#include <string.h>

#include "core/host_memory.h"

#define FIRST_CAPACITY 16

uint32_t rmm__chunk_list_place(const engine_chunks_t *list, uint64_t unit)
{
    uint32_t low = 0, high = list->count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (list->chunks[middle].unit < unit) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* Chunks do not overlap each other. So of those that begin before the end of these units,
 * the last one reaches furthest. */
bool rmm__chunk_list_overlaps(
    const engine_chunks_t *list, uint64_t unit, uint32_t units)
{
    uint32_t place = rmm__chunk_list_place(list, unit + units);
    const engine_chunk_t *before;

    while (place > 0 && list->chunks[place - 1].units == 0) {
        place--;
    }
    before = place > 0 ? &list->chunks[place - 1] : NULL;
    return before != NULL && before->unit + before->units > unit;
}

bool rmm__chunk_list_reserve(engine_chunks_t *list)
{
    uint32_t wanted = list->capacity != 0 ? 2 * list->capacity : FIRST_CAPACITY;
    engine_chunk_t *grown;

    if (list->count < list->capacity) {
        return true;
    }
    grown = rmm__resize(
        list->chunks, list->capacity * sizeof(*grown), wanted * sizeof(*grown));
    if (grown == NULL) {
        return false;
    }
    list->chunks = grown;
    list->capacity = wanted;
    return true;
}

void rmm__chunk_list_insert(engine_chunks_t *list, uint64_t unit, uint32_t units)
{
    uint32_t place = rmm__chunk_list_place(list, unit);
    engine_chunk_t *entry = list->chunks + place;

    memmove(entry + 1, entry, (list->count - place) * sizeof(*entry));
    *entry = (engine_chunk_t){unit, units};
    list->count++;
}

void rmm__chunk_list_compact(engine_chunks_t *list)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < list->count; i++) {
        if (list->chunks[i].units != 0) {
            list->chunks[kept++] = list->chunks[i];
        }
    }
    list->count = kept;
}
