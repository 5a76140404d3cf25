/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses in use are few and far apart: the map shows the stretches of them one above the
 * other, without what lies between. A block's place in the map is the bytes of the stretches
 * below it and its offset in its own.
 *
 * The blocks that are not drawn one by one fill a grid of cells: a cell is the share of its bytes
 * and time that was in use by them.
 */
#include "timeline/page_map.h"

#include <inttypes.h>
#include <stdlib.h>

#define FIRST_GAP (UINT64_C(2) << 20) /* what a driver maps at least */

typedef struct region {
    uint64_t begin, end;
    uint64_t below; /* bytes of the regions before it */
} region_t;

typedef struct map {
    const history_t *history;
    region_t *regions;
    size_t region_count;
    uint64_t bytes; /* of all of them */
    double span_ns;
    double least;    /* weight of the smallest block that is drawn by itself */
    size_t room;     /* for blocks of just that weight */
    size_t together; /* blocks that are not */
} page_map_t;

/* --- regions -------------------------------------------------------------------------- */

static uint64_t end_of(const history_block_t *block)
{
    uint64_t end = block->address + block->bytes;
    return end >= block->address ? end : UINT64_MAX;
}

static int compare_regions(const void *left, const void *right)
{
    const region_t *a = left, *b = right;
    return a->begin < b->begin ? -1 : a->begin > b->begin;
}

/* Of a sorted list: what lies less than a gap apart becomes one. */
static size_t join(region_t *regions, size_t count, uint64_t gap)
{
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        region_t *last = used > 0 ? &regions[used - 1] : NULL;
        if (last != NULL &&
            (regions[i].begin <= last->end || regions[i].begin - last->end < gap)) {
            last->end = regions[i].end > last->end ? regions[i].end : last->end;
        } else {
            regions[used++] = regions[i];
        }
    }
    return used;
}

/* False: no memory. */
static bool find_regions(page_map_t *map)
{
    const history_t *history = map->history;
    map->regions = calloc(history->block_count + 1, sizeof(region_t));
    if (map->regions == NULL) {
        return false;
    }
    for (size_t i = 0; i < history->block_count; i++) {
        map->regions[i] =
            (region_t){history->blocks[i].address, end_of(&history->blocks[i]), 0};
    }
    qsort(map->regions, history->block_count, sizeof(map->regions[0]), compare_regions);
    uint64_t gap = FIRST_GAP;
    map->region_count = join(map->regions, history->block_count, gap);
    while (map->region_count > PAGE_REGIONS_MAX) {
        gap *= 2;
        map->region_count = join(map->regions, map->region_count, gap);
    }
    for (size_t i = 0; i < map->region_count; i++) {
        map->regions[i].below = map->bytes;
        map->bytes += map->regions[i].end - map->regions[i].begin;
    }
    return true;
}

static uint64_t place_of(const page_map_t *map, uint64_t address)
{
    size_t low = 0, high = map->region_count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (map->regions[middle].begin <= address) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return map->regions[low].below + (address - map->regions[low].begin);
}

static void put_regions(const page_map_t *map, FILE *out)
{
    fputs(",\n\"regions\":[", out);
    for (size_t i = 0; i < map->region_count; i++) {
        const region_t *region = &map->regions[i];
        fprintf(
            out, "%s[\"0x%" PRIx64 "\",%" PRIu64 "]", i > 0 ? "," : "", region->begin,
            region->end - region->begin);
    }
    fputs("]", out);
}

/* --- which blocks --------------------------------------------------------------------- */

static double weight_of(const history_block_t *block)
{
    return (double)block->bytes * ((double)(block->end_ns - block->begin_ns) + 1.0);
}

static int compare_weights(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return a > b ? -1 : a < b;
}

/* False: no memory. */
static bool choose(page_map_t *map)
{
    size_t count = map->history->block_count;
    if (count <= PAGE_BLOCKS_MAX) {
        return true;
    }
    double *weights = calloc(count, sizeof(*weights));
    if (weights == NULL) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        weights[i] = weight_of(&map->history->blocks[i]);
    }
    qsort(weights, count, sizeof(*weights), compare_weights);
    map->least = weights[PAGE_BLOCKS_MAX - 1];
    size_t above = 0;
    while (weights[above] > map->least) {
        above++;
    }
    map->room = PAGE_BLOCKS_MAX - above;
    map->together = count - PAGE_BLOCKS_MAX;
    free(weights);
    return true;
}

static bool is_drawn_alone(page_map_t *map, const history_block_t *block)
{
    double weight = weight_of(block);
    if (map->together == 0 || weight > map->least) {
        return true;
    }
    if (weight < map->least || map->room == 0) {
        return false;
    }
    map->room--;
    return true;
}

