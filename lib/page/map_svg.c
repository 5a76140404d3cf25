/* SPDX-License-Identifier: Apache-2.0 */
/* Draws blocks as rectangles; see map_svg.h. */
#include "page/map_svg.h"

#include <inttypes.h>

#define WIDTH 1024u /* of a line; divides the bytes of a line */
#define LEFT 150u   /* of it, in a file: the address */
#define TOP 48u
#define LINE_HEIGHT 16u
#define MARK_HEIGHT 13u
#define SEEN_WIDTH 4u /* what is narrower is drawn with its neighbours */
#define LINE_BYTES_LEAST ((uint64_t)64 << 10)

/* Classes of page.css. */
static const char *const classes[RMM_BLOCK_STATES] = {
    [RMM_BLOCK_USED] = "used",
    [RMM_BLOCK_FREE] = "inside",
    [RMM_BLOCK_CACHED] = "kept",
    [RMM_BLOCK_GRAPH] = "graph",
    [RMM_BLOCK_LOST] = "lost"};

/* What a file has instead of page.css: the same colours. Marks have thin edges in the colour of
 * the ground, so that neighbours stay apart. */
static const char file_style[] =
    "<style>svg{background:#fff;color:#1c2128}text{fill:#1c2128}"
    ".used{fill:#0a5fa8}.inside{fill:#7cbcf0}.kept{fill:url(#kept)}"
    ".graph{fill:#8250df}.lost{fill:#32383f}.ground{fill:#e4e8ec}"
    "rect{stroke:#fff;stroke-width:.8}pattern rect{stroke:none}"
    "@media(prefers-color-scheme:dark){svg{background:#0f1419}text{fill:#e6edf3}"
    ".used{fill:#58a6ff}.inside{fill:#1f5590}.graph{fill:#b392f0}.lost{fill:#c9d1d9}"
    ".ground{fill:#262c34}rect{stroke:#0f1419}}</style>\n";

static const char kept_pattern[] =
    "<defs><pattern id=\"kept\" width=\"6\" height=\"6\" "
    "patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\">"
    "<rect class=\"inside\" width=\"6\" height=\"6\"/>"
    "<rect class=\"used\" width=\"2\" height=\"6\"/></pattern></defs>\n";

/* Blocks that are drawn as one. */
typedef struct mark {
    uint32_t from, to; /* pixels of the line */
    uint32_t count;
    uint64_t bytes[RMM_BLOCK_STATES];
    const rmm_blocks_row_t *row; /* the first */
} mark_t;

typedef struct picture {
    const rmm_map_t *map;
    rmm_sink_t *sink;
    uint64_t line_bytes; /* a power of two */
    uint32_t left, top;  /* of the lines */
    uint32_t line;       /* that is drawn */
    uint32_t next_row;   /* first that may lie in it */
} picture_t;

/* --- scale ---------------------------------------------------------------------------- */

static uint64_t lines_of(const rmm_blocks_row_t *chunk, uint64_t line_bytes)
{
    return (chunk->bytes - 1) / line_bytes + 1;
}

static bool fits(const rmm_map_t *map, uint64_t line_bytes)
{
    uint64_t lines = 0;
    for (uint32_t i = 0; i < map->count && lines <= map->lines_max; i++) {
        if (map->rows[i].state == RMM_BLOCK_CHUNK) {
            lines += lines_of(&map->rows[i], line_bytes);
        }
    }
    return lines <= map->lines_max;
}

static uint64_t largest_chunk(const rmm_map_t *map)
{
    uint64_t largest = 0;
    for (uint32_t i = 0; i < map->count; i++) {
        if (map->rows[i].state == RMM_BLOCK_CHUNK && map->rows[i].bytes > largest) {
            largest = map->rows[i].bytes;
        }
    }
    return largest;
}

