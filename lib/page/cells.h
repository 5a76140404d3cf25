/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cells of the page's tables and rows: sizes, counts, texts, bars and histories. Only for this
 * folder.
 *
 * Sizes are in units of 1024, with one decimal; the exact number is the title of the cell. A part
 * of memory has one class, and so one colour, wherever it is drawn: "used" (in use by programs),
 * "inside" (free inside pools), "others" (other programs on the device), "lost" (padding). What is
 * free on the device is the ground of a bar.
 */
#ifndef RMM_PAGE_CELLS_H
#define RMM_PAGE_CELLS_H

#include "page/node_page.h"
#include "page/sink.h"

typedef struct page_part {
    const char *name; /* its class */
    uint64_t bytes;
} page_part_t;

/* FIGURE_UNKNOWN if one of them is; 0 where b is more. */
uint64_t page_subtract(uint64_t a, uint64_t b);
uint64_t page_add(uint64_t a, uint64_t b);

/* "1.5 GiB", "-" for what is not known. */
#define PAGE_SIZE_BYTES 24
void page_size_text(uint64_t bytes, char text[PAGE_SIZE_BYTES]);

/* "hour", "5 minutes", rounded */
void page_span_text(uint32_t seconds, char text[PAGE_SIZE_BYTES]);

/* tag: "td" in a table, "span" in a row. */
void page_put_size(rmm_sink_t *sink, const char *tag, uint64_t bytes);
void page_put_count(rmm_sink_t *sink, const char *tag, uint64_t count);
void page_put_text(rmm_sink_t *sink, const char *tag, const char *text);

/* Parts side by side as shares of the whole; they may be more, and are cut. A whole that is 0 or
 * not known has no bar. */
void page_put_bar(
    rmm_sink_t *sink, const char *tag, const page_part_t *parts, uint32_t count,
    uint64_t whole);
/* Areas on top of each other. whole: the top; 0: the highest sample. */
void page_put_history(
    rmm_sink_t *sink, const char *tag, const rmm_page_history_t *history,
    uint64_t whole);

#endif /* RMM_PAGE_CELLS_H */
