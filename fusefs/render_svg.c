/* SPDX-License-Identifier: Apache-2.0 */
/*
 * map.svg: a picture of a pool's chunks. Each chunk begins a line, all lines stand for equally
 * many bytes, and blocks too small to be seen are drawn together. So its size is bounded,
 * whatever the report says: LINES_MAX lines of at most one mark for each 2 pixels.
 *
 * No string of a program is in it, and no script.
 */
#include "render_blocks.h"

#include <inttypes.h>

#define LINES_MAX 64u
#define WIDTH 1024u /* of a line; divides the bytes of a line */
#define LEFT 150u   /* of it: the address */
#define TOP 48u
#define LINE_HEIGHT 16u
#define MARK_HEIGHT 13u
#define SEEN_WIDTH 4u /* what is narrower is drawn with its neighbours */
#define LINE_BYTES_LEAST ((uint64_t)64 << 10)

static const char *const colours[RMM_BLOCK_STATES] = {
    [RMM_BLOCK_USED] = "#d1495b",
    [RMM_BLOCK_FREE] = "#8cc084",
    [RMM_BLOCK_CACHED] = "#edae49",
    [RMM_BLOCK_GRAPH] = "#8d6cab",
    [RMM_BLOCK_LOST] = "#444444"};

/* Blocks that are drawn as one. */
typedef struct mark {
    uint32_t from, to; /* pixels of the line */
    uint32_t count;
    uint64_t bytes[RMM_BLOCK_STATES];
    const rmm_blocks_row_t *row; /* the first */
} mark_t;

typedef struct picture {
    const block_rows_t *rows;
    text_t *text;
    uint64_t line_bytes; /* a power of two */
    uint32_t line;       /* that is drawn */
    uint32_t next_row;   /* first that may lie in it */
} picture_t;

/* --- scale ---------------------------------------------------------------------------- */

static uint64_t lines_of(const rmm_blocks_row_t *chunk, uint64_t line_bytes)
{
    return (chunk->bytes - 1) / line_bytes + 1;
}

static bool fits(const block_rows_t *rows, uint64_t line_bytes)
{
    uint64_t lines = 0;
    for (uint32_t i = 0; i < rows->count && lines <= LINES_MAX; i++) {
        if (rows->rows[i].state == RMM_BLOCK_CHUNK) {
            lines += lines_of(&rows->rows[i], line_bytes);
        }
    }
    return lines <= LINES_MAX;
}

/* With more chunks than lines each has one line, and the last ones none. */
static uint64_t choose_line_bytes(const block_rows_t *rows)
{
    uint64_t line_bytes = LINE_BYTES_LEAST;
    while (line_bytes < UINT64_C(1) << 62 && !fits(rows, line_bytes)) {
        line_bytes *= 2;
    }
    return line_bytes;
}

/* --- marks ---------------------------------------------------------------------------- */

static uint32_t largest_state(const mark_t *mark)
{
    uint32_t largest = RMM_BLOCK_USED;
    for (uint32_t state = RMM_BLOCK_USED; state < RMM_BLOCK_STATES; state++) {
        largest = mark->bytes[state] > mark->bytes[largest] ? state : largest;
    }
    return largest;
}

static void put_title(const mark_t *mark, text_t *text)
{
    const rmm_blocks_row_t *row = mark->row;
    if (mark->count > 1) {
        text_printf(
            text, "%u blocks from 0x%" PRIx64 ": %" PRIu64 " bytes used", mark->count,
            row->address, mark->bytes[RMM_BLOCK_USED]);
        return;
    }
    text_printf(
        text, "0x%" PRIx64 ": %" PRIu64 " bytes %s", row->address, row->bytes,
        block_state_name(row->state));
    if (row->stream != RMM_BLOCKS_NO_STREAM) {
        text_printf(text, ", stream %" PRIu64, row->stream);
    }
}

static void put_mark(const picture_t *picture, mark_t *mark)
{
    if (mark->to > mark->from) {
        text_printf(
            picture->text,
            "<rect x=\"%u\" y=\"%u\" width=\"%u\" height=\"%u\" fill=\"%s\"><title>",
            LEFT + mark->from, TOP + picture->line * LINE_HEIGHT, mark->to - mark->from,
            MARK_HEIGHT, colours[largest_state(mark)]);
        put_title(mark, picture->text);
        text_puts(picture->text, "</title></rect>\n");
    }
    *mark = (mark_t){.from = mark->to, .to = mark->to};
}

static void add_block(
    const picture_t *picture, mark_t *mark, const rmm_blocks_row_t *row, uint32_t to)
{
    bool is_wide = to > mark->to && to - mark->to >= SEEN_WIDTH;
    if (is_wide) {
        put_mark(picture, mark);
    }
    mark->row = mark->count == 0 ? row : mark->row;
    mark->count++;
    mark->bytes[row->state] += row->bytes;
    mark->to = to > mark->to ? to : mark->to;
    if (mark->to - mark->from >= SEEN_WIDTH) {
        put_mark(picture, mark);
    }
}

