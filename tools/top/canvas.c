/* SPDX-License-Identifier: Apache-2.0 */
/* Draws on lines of cells; see canvas.h. */
#include "top/canvas.h"

#include <stdlib.h>
#include <string.h>

#include "node/node.h"

bool canvas_clear(canvas_t *canvas, int width, int height, bool is_ascii)
{
    size_t wanted = (size_t)width * (size_t)height;
    if (wanted > canvas->room) {
        cell_t *cells = reallocarray(canvas->cells, wanted, sizeof(*cells));
        if (cells == NULL) {
            return false;
        }
        canvas->cells = cells;
        canvas->room = wanted;
    }
    canvas->width = width;
    canvas->height = height;
    canvas->is_ascii = is_ascii;
    for (size_t i = 0; i < wanted; i++) {
        canvas->cells[i] = (cell_t){' ', ATTRIBUTE_NORMAL};
    }
    return true;
}

void canvas_fini(canvas_t *canvas)
{
    free(canvas->cells);
    memset(canvas, 0, sizeof(*canvas));
}

static void
put(canvas_t *canvas, int y, int x, attribute_t attribute, uint32_t character)
{
    if (y >= 0 && y < canvas->height && x >= 0 && x < canvas->width) {
        canvas->cells[(size_t)y * (size_t)canvas->width + (size_t)x] =
            (cell_t){character, (uint8_t)attribute};
    }
}

/* --- characters --------------------------------------------------------------------------- */

/* The next character of clean UTF-8 (segment/clean_text.h); moves *text behind it. */
static uint32_t next_character(const char **text)
{
    const unsigned char *bytes = (const unsigned char *)*text;
    uint32_t character = bytes[0];
    int more = character >= 0xf0   ? 3
               : character >= 0xe0 ? 2
               : character >= 0xc0 ? 1
                                   : 0;
    character &= more == 0 ? 0xffu : 0x3fu >> more;
    int i = 1;
    for (; i <= more && (bytes[i] & 0xc0) == 0x80; i++) {
        character = character << 6 | (bytes[i] & 0x3f);
    }
    *text += i;
    return i > more ? character : '?';
}

/* Letters of Europe, and what is drawn here: lines, blocks and arrows. Others may combine or be
 * two columns wide, of which terminals differ. */
static bool is_one_column(uint32_t character)
{
    return (character >= 0xa1 && character <= 0x2ff && character != 0xad) ||
           (character >= 0x370 && character <= 0x482) ||
           (character >= 0x48a && character <= 0x52f) ||
           (character >= 0x2190 && character <= 0x2193) ||
           (character >= 0x2500 && character <= 0x259f);
}

static uint32_t shown(const canvas_t *canvas, uint32_t character)
{
    if (character >= ' ' && character < 0x7f) {
        return character;
    }
    return !canvas->is_ascii && is_one_column(character) ? character : '?';
}

size_t canvas_utf8(uint32_t character, char *text)
{
    if (character < 0x80) {
        text[0] = (char)character;
        return 1;
    }
    if (character < 0x800) {
        text[0] = (char)(0xc0 | character >> 6);
        text[1] = (char)(0x80 | (character & 0x3f));
        return 2;
    }
    text[0] = (char)(0xe0 | (character >> 12 & 0xf));
    text[1] = (char)(0x80 | (character >> 6 & 0x3f));
    text[2] = (char)(0x80 | (character & 0x3f));
    return 3;
}

void canvas_line(const canvas_t *canvas, int y, char *text, size_t bytes)
{
    const cell_t *cells = &canvas->cells[(size_t)y * (size_t)canvas->width];
    int width = canvas->width;
    size_t used = 0;
    while (width > 0 && cells[width - 1].character == ' ') {
        width--;
    }
    for (int x = 0; x < width && used + CANVAS_CHARACTER_BYTES < bytes; x++) {
        used += canvas_utf8(cells[x].character, text + used);
    }
    text[used] = '\0';
}

/* --- text --------------------------------------------------------------------------------- */

static int width_of(const char *text)
{
    int width = 0;
    while (*text != '\0') {
        (void)next_character(&text);
        width++;
    }
    return width;
}

int canvas_text(canvas_t *canvas, int y, int x, attribute_t attribute, const char *text)
{
    while (*text != '\0') {
        put(canvas, y, x++, attribute, shown(canvas, next_character(&text)));
    }
    return x;
}

int canvas_right(
    canvas_t *canvas, int y, int x, int width, attribute_t attribute, const char *text)
{
    int blank = width - width_of(text);
    for (int i = 0; i < blank; i++) {
        put(canvas, y, x + i, attribute, ' ');
    }
    canvas_left(
        canvas, y, x + (blank > 0 ? blank : 0), blank > 0 ? width - blank : width,
        attribute, text);
    return x + width;
}

int canvas_left(
    canvas_t *canvas, int y, int x, int width, attribute_t attribute, const char *text)
{
    for (int i = 0; i < width; i++) {
        uint32_t character = *text != '\0' ? shown(canvas, next_character(&text)) : ' ';
        put(canvas, y, x + i, attribute, character);
    }
    return x + width;
}

void canvas_paint(canvas_t *canvas, int y, attribute_t attribute)
{
    for (int x = 0; y >= 0 && y < canvas->height && x < canvas->width; x++) {
        canvas->cells[(size_t)y * (size_t)canvas->width + (size_t)x].attribute =
            (uint8_t)attribute;
    }
}

