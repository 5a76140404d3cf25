/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines of cells, each a character with an attribute: what a page is drawn on, and what the
 * terminal shows. What is drawn outside is cut.
 *
 * Every character here is one column wide. Of texts from other programs, what may be wider or
 * narrower becomes '?'; where the terminal is ASCII only, everything else than ASCII.
 */
#ifndef RMM_TOP_CANVAS_H
#define RMM_TOP_CANVAS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "segment/segment_blocks.h"

typedef enum attribute {
    ATTRIBUTE_NORMAL,
    ATTRIBUTE_TITLE,
    ATTRIBUTE_HEADER,
    ATTRIBUTE_SELECTED,
    ATTRIBUTE_USED, /* parts of a bar: this and the next three */
    ATTRIBUTE_CACHED,
    ATTRIBUTE_OTHERS,
    ATTRIBUTE_FREE,
    ATTRIBUTE_WARNING,
    ATTRIBUTE_COUNT
} attribute_t;

typedef struct cell {
    uint32_t character; /* Unicode */
    uint8_t attribute;
} cell_t;

typedef struct canvas {
    int width, height;
    bool is_ascii;
    cell_t *cells; /* height lines of width */
    size_t room;
} canvas_t;

/* Empty, of that size; keeps its memory. False: no memory. Zero-initialise before the first. */
bool canvas_clear(canvas_t *canvas, int width, int height, bool is_ascii);
void canvas_fini(canvas_t *canvas);

/* Each returns the column behind what it drew. */
int canvas_text(
    canvas_t *canvas, int y, int x, attribute_t attribute, const char *text);
/* In so many columns, flush right; or left, then cut. */
int canvas_right(
    canvas_t *canvas, int y, int x, int width, attribute_t attribute, const char *text);
int canvas_left(
    canvas_t *canvas, int y, int x, int width, attribute_t attribute, const char *text);

/* The whole line. */
void canvas_paint(canvas_t *canvas, int y, attribute_t attribute);

/* How a device's memory is divided; the parts may be more than the whole, and are cut. */
typedef struct bar {
    uint64_t used, cached, others, whole;
} bar_t;
int canvas_bar(canvas_t *canvas, int y, int x, int width, const bar_t *bar);

/* Values over time, the newest at the right, drawn from 0 to the largest. */
int canvas_curve(
    canvas_t *canvas, int y, int x, int width, const uint64_t *values, size_t count);

/* The blocks of a pool in lines from y on, its chunks one behind the other: how much of each cell's
 * memory is used. */
typedef struct map {
    const rmm_blocks_row_t *rows; /* sorted: rmm__block_report_sort() */
    uint32_t count;
} map_t;
void canvas_map(canvas_t *canvas, int y, int width, int lines, const map_t *map);

/* A line as UTF-8 without trailing spaces. Writes at most bytes, terminated. */
#define CANVAS_CHARACTER_BYTES 4
void canvas_line(const canvas_t *canvas, int y, char *text, size_t bytes);
/* One character; returns its bytes, at most CANVAS_CHARACTER_BYTES. */
size_t canvas_utf8(uint32_t character, char *text);

#endif /* RMM_TOP_CANVAS_H */