/* --- lines ---------------------------------------------------------------------------- */

static uint32_t pixel_of(const picture_t *picture, uint64_t offset)
{
    return offset >= picture->line_bytes
               ? WIDTH
               : (uint32_t)(offset / (picture->line_bytes / WIDTH));
}

static void put_blocks(picture_t *picture, uint64_t begin, uint64_t end)
{
    const block_rows_t *rows = picture->rows;
    mark_t mark = {0};
    for (uint32_t i = picture->next_row; i < rows->count; i++) {
        const rmm_blocks_row_t *row = &rows->rows[i];
        uint64_t behind = row->address + row->bytes;
        if (row->address >= end) {
            break;
        }
        if (row->state == RMM_BLOCK_CHUNK || behind <= begin) {
            picture->next_row += i == picture->next_row;
            continue;
        }
        uint32_t from =
            pixel_of(picture, row->address > begin ? row->address - begin : 0);
        if (from > mark.to) { /* nothing is known of what is between */
            put_mark(picture, &mark);
            mark.from = from;
            mark.to = from;
        }
        add_block(
            picture, &mark, row,
            pixel_of(picture, (behind < end ? behind : end) - begin));
    }
    put_mark(picture, &mark);
}

static void put_line(picture_t *picture, uint64_t begin, uint64_t end)
{
    uint32_t width = pixel_of(picture, end - begin);
    uint32_t y = TOP + picture->line * LINE_HEIGHT;
    text_printf(
        picture->text,
        "<text x=\"4\" y=\"%u\">0x%" PRIx64 "</text>\n"
        "<rect x=\"%u\" y=\"%u\" width=\"%u\" height=\"%u\" fill=\"#eeeeee\"/>\n",
        y + MARK_HEIGHT - 3, begin, LEFT, y, width > 0 ? width : 1, MARK_HEIGHT);
    put_blocks(picture, begin, end);
    picture->line++;
}

static void put_chunk(picture_t *picture, const rmm_blocks_row_t *chunk)
{
    uint64_t end = chunk->address + chunk->bytes;
    uint64_t at = chunk->address;
    while (at < end && picture->line < LINES_MAX) {
        uint64_t next = end - at > picture->line_bytes ? at + picture->line_bytes : end;
        put_line(picture, at, next);
        at = next;
    }
}

/* Returns how many found no line. */
static uint32_t put_chunks(picture_t *picture)
{
    uint32_t left_out = 0;
    for (uint32_t i = 0; i < picture->rows->count; i++) {
        const rmm_blocks_row_t *row = &picture->rows->rows[i];
        if (row->state != RMM_BLOCK_CHUNK) {
            continue;
        }
        if (picture->line < LINES_MAX) {
            picture->next_row = i;
            put_chunk(picture, row);
        } else {
            left_out++;
        }
    }
    return left_out;
}

/* --- the picture ---------------------------------------------------------------------- */

static void put_legend(const picture_t *picture)
{
    uint32_t x = LEFT;
    text_printf(
        picture->text, "<text x=\"4\" y=\"20\">A line: %" PRIu64 " bytes</text>\n",
        picture->line_bytes);
    for (uint32_t state = RMM_BLOCK_USED; state < RMM_BLOCK_STATES; state++) {
        text_printf(
            picture->text,
            "<rect x=\"%u\" y=\"28\" width=\"12\" height=\"12\" fill=\"%s\"/>"
            "<text x=\"%u\" y=\"38\">%s</text>\n",
            x, colours[state], x + 16, block_state_name(state));
        x += 90;
    }
}

static uint32_t line_count(const picture_t *picture)
{
    uint64_t lines = 0;
    for (uint32_t i = 0; i < picture->rows->count && lines < LINES_MAX; i++) {
        if (picture->rows->rows[i].state == RMM_BLOCK_CHUNK) {
            lines += lines_of(&picture->rows->rows[i], picture->line_bytes);
        }
    }
    return lines < LINES_MAX ? (uint32_t)lines : LINES_MAX;
}

void render_map_svg(const block_rows_t *rows, text_t *text)
{
    picture_t picture = {
        .rows = rows, .text = text, .line_bytes = choose_line_bytes(rows)};
    uint32_t width = LEFT + WIDTH + 8;
    uint32_t height = TOP + (line_count(&picture) + 4) * LINE_HEIGHT;
    text_printf(
        text,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%u\" height=\"%u\" "
        "viewBox=\"0 0 %u %u\" font-family=\"monospace\" font-size=\"11\">\n"
        "<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n",
        width, height, width, height);
    put_legend(&picture);
    uint32_t left_out = put_chunks(&picture);
    text_printf(
        text, "<text x=\"4\" y=\"%u\">",
        TOP + (line_count(&picture) + 1) * LINE_HEIGHT);
    if (left_out > 0) {
        text_printf(text, "# %u more chunks found no line\n", left_out);
    }
    render_taken(rows->taken_ns, text);
    render_block_remarks(rows, text);
    text_puts(text, "</text>\n</svg>\n");
}