/* --- the grid ------------------------------------------------------------------------- */

/* The bytes that begin or end to be in use in a column; `whole` counts from there on. */
typedef struct cell {
    double part, whole;
} cell_t;

/* Columns from..to, of which the first and the last may be covered in part. */
static void cover(cell_t *row, double from, double to, double share)
{
    size_t first = (size_t)from, last = (size_t)to;
    last = last < PAGE_GRID_COLUMNS ? last : PAGE_GRID_COLUMNS - 1;
    if (first >= last) {
        row[last].part += share * (to - from);
        return;
    }
    row[first].part += share * ((double)first + 1.0 - from);
    row[first + 1].whole += share;
    row[last].whole -= share;
    row[last].part += share * (to - (double)last);
}

static void shade(const page_map_t *map, cell_t *cells, const history_block_t *block)
{
    if (map->bytes == 0) {
        return; /* no block has any: the rows have no height */
    }
    uint64_t begin_ns = map->history->begin_ns;
    double columns = PAGE_GRID_COLUMNS / map->span_ns;
    double from = (double)(block->begin_ns - begin_ns) * columns;
    double to = (double)(block->end_ns - begin_ns + 1) * columns;
    double row_bytes = (double)map->bytes / PAGE_GRID_ROWS;
    double low = (double)place_of(map, block->address) / row_bytes;
    double high = low + (double)block->bytes / row_bytes;
    high = high < PAGE_GRID_ROWS ? high : PAGE_GRID_ROWS;
    for (size_t row = (size_t)low; row < PAGE_GRID_ROWS && (double)row < high; row++) {
        double bottom = low > (double)row ? low : (double)row;
        double top = high < (double)row + 1.0 ? high : (double)row + 1.0;
        cover(&cells[row * PAGE_GRID_COLUMNS], from, to, top - bottom);
    }
}

/* Two digits a cell: 00 is free, ff in use all the time. */
static void put_cells(const cell_t *cells, FILE *out)
{
    for (size_t row = 0; row < PAGE_GRID_ROWS; row++) {
        double whole = 0.0;
        for (size_t column = 0; column < PAGE_GRID_COLUMNS; column++) {
            const cell_t *cell = &cells[row * PAGE_GRID_COLUMNS + column];
            whole += cell->whole;
            double share = whole + cell->part;
            share = share < 1.0 ? share : 1.0;
            fprintf(out, "%02x", share > 1e-9 ? 1u + (unsigned)(share * 254.0) : 0u);
        }
    }
}

/* --- blocks --------------------------------------------------------------------------- */

static int64_t name_or_none(const history_t *history, uint32_t name)
{
    return name < history->names.count ? (int64_t)name : -1;
}

static void put_block(
    const page_map_t *map, const history_block_t *block, const char *separator,
    FILE *out)
{
    const history_t *history = map->history;
    fprintf(
        out,
        "%s[%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu32 ",%" PRIu32
        ",%" PRId64 ",%" PRId64 ",%d]",
        separator, block->begin_ns - history->begin_ns,
        block->end_ns - history->begin_ns, place_of(map, block->address), block->bytes,
        block->resource, block->stream, name_or_none(history, block->first_user),
        name_or_none(history, block->last_user), block->is_left ? 1 : 0);
}

/* Those that are drawn one by one; the others go into the grid. */
static void put_blocks(page_map_t *map, cell_t *cells, FILE *out)
{
    const char *separator = "";
    fputs(",\n\"blocks\":[", out);
    for (size_t i = 0; i < map->history->block_count; i++) {
        const history_block_t *block = &map->history->blocks[i];
        if (is_drawn_alone(map, block)) {
            put_block(map, block, separator, out);
            separator = ",\n";
        } else {
            shade(map, cells, block);
        }
    }
    fprintf(
        out, "],\n\"together\":%zu,\"columns\":%d,\"rows\":%d,\"grid\":\"",
        map->together, PAGE_GRID_COLUMNS, PAGE_GRID_ROWS);
    if (map->together > 0) {
        put_cells(cells, out);
    }
    fputs("\"", out);
}

bool page_put_map(const history_t *history, FILE *out)
{
    page_map_t map = {
        .history = history,
        .span_ns = (double)(history->end_ns - history->begin_ns) + 1.0};
    cell_t *cells = calloc(PAGE_GRID_ROWS * PAGE_GRID_COLUMNS, sizeof(*cells));
    bool good = cells != NULL && find_regions(&map) && choose(&map);
    if (good) {
        put_regions(&map, out);
        put_blocks(&map, cells, out);
    }
    free(map.regions);
    free(cells);
    return good;
}
