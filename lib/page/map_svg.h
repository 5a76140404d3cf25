/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A picture of a pool's chunks and the blocks in them, as SVG: for map.svg of the daemon, which has
 * its own styles, and for pages, which have those of page.css. Each chunk begins a line, all lines
 * stand for equally many bytes, and blocks too small to be seen are drawn together. So its size is
 * bounded, whatever the report says: lines_max lines of at most one mark for each 4 pixels, of some
 * 100 bytes.
 *
 * No string of a program is in it, and no script.
 */
#ifndef RMM_PAGE_MAP_SVG_H
#define RMM_PAGE_MAP_SVG_H

#include "page/sink.h"
#include "segment/segment_blocks_reader.h"

typedef struct rmm_map {
    const rmm_blocks_row_t *rows; /* sorted: rmm__block_report_sort() */
    uint32_t count;
    uint32_t lines_max;
} rmm_map_t;

/* All but the last line of text, which the caller puts, without '<' and '&', before the end. */
void rmm__map_svg_begin(rmm_sink_t *sink, const rmm_map_t *map);
void rmm__map_svg_end(rmm_sink_t *sink);

/* For a page, as wide as there is room; its legend is the page's. */
void rmm__map_html(rmm_sink_t *sink, const rmm_map_t *map);
/* What page.css fills blocks of the class "kept" with; once in a page, inside of an svg. */
void rmm__map_put_pattern(rmm_sink_t *sink);
uint64_t rmm__map_line_bytes(const rmm_map_t *map);

#endif /* RMM_PAGE_MAP_SVG_H */
