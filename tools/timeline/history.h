/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The history of a program's memory: the lifetime of each block, and the launches and copies.
 * Filled from a side file of the diagnosis or from an allocation log, finished once, and
 * then shown by trace.h and page.h. Knows neither GPU nor file.
 *
 * Threads: one at a time. A function that runs out of memory returns false; history_fini()
 * frees everything.
 */
#ifndef RMM_TOOLS_TIMELINE_HISTORY_H
#define RMM_TOOLS_TIMELINE_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HISTORY_NONE UINT32_MAX /* of a name: there is none */
#define HISTORY_LIVE UINT64_MAX /* of an end: the block was not freed */
#define HISTORY_HOST (-1)       /* of a device: host memory */
#define HISTORY_TEXT_BYTES 512

typedef struct history_block {
    uint64_t address, bytes;
    uint64_t begin_ns, end_ns; /* end_ns may be HISTORY_LIVE until it is finished */
    uint32_t first_user, last_user; /* names, or HISTORY_NONE */
    uint32_t resource;              /* index into resources */
    uint32_t stream;                /* index into streams */
    int32_t device;
    bool is_left; /* it was not freed */
} history_block_t;

typedef struct history_call {
    uint64_t when_ns;
    uint64_t bytes; /* 0: a launch */
    uint32_t name;  /* or HISTORY_NONE */
    uint32_t stream;
} history_call_t;

/* The begin or the end of a block. */
typedef struct history_edge {
    uint64_t when_ns;
    uint32_t block;
    uint32_t is_end;
} history_edge_t;

/* A device, or host memory. */
typedef struct history_location {
    int32_t device;
    uint64_t peak_bytes, peak_count, peak_ns;
} history_location_t;

/* Texts in the order in which they were added. */
typedef struct history_texts {
    char **items;
    size_t count, capacity;
} history_texts_t;

#define HISTORY_LOCATIONS_MAX 32
#define HISTORY_STREAMS_MAX 1024
#define HISTORY_RESOURCES_MAX 1024

typedef struct history {
    char title[HISTORY_TEXT_BYTES]; /* program or log; clean once it is finished */
    char note[HISTORY_TEXT_BYTES];  /* what is missing; empty: nothing */
    uint64_t pid;
    history_block_t *blocks;
    size_t block_count, block_capacity;
    history_call_t *calls;
    size_t call_count, call_capacity;
    history_texts_t names, streams, resources;

    /* once it is finished */
    uint64_t begin_ns, end_ns;
    history_edge_t *edges; /* two for each block; in order of time */
    size_t edge_count;
    history_location_t locations[HISTORY_LOCATIONS_MAX];
    uint32_t location_count; /* further ones are not among them */
} history_t;

void history_init(history_t *history);
void history_fini(history_t *history);

/* begin_ns <= end_ns; indexes are of what was added. */
bool history_add_block(history_t *history, const history_block_t *block);
bool history_add_call(history_t *history, const history_call_t *call);

/* The text gets the index texts->count. Control characters and what is not UTF-8 become '?'. */
bool history_add_text(history_texts_t *texts, const char *text);

/* Sorts, and finds peaks. Nothing is added afterwards. */
bool history_finish(history_t *history);

/* NULL: that location is not followed. */
const history_location_t *history_location_of(const history_t *history, int32_t device);

/* Live at that moment. A block that ends at it counts, as it does in the peak. */
static inline bool history_is_live(const history_block_t *block, uint64_t when_ns)
{
    return block->begin_ns <= when_ns && block->end_ns >= when_ns;
}

/* Which of so many equal parts of the time that is in. */
size_t history_bin(const history_t *history, uint64_t when_ns, size_t bins);

/* "device 0", "host". */
void history_location_name(int32_t device, char name[32]);

/* The text, or `none` without one. */
static inline const char *
history_text(const history_texts_t *texts, uint32_t index, const char *none)
{
    return index < texts->count ? texts->items[index] : none;
}

#endif /* RMM_TOOLS_TIMELINE_HISTORY_H */
