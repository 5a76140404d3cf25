/* SPDX-License-Identifier: Apache-2.0 */
/* Cost: 64 bytes of host memory for a block and 32 for its edges, 24 for a call. */
#include "timeline/history.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "segment/clean_text.h"

#define FIRST_CAPACITY 1024

void history_init(history_t *history)
{
    memset(history, 0, sizeof(*history));
}

static void free_texts(history_texts_t *texts)
{
    for (size_t i = 0; i < texts->count; i++) {
        free(texts->items[i]);
    }
    free(texts->items);
}

void history_fini(history_t *history)
{
    free(history->blocks);
    free(history->calls);
    free(history->edges);
    free_texts(&history->names);
    free_texts(&history->streams);
    free_texts(&history->resources);
    history_init(history);
}

/* --- adding --------------------------------------------------------------------------- */

/* Room for one more element; NULL: no memory, the old array stays. */
static void *grown(void *array, size_t count, size_t *capacity, size_t element_bytes)
{
    if (count < *capacity) {
        return array;
    }
    size_t wanted = *capacity == 0 ? FIRST_CAPACITY : *capacity * 2;
    void *larger = reallocarray(array, wanted, element_bytes);
    if (larger != NULL) {
        *capacity = wanted;
    }
    return larger;
}

bool history_add_block(history_t *history, const history_block_t *block)
{
    history_block_t *blocks = grown(
        history->blocks, history->block_count, &history->block_capacity,
        sizeof(*blocks));
    if (blocks == NULL) {
        return false;
    }
    history->blocks = blocks;
    blocks[history->block_count++] = *block;
    return true;
}

bool history_add_call(history_t *history, const history_call_t *call)
{
    history_call_t *calls = grown(
        history->calls, history->call_count, &history->call_capacity, sizeof(*calls));
    if (calls == NULL) {
        return false;
    }
    history->calls = calls;
    calls[history->call_count++] = *call;
    return true;
}

bool history_add_text(history_texts_t *texts, const char *text)
{
    char **items =
        grown(texts->items, texts->count, &texts->capacity, sizeof(texts->items[0]));
    if (items == NULL) {
        return false;
    }
    texts->items = items;
    items[texts->count] = strdup(text);
    if (items[texts->count] == NULL) {
        return false;
    }
    rmm__text_clean(items[texts->count], strlen(text) + 1);
    texts->count++;
    return true;
}

/* --- finishing ------------------------------------------------------------------------ */

static void find_bounds(history_t *history)
{
    uint64_t begin = UINT64_MAX, end = 0;
    for (size_t i = 0; i < history->block_count; i++) {
        const history_block_t *block = &history->blocks[i];
        uint64_t last = block->end_ns == HISTORY_LIVE ? block->begin_ns : block->end_ns;
        begin = block->begin_ns < begin ? block->begin_ns : begin;
        end = last > end ? last : end;
    }
    for (size_t i = 0; i < history->call_count; i++) {
        uint64_t when = history->calls[i].when_ns;
        begin = when < begin ? when : begin;
        end = when > end ? when : end;
    }
    history->begin_ns = begin == UINT64_MAX ? 0 : begin;
    history->end_ns = end;
}

static void end_what_is_left(history_t *history)
{
    for (size_t i = 0; i < history->block_count; i++) {
        history_block_t *block = &history->blocks[i];
        block->is_left = block->end_ns == HISTORY_LIVE;
        if (block->is_left) {
            block->end_ns = history->end_ns;
        }
    }
}

/* Of edges at one moment, beginnings come before ends. */
static int compare_edges(const void *left, const void *right)
{
    const history_edge_t *a = left, *b = right;
    if (a->when_ns != b->when_ns) {
        return a->when_ns < b->when_ns ? -1 : 1;
    }
    if (a->is_end != b->is_end) {
        return a->is_end < b->is_end ? -1 : 1;
    }
    return a->block < b->block ? -1 : a->block > b->block;
}

/* Blocks that are still live at the end have one edge only. */
static bool sort_edges(history_t *history)
{
    history->edges = calloc(2 * history->block_count + 1, sizeof(history->edges[0]));
    if (history->edges == NULL) {
        return false;
    }
    for (size_t i = 0; i < history->block_count; i++) {
        const history_block_t *block = &history->blocks[i];
        history->edges[history->edge_count++] =
            (history_edge_t){block->begin_ns, (uint32_t)i, 0};
        if (!block->is_left) {
            history->edges[history->edge_count++] =
                (history_edge_t){block->end_ns, (uint32_t)i, 1};
        }
    }
    qsort(
        history->edges, history->edge_count, sizeof(history->edges[0]), compare_edges);
    return true;
}

const history_location_t *history_location_of(const history_t *history, int32_t device)
{
    for (uint32_t i = 0; i < history->location_count; i++) {
        if (history->locations[i].device == device) {
            return &history->locations[i];
        }
    }
    return NULL;
}

static void find_locations(history_t *history)
{
    for (size_t i = 0; i < history->block_count; i++) {
        int32_t device = history->blocks[i].device;
        if (history->location_count < HISTORY_LOCATIONS_MAX &&
            history_location_of(history, device) == NULL) {
            history->locations[history->location_count++] =
                (history_location_t){.device = device};
        }
    }
}

static void find_peak(const history_t *history, history_location_t *location)
{
    uint64_t bytes = 0, count = 0;
    for (size_t i = 0; i < history->edge_count; i++) {
        const history_edge_t *edge = &history->edges[i];
        const history_block_t *block = &history->blocks[edge->block];
        if (block->device != location->device) {
            continue;
        }
        bytes += edge->is_end != 0 ? (uint64_t)0 - block->bytes : block->bytes;
        count += edge->is_end != 0 ? UINT64_MAX : 1;
        if (bytes > location->peak_bytes) {
            location->peak_bytes = bytes;
            location->peak_count = count;
            location->peak_ns = edge->when_ns;
        }
    }
}

bool history_finish(history_t *history)
{
    rmm__text_clean(history->title, sizeof(history->title));
    find_bounds(history);
    end_what_is_left(history);
    find_locations(history);
    if (!sort_edges(history)) {
        return false;
    }
    for (uint32_t i = 0; i < history->location_count; i++) {
        find_peak(history, &history->locations[i]);
    }
    return true;
}

size_t history_bin(const history_t *history, uint64_t when_ns, size_t bins)
{
    double span = (double)(history->end_ns - history->begin_ns) + 1.0;
    double share = (double)(when_ns - history->begin_ns) / span;
    size_t bin = (size_t)(share * (double)bins);
    return bin < bins ? bin : bins - 1;
}

void history_location_name(int32_t device, char name[32])
{
    if (device == HISTORY_HOST) {
        snprintf(name, 32, "host");
    } else {
        snprintf(name, 32, "device %d", device);
    }
}