/* With more chunks than lines each has one line, as long as the largest, and the last ones none. */
static uint64_t choose_line_bytes(const rmm_map_t *map)
{
    uint64_t line_bytes = LINE_BYTES_LEAST, largest = largest_chunk(map);
    while (line_bytes < UINT64_C(1) << 62 && line_bytes < largest &&
           !fits(map, line_bytes)) {
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

static void put_title(const mark_t *mark, rmm_sink_t *sink)
{
    const rmm_blocks_row_t *row = mark->row;
    if (mark->count > 1) {
        rmm__sink_printf(
            sink, "%u blocks from 0x%" PRIx64 ": %" PRIu64 " bytes used", mark->count,
            row->address, mark->bytes[RMM_BLOCK_USED]);
        return;
    }
    rmm__sink_printf(
        sink, "0x%" PRIx64 ": %" PRIu64 " bytes %s", row->address, row->bytes,
        rmm__block_state_name(row->state));
    if (row->stream != RMM_BLOCKS_NO_STREAM) {
        rmm__sink_printf(sink, ", stream %" PRIu64, row->stream);
    }
}

static void put_mark(const picture_t *picture, mark_t *mark)
{
    if (mark->to > mark->from) {
        rmm__sink_printf(
            picture->sink,
            "<rect class=\"%s\" x=\"%u\" y=\"%u\" width=\"%u\" height=\"%u\"><title>",
            classes[largest_state(mark)], picture->left + mark->from,
            picture->top + picture->line * LINE_HEIGHT, mark->to - mark->from,
            MARK_HEIGHT);
        put_title(mark, picture->sink);
        rmm__sink_puts(picture->sink, "</title></rect>\n");
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
    const rmm_map_t *map = picture->map;
    mark_t mark = {0};
    for (uint32_t i = picture->next_row; i < map->count; i++) {
        const rmm_blocks_row_t *row = &map->rows[i];
        uint64_t behind = row->address + row->bytes;
        uint32_t from;
        if (row->address >= end) {
            break;
        }
        if (row->state == RMM_BLOCK_CHUNK || behind <= begin) {
            picture->next_row += i == picture->next_row;
            continue;
        }
        from = pixel_of(picture, row->address > begin ? row->address - begin : 0);
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
    rmm__sink_printf(
        picture->sink,
        "<rect class=\"ground\" x=\"%u\" y=\"%u\" width=\"%u\" height=\"%u\"/>\n",
        picture->left, picture->top + picture->line * LINE_HEIGHT,
        width > 0 ? width : 1, MARK_HEIGHT);
    put_blocks(picture, begin, end);
    picture->line++;
}

/* The lines of a chunk that there is room for. */
static void each_line(
    picture_t *picture, const rmm_blocks_row_t *chunk,
    void (*put)(picture_t *, uint64_t begin, uint64_t end))
{
    uint64_t end = chunk->address + chunk->bytes;
    uint64_t at = chunk->address;
    while (at < end && picture->line < picture->map->lines_max) {
        uint64_t next = end - at > picture->line_bytes ? at + picture->line_bytes : end;
        put(picture, at, next);
        at = next;
    }
}

/* Returns how many chunks found no line. */
static uint32_t
each_chunk(picture_t *picture, void (*put)(picture_t *, uint64_t begin, uint64_t end))
{
    uint32_t left_out = 0;
    picture->line = 0;
    for (uint32_t i = 0; i < picture->map->count; i++) {
        const rmm_blocks_row_t *row = &picture->map->rows[i];
        if (row->state != RMM_BLOCK_CHUNK) {
            continue;
        }
        if (picture->line < picture->map->lines_max) {
            picture->next_row = i;
            each_line(picture, row, put);
        } else {
            left_out++;
        }
    }
    return left_out;
}

/* --- addresses ------------------------------------------------------------------------ */

static void put_address(picture_t *picture, uint64_t begin, uint64_t end)
{
    (void)end;
    rmm__sink_printf(picture->sink, "0x%" PRIx64 "\n", begin);
    picture->line++;
}

static void put_address_mark(picture_t *picture, uint64_t begin, uint64_t end)
{
    (void)end;
    rmm__sink_printf(
        picture->sink, "<text x=\"4\" y=\"%u\">0x%" PRIx64 "</text>\n",
        picture->top + picture->line * LINE_HEIGHT + MARK_HEIGHT - 3, begin);
    picture->line++;
}

static uint32_t line_count(const picture_t *picture)
{
    uint64_t lines = 0;
    for (uint32_t i = 0; i < picture->map->count && lines < picture->map->lines_max;
         i++) {
        if (picture->map->rows[i].state == RMM_BLOCK_CHUNK) {
            lines += lines_of(&picture->map->rows[i], picture->line_bytes);
        }
    }
    return lines < picture->map->lines_max ? (uint32_t)lines : picture->map->lines_max;
}

void rmm__map_put_pattern(rmm_sink_t *sink)
{
    rmm__sink_puts(sink, kept_pattern);
}

/* --- in a page ------------------------------------------------------------------------ */

uint64_t rmm__map_line_bytes(const rmm_map_t *map)
{
    return choose_line_bytes(map);
}

void rmm__map_html(rmm_sink_t *sink, const rmm_map_t *map)
{
    picture_t picture = {
        .map = map, .sink = sink, .line_bytes = choose_line_bytes(map)};
    uint32_t height = line_count(&picture) * LINE_HEIGHT;
    rmm__sink_puts(sink, "<div class=\"map\"><pre>");
    (void)each_chunk(&picture, put_address);
    rmm__sink_printf(
        sink,
        "</pre><svg viewBox=\"0 0 %u %u\" height=\"%u\" "
        "preserveAspectRatio=\"none\">\n",
        WIDTH, height, height);
    uint32_t left_out = each_chunk(&picture, put_line);
    rmm__sink_puts(sink, "</svg></div>\n");
    if (left_out > 0) {
        rmm__sink_printf(sink, "<p>%u more chunks found no line</p>\n", left_out);
    }
}

/* --- in a file ------------------------------------------------------------------------ */

static void put_legend(const picture_t *picture)
{
    uint32_t x = LEFT;
    rmm__sink_printf(
        picture->sink, "<text x=\"4\" y=\"20\">A line: %" PRIu64 " bytes</text>\n",
        picture->line_bytes);
    for (uint32_t state = RMM_BLOCK_USED; state < RMM_BLOCK_STATES; state++) {
        rmm__sink_printf(
            picture->sink,
            "<rect class=\"%s\" x=\"%u\" y=\"28\" width=\"12\" height=\"12\"/>"
            "<text x=\"%u\" y=\"38\">%s</text>\n",
            classes[state], x, x + 16, rmm__block_state_name(state));
        x += 90;
    }
}

void rmm__map_svg_begin(rmm_sink_t *sink, const rmm_map_t *map)
{
    uint32_t left_out;
    picture_t picture = {
        .map = map,
        .sink = sink,
        .line_bytes = choose_line_bytes(map),
        .left = LEFT,
        .top = TOP};
    uint32_t width = LEFT + WIDTH + 8;
    uint32_t height = TOP + (line_count(&picture) + 4) * LINE_HEIGHT;
    rmm__sink_printf(
        sink,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%u\" height=\"%u\" "
        "viewBox=\"0 0 %u %u\" font-family=\"monospace\" font-size=\"11\">\n",
        width, height, width, height);
    rmm__sink_puts(sink, file_style);
    rmm__map_put_pattern(sink);
    put_legend(&picture);
    (void)each_chunk(&picture, put_address_mark);
    left_out = each_chunk(&picture, put_line);
    rmm__sink_printf(
        sink, "<text x=\"4\" y=\"%u\">",
        TOP + (line_count(&picture) + 1) * LINE_HEIGHT);
    if (left_out > 0) {
        rmm__sink_printf(sink, "# %u more chunks found no line\n", left_out);
    }
}

void rmm__map_svg_end(rmm_sink_t *sink)
{
    rmm__sink_puts(sink, "</text>\n</svg>\n");
}
