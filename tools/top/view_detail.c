/* SPDX-License-Identifier: Apache-2.0 */
/* The lower part of the page of a program: blocks, findings, log. */
#include <inttypes.h>
#include <stdio.h>

#include "segment/segment_format.h"
#include "top/figure_text.h"
#include "top/view.h"

#define MAP_LINES 4
#define MAP_WIDTH_MOST 128
#define FINDING_LINES 4

/* Of the selected resource; what a line between two parts says. */
static void draw_header(canvas_t *canvas, int y, const char *text)
{
    canvas_text(canvas, y, 0, ATTRIBUTE_HEADER, text);
    canvas_paint(canvas, y, ATTRIBUTE_HEADER);
}

static int draw_map(const page_t *page, area_t area)
{
    const detail_t *detail = page->ui->detail;
    canvas_t *canvas = &page->view->canvas;
    const map_t map = {detail->blocks, detail->block_count};
    char text[160];
    if (detail->blocks == NULL || area.lines < 2) {
        return 0;
    }
    int lines = area.lines - 1 < MAP_LINES ? area.lines - 1 : MAP_LINES;
    snprintf(
        text, sizeof(text), "BLOCKS of %u, %.0f s ago  %s", detail->resource_id,
        (double)detail->blocks_age_ns / 1e9,
        canvas->is_ascii ? "# used  = partly  . free" : "█ used  ▒ partly  ░ free");
    draw_header(canvas, area.y, text);
    canvas_map(
        canvas, area.y + 1,
        canvas->width < MAP_WIDTH_MOST ? canvas->width : MAP_WIDTH_MOST, lines, &map);
    return lines + 1;
}

/* The last ones, as many as there is room for. */
static int
draw_lines(canvas_t *canvas, area_t area, const detail_line_t *lines, uint32_t count)
{
    uint32_t room = area.lines > 0 ? (uint32_t)area.lines : 0;
    uint32_t first = count > room ? count - room : 0;
    for (uint32_t i = first; i < count; i++) {
        canvas_text(
            canvas, area.y + (int)(i - first), 0,
            lines[i].is_warning ? ATTRIBUTE_WARNING : ATTRIBUTE_NORMAL, lines[i].text);
    }
    return (int)(count - first);
}

static int draw_findings(const page_t *page, area_t area)
{
    const detail_t *detail = page->ui->detail;
    char text[80];
    if (!detail->is_diagnosed || area.lines < 2) {
        return 0;
    }
    snprintf(
        text, sizeof(text), "FINDINGS of the diagnosis: %" PRIu64,
        detail->findings_total);
    draw_header(&page->view->canvas, area.y, text);
    const area_t below = {
        area.y + 1, area.lines - 1 < FINDING_LINES ? area.lines - 1 : FINDING_LINES};
    return 1 + draw_lines(
                   &page->view->canvas, below, detail->findings, detail->finding_count);
}

static int draw_limits(const page_t *page, area_t area)
{
    const detail_t *detail = page->ui->detail;
    char text[120];
    bool is_limited = detail->limit_bytes != RMM_SEGMENT_NO_LIMIT ||
                      detail->program_limit_bytes != RMM_SEGMENT_NO_LIMIT;
    if (!detail->has_limits || !is_limited || area.lines < 1) {
        return 0;
    }
    snprintf(
        text, sizeof(text), "limit of %u: %s, of the program on its device: %s",
        detail->resource_id, figure_limit(detail->limit_bytes).text,
        figure_limit(detail->program_limit_bytes).text);
    canvas_text(&page->view->canvas, area.y, 0, ATTRIBUTE_NORMAL, text);
    return 1;
}

static area_t rest_of(area_t area, int drawn)
{
    return (area_t){area.y + drawn, area.lines - drawn};
}

int view_detail_lines(const page_t *page)
{
    const detail_t *detail = page->ui->detail;
    if (detail == NULL || detail->id != page->ui->shown_id) {
        return 0;
    }
    return 1 + (detail->blocks != NULL ? MAP_LINES + 1 : 0) +
           (detail->is_diagnosed ? 2 + (int)detail->finding_count : 0) +
           (detail->log_count > 0 ? 1 + (int)detail->log_count : 0);
}

void view_draw_detail(const page_t *page, area_t area)
{
    const detail_t *detail = page->ui->detail;
    canvas_t *canvas = &page->view->canvas;
    if (detail->is_hidden) {
        canvas_text(
            canvas, area.y, 0, ATTRIBUTE_NORMAL,
            "log, findings and blocks are shown to the program's user and root");
        return;
    }
    area = rest_of(area, draw_limits(page, area));
    area = rest_of(area, draw_map(page, area));
    area = rest_of(area, draw_findings(page, area));
    if (detail->log_count > 0 && area.lines >= 2) {
        draw_header(canvas, area.y, "LOG");
        (void)draw_lines(canvas, rest_of(area, 1), detail->log, detail->log_count);
    }
}
