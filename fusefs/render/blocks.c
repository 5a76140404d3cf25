/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files that show a pool's blocks: `map`, `map.svg`, `streams`, `size_histogram`, made of the
 * report that the program wrote (reports.h). Nothing in a report is believed: rows are sorted
 * here, may overlap, and are as many as the reader takes.
 */
#include "render/blocks.h"

#include <inttypes.h>
#include <stdlib.h>

#include "page/map_svg.h"

#define SVG_LINES_MAX 64u

/* --- reading -------------------------------------------------------------------------- */

bool block_rows_read(
    const rmm_blocks_file_t *file, const rmm_blocks_resource_t *resource,
    block_rows_t *out, text_t *text)
{
    *out = (block_rows_t){
        .taken_ns = file->header.taken_ns, .is_there = true, .resource = *resource};
    if (resource->row_count == 0) {
        return true;
    }
    out->scratch = out->resource.row_count * sizeof(out->rows[0]);
    if (!text_take_scratch(text, out->scratch)) {
        return false;
    }
    out->rows = malloc(out->scratch);
    if (out->rows == NULL) {
        text_give_scratch(text, out->scratch);
        text->failed = TEXT_NO_MEMORY;
        return false;
    }
    out->count = rmm__block_report_read(file, &out->resource, out->rows);
    rmm__block_report_sort(out->rows, out->count);
    return true;
}

void block_rows_free(block_rows_t *rows, text_t *text)
{
    if (rows->rows != NULL) {
        text_give_scratch(text, rows->scratch);
        free(rows->rows);
    }
}

/* --- printing ------------------------------------------------------------------------- */

void render_taken(uint64_t taken_ns, text_t *text)
{
    uint64_t now_ns = rmm__clock_ns(CLOCK_MONOTONIC);
    text_printf(
        text, "# taken_ns_ago %" PRIu64 "\n",
        now_ns > taken_ns ? now_ns - taken_ns : 0);
}

/* Lines about what is not in the table. */
static void render_block_remarks(const block_rows_t *rows, text_t *text)
{
    const rmm_blocks_resource_t *resource = &rows->resource;
    if (!rows->is_there) {
        text_puts(text, "# not in the report: nothing was allocated from it yet\n");
        return;
    }
    if (resource->left_out_count > 0) {
        text_printf(
            text, "# %" PRIu64 " more blocks of %" PRIu64 " bytes found no room\n",
            resource->left_out_count, resource->left_out_bytes);
    }
    if (resource->moving_bytes > 0) {
        text_printf(
            text, "# %" PRIu64 " bytes were being mapped or given back\n",
            resource->moving_bytes);
    }
}

static void put_row(const rmm_blocks_row_t *row, text_t *text)
{
    if (row->state == RMM_BLOCK_CHUNK) {
        text_printf(
            text, "# chunk 0x%" PRIx64 " %" PRIu64 "\n", row->address, row->bytes);
        return;
    }
    text_printf(
        text, "0x%" PRIx64 " %" PRIu64 " %s ", row->address, row->bytes,
        rmm__block_state_name(row->state));
    render_value(text, row->stream); /* none is unknown to figures, too */
}

static void render_map(block_rows_t *rows, text_t *text)
{
    uint32_t at = 0;
    bool fits = true;
    text_puts(text, "#addr bytes state stream\n");
    render_taken(rows->taken_ns, text);
    while (at < rows->count && fits) {
        text_begin_row(text);
        put_row(&rows->rows[at++], text);
        fits = text_end_row(text);
    }
    text_leave_out(text, rows->count - at);
    text_end_rows(text);
    render_block_remarks(rows, text);
}

