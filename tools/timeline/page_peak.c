/* SPDX-License-Identifier: Apache-2.0 */
/* Cost: one walk of the edges for each location, and one of the blocks for each peak. */
#include "timeline/page_peak.h"

#include <inttypes.h>
#include <stdlib.h>

/* --- lines ---------------------------------------------------------------------------- */

/* The most bytes that were live in each bin. */
static void fill_line(
    const history_t *history, const history_location_t *location,
    uint64_t line[PAGE_BINS])
{
    uint64_t bytes = 0;
    size_t filled = 0;
    for (size_t i = 0; i < history->edge_count; i++) {
        const history_edge_t *edge = &history->edges[i];
        const history_block_t *block = &history->blocks[edge->block];
        if (block->device != location->device) {
            continue;
        }
        size_t bin = history_bin(history, edge->when_ns, PAGE_BINS);
        for (; filled <= bin; filled++) {
            line[filled] = bytes;
        }
        bytes += edge->is_end != 0 ? (uint64_t)0 - block->bytes : block->bytes;
        line[filled - 1] = bytes > line[filled - 1] ? bytes : line[filled - 1];
    }
    for (; filled < PAGE_BINS; filled++) {
        line[filled] = bytes;
    }
}

/* --- holders -------------------------------------------------------------------------- */

/* Blocks of a peak that one resource gave, one kernel used first, and are of about one size. */
typedef struct holder {
    uint32_t resource, user;
    uint32_t size_class; /* the power of two below it */
    uint64_t bytes, count;
} holder_t;

static int compare_keys(const void *left, const void *right)
{
    const holder_t *a = left, *b = right;
    if (a->resource != b->resource) {
        return a->resource < b->resource ? -1 : 1;
    }
    if (a->user != b->user) {
        return a->user < b->user ? -1 : 1;
    }
    return a->size_class < b->size_class ? -1 : a->size_class > b->size_class;
}

static int compare_bytes(const void *left, const void *right)
{
    const holder_t *a = left, *b = right;
    if (a->bytes != b->bytes) {
        return a->bytes > b->bytes ? -1 : 1;
    }
    return compare_keys(left, right);
}

static uint32_t class_of(uint64_t bytes)
{
    uint32_t bits = 0;
    for (; bytes > 1; bytes /= 2) {
        bits++;
    }
    return bits;
}

static size_t take_live(
    const history_t *history, const history_location_t *location, holder_t *holders)
{
    size_t count = 0;
    for (size_t i = 0; i < history->block_count; i++) {
        const history_block_t *block = &history->blocks[i];
        if (block->device == location->device &&
            history_is_live(block, location->peak_ns)) {
            holders[count++] = (holder_t){
                .resource = block->resource,
                .user = block->first_user,
                .size_class = class_of(block->bytes),
                .bytes = block->bytes,
                .count = 1};
        }
    }
    return count;
}

/* Of a sorted list; returns how many are left. */
static size_t sum_up(holder_t *holders, size_t count)
{
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        if (used > 0 && compare_keys(&holders[used - 1], &holders[i]) == 0) {
            holders[used - 1].bytes += holders[i].bytes;
            holders[used - 1].count += holders[i].count;
        } else {
            holders[used++] = holders[i];
        }
    }
    return used;
}

static void
put_holders(const history_t *history, const holder_t *holders, size_t count, FILE *out)
{
    uint64_t bytes = 0, blocks = 0;
    size_t shown = count < PAGE_HOLDERS_MAX ? count : PAGE_HOLDERS_MAX;
    fputs(",\"holders\":[", out);
    for (size_t i = 0; i < shown; i++) {
        const holder_t *holder = &holders[i];
        fprintf(
            out, "%s[%" PRIu64 ",%" PRIu64 ",%" PRIu32 ",%" PRId64 ",%" PRIu32 "]",
            i > 0 ? "," : "", holder->bytes, holder->count, holder->resource,
            holder->user < history->names.count ? (int64_t)holder->user : -1,
            holder->size_class);
    }
    for (size_t i = shown; i < count; i++) {
        bytes += holders[i].bytes;
        blocks += holders[i].count;
    }
    fprintf(out, "],\"others\":[%" PRIu64 ",%" PRIu64 "]", bytes, blocks);
}

/* --- a location ----------------------------------------------------------------------- */

static void put_location(
    const history_t *history, const history_location_t *location, holder_t *holders,
    FILE *out)
{
    uint64_t line[PAGE_BINS] = {0};
    char name[32];
    size_t count = take_live(history, location, holders);
    qsort(holders, count, sizeof(*holders), compare_keys);
    count = sum_up(holders, count);
    qsort(holders, count, sizeof(*holders), compare_bytes);
    history_location_name(location->device, name);
    fprintf(
        out,
        "{\"name\":\"%s\",\"peak_bytes\":%" PRIu64 ",\"peak_count\":%" PRIu64
        ",\"peak_at\":%" PRIu64,
        name, location->peak_bytes, location->peak_count,
        location->peak_ns - history->begin_ns);
    put_holders(history, holders, count, out);
    fill_line(history, location, line);
    fputs(",\"line\":[", out);
    for (size_t i = 0; i < PAGE_BINS; i++) {
        fprintf(out, "%s%" PRIu64, i > 0 ? "," : "", line[i]);
    }
    fputs("]}", out);
}

bool page_put_peaks(const history_t *history, FILE *out)
{
    holder_t *holders = calloc(history->block_count + 1, sizeof(*holders));
    if (holders == NULL) {
        return false;
    }
    fputs(",\n\"locations\":[", out);
    for (uint32_t i = 0; i < history->location_count; i++) {
        fputs(i > 0 ? "," : "", out);
        put_location(history, &history->locations[i], holders, out);
    }
    fputs("]", out);
    free(holders);
    return true;
}