/* --- pictures ----------------------------------------------------------------------------- */

/* Cells of a part: the nearest number, but one for the little that is there. */
static int cells_of(uint64_t part, uint64_t whole, int width)
{
    double share = whole != 0 ? (double)part / (double)whole : 0.0;
    int cells = (int)((share < 1.0 ? share : 1.0) * width + 0.5);
    return cells == 0 && part > 0 ? 1 : cells;
}

int canvas_bar(canvas_t *canvas, int y, int x, int width, const bar_t *bar)
{
    static const uint32_t drawn[2][4] = {
        {0x2588, 0x2592, 0x2591, ' '}, {'#', '=', 'x', '.'}};
    const uint32_t *characters = drawn[canvas->is_ascii ? 1 : 0];
    int inside = width - 2, at = 0;
    int ends[4] = {
        cells_of(bar->used, bar->whole, inside),
        cells_of(bar->cached, bar->whole, inside),
        cells_of(bar->others, bar->whole, inside), inside};
    put(canvas, y, x, ATTRIBUTE_NORMAL, '[');
    for (int part = 0; part < 4; part++) {
        int end = part == 3 ? inside : at + ends[part];
        for (; at < end && at < inside; at++) {
            put(canvas, y, x + 1 + at, (attribute_t)(ATTRIBUTE_USED + part),
                characters[part]);
        }
    }
    put(canvas, y, x + width - 1, ATTRIBUTE_NORMAL, ']');
    return x + width;
}

static uint64_t largest(const uint64_t *values, size_t count)
{
    uint64_t most = 0;
    for (size_t i = 0; i < count; i++) {
        most = values[i] != FIGURE_UNKNOWN && values[i] > most ? values[i] : most;
    }
    return most;
}

int canvas_curve(
    canvas_t *canvas, int y, int x, int width, const uint64_t *values, size_t count)
{
    static const char ascii[] = "_.,:-=*#";
    uint64_t most = largest(values, count);
    for (int i = 0; i < width; i++) {
        int64_t at = (int64_t)count - width + i;
        if (at < 0 || values[at] == FIGURE_UNKNOWN) {
            put(canvas, y, x + i, ATTRIBUTE_NORMAL, ' ');
            continue;
        }
        uint32_t level =
            most != 0 ? (uint32_t)((double)values[at] / (double)most * 7.0 + 0.5) : 0;
        put(canvas, y, x + i, ATTRIBUTE_USED,
            canvas->is_ascii ? (uint32_t)ascii[level] : 0x2581 + level);
    }
    return x + width;
}

/* --- maps --------------------------------------------------------------------------------- */

static uint64_t chunk_bytes(const map_t *map)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < map->count; i++) {
        if (map->rows[i].state == RMM_BLOCK_CHUNK &&
            map->rows[i].bytes <= UINT64_MAX - bytes) {
            bytes += map->rows[i].bytes;
        }
    }
    return bytes;
}

/* Add the part of a block that lies in each of the cells that it reaches into. */
static void add_used(double *used, uint32_t cells, double from, double to)
{
    for (uint32_t cell = (uint32_t)from; cell < cells && (double)cell < to; cell++) {
        double begin = from > (double)cell ? from : (double)cell;
        double end = to < (double)cell + 1.0 ? to : (double)cell + 1.0;
        used[cell] += end > begin ? end - begin : 0.0;
    }
}

/* Blocks lie in the chunk before them; those that do not are left out. Returns the cells that the
 * chunks take. */
static uint32_t sum_used(const map_t *map, double *used, uint32_t cells)
{
    double in_cell = (double)chunk_bytes(map) / (double)cells, at = 0.0;
    const rmm_blocks_row_t *chunk = NULL;
    for (uint32_t i = 0; i < map->count && in_cell > 0.0; i++) {
        const rmm_blocks_row_t *row = &map->rows[i];
        if (row->state == RMM_BLOCK_CHUNK) {
            at += chunk != NULL ? (double)chunk->bytes / in_cell : 0.0;
            chunk = row;
        } else if (
            chunk != NULL && row->state == RMM_BLOCK_USED &&
            row->address - chunk->address < chunk->bytes &&
            row->bytes <= chunk->bytes - (row->address - chunk->address)) {
            double from = at + (double)(row->address - chunk->address) / in_cell;
            add_used(used, cells, from, from + (double)row->bytes / in_cell);
        }
    }
    return in_cell > 0.0 ? cells : 0;
}

void canvas_map(canvas_t *canvas, int y, int width, int lines, const map_t *map)
{
    static const uint32_t drawn[2][3] = {{0x2588, 0x2592, 0x2591}, {'#', '=', '.'}};
    static const attribute_t attributes[] = {
        ATTRIBUTE_USED, ATTRIBUTE_CACHED, ATTRIBUTE_FREE};
    uint32_t cells = width > 0 && lines > 0 ? (uint32_t)(width * lines) : 0;
    double *used = calloc(cells + 1, sizeof(*used));
    cells = used != NULL && cells > 0 ? sum_used(map, used, cells) : 0;
    for (uint32_t i = 0; i < cells; i++) {
        int part = used[i] > 0.999 ? 0 : used[i] > 0.001 ? 1 : 2;
        put(canvas, y + (int)i / width, (int)i % width, attributes[part],
            drawn[canvas->is_ascii ? 1 : 0][part]);
    }
    free(used);
}