static void render_map_svg(block_rows_t *rows, text_t *text)
{
    rmm_sink_t sink = render_sink(text);
    const rmm_map_t map = {rows->rows, rows->count, SVG_LINES_MAX};
    text_puts(text, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    rmm__map_svg_begin(&sink, &map);
    render_taken(rows->taken_ns, text);
    render_block_remarks(rows, text);
    rmm__map_svg_end(&sink);
}

/* --- sums ----------------------------------------------------------------------------- */

typedef struct sum {
    uint64_t bytes, count;
} sum_t;

static void add_row(sum_t *sum, const rmm_blocks_row_t *row)
{
    sum->bytes = figure_add(sum->bytes, row->bytes);
    sum->count++;
}

/* Blocks that are kept for streams come first, in the order of these. */
static int by_stream(const void *left, const void *right)
{
    const rmm_blocks_row_t *a = left, *b = right;
    bool a_is_kept = a->state == RMM_BLOCK_CACHED,
         b_is_kept = b->state == RMM_BLOCK_CACHED;
    if (a_is_kept != b_is_kept) {
        return b_is_kept - a_is_kept;
    }
    return (a->stream > b->stream) - (a->stream < b->stream);
}

static void
put_stream(text_t *text, uint64_t stream, const sum_t *used, const sum_t *kept)
{
    render_column(text, stream);
    render_column(text, used->bytes);
    render_column(text, used->count);
    render_column(text, kept->bytes);
    render_value(text, kept->count);
}

/* Sums up the memory that is kept for one stream, whose first row is `*at`. */
static sum_t take_stream(const block_rows_t *rows, uint32_t *at)
{
    uint64_t stream = rows->rows[*at].stream;
    sum_t kept = {0, 0};
    for (; *at < rows->count && rows->rows[*at].state == RMM_BLOCK_CACHED &&
           rows->rows[*at].stream == stream;
         ++*at) {
        add_row(&kept, &rows->rows[*at]);
    }
    return kept;
}

/* The pool does not know the stream of a used block: all are in the row without a stream. */
static void render_streams(block_rows_t *rows, text_t *text)
{
    static const sum_t unknown = {FIGURE_UNKNOWN, FIGURE_UNKNOWN};
    sum_t used = {0, 0}, unidentified = {0, 0};
    uint32_t at = 0;
    text_puts(text, "#stream used_bytes used_count cached_bytes cached_count\n");
    render_taken(rows->taken_ns, text);
    if (rows->count > 0) {
        qsort(rows->rows, rows->count, sizeof(rows->rows[0]), by_stream);
    }
    while (at < rows->count && rows->rows[at].state == RMM_BLOCK_CACHED) {
        uint64_t stream = rows->rows[at].stream;
        sum_t kept = take_stream(rows, &at);
        if (stream == RMM_BLOCKS_NO_STREAM) {
            unidentified = kept;
            continue;
        }
        text_begin_row(text);
        put_stream(text, stream, &unknown, &kept);
        (void)text_end_row(text);
    }
    for (; at < rows->count; at++) {
        if (rows->rows[at].state == RMM_BLOCK_USED) {
            add_row(&used, &rows->rows[at]);
        }
    }
    text_end_rows(text);
    put_stream(text, FIGURE_UNKNOWN, &used, &unidentified);
    render_block_remarks(rows, text);
}

#define SIZES 64 /* powers of two */

static void render_size_histogram(block_rows_t *rows, text_t *text)
{
    sum_t used[SIZES] = {{0}}, unused[SIZES] = {{0}};
    for (uint32_t i = 0; i < rows->count; i++) {
        const rmm_blocks_row_t *row = &rows->rows[i];
        int size = 63 - __builtin_clzll(row->bytes);
        if (row->state == RMM_BLOCK_USED) {
            add_row(&used[size], row);
        } else if (row->state != RMM_BLOCK_CHUNK && row->state != RMM_BLOCK_LOST) {
            add_row(&unused[size], row);
        }
    }
    text_puts(text, "#from_bytes used_count used_bytes free_count free_bytes\n");
    render_taken(rows->taken_ns, text);
    for (int size = 0; size < SIZES; size++) {
        if (used[size].count != 0 || unused[size].count != 0) {
            render_column(text, UINT64_C(1) << size);
            render_column(text, used[size].count);
            render_column(text, used[size].bytes);
            render_column(text, unused[size].count);
            render_value(text, unused[size].bytes);
        }
    }
    render_block_remarks(rows, text);
}

_Static_assert(RMM_BLOCKS_NO_STREAM == FIGURE_UNKNOWN, "both are shown as -1");

/* The rows of the resource go to `render`. */
static void print_rows(
    const subject_t *subject, text_t *text, void (*render)(block_rows_t *, text_t *))
{
    const rmm_blocks_file_t *file = &subject->blocks[0];
    rmm_blocks_resource_t resource;
    block_rows_t rows = {.taken_ns = file->header.taken_ns};
    if (!rmm__block_report_find(file, subject->resource_id, &resource) ||
        block_rows_read(file, &resource, &rows, text)) {
        render(&rows, text);
        block_rows_free(&rows, text);
    }
}

void print_map(const subject_t *subject, text_t *text)
{
    print_rows(subject, text, render_map);
}

void print_map_svg(const subject_t *subject, text_t *text)
{
    print_rows(subject, text, render_map_svg);
}

void print_streams(const subject_t *subject, text_t *text)
{
    print_rows(subject, text, render_streams);
}

void print_size_histogram(const subject_t *subject, text_t *text)
{
    print_rows(subject, text, render_size_histogram);
}
