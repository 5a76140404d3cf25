/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Draws a page: a function of a snapshot, what was before, and what the user has chosen. Knows no
 * terminal and no clock.
 */
#ifndef RMM_TOP_VIEW_H
#define RMM_TOP_VIEW_H

#include "node/node.h"
#include "top/canvas.h"
#include "top/figure_history.h"
#include "top/ui.h"

typedef struct view {
    canvas_t canvas;
    int rows_y;                    /* the line of the first row that can be selected */
    uint32_t first_row, row_count; /* that are shown */
    uint32_t all_rows;
} view_t;

#define VIEW_WIDTH_MAX 1000
#define VIEW_HEIGHT_MAX 20000

/* Of the size ui->width x ui->height, cut to the two above. False: no memory. Zero-initialise
 * before the first. */
bool view_make(
    view_t *view, const node_t *node, const history_t *history, const ui_t *ui);
void view_fini(view_t *view);

/* How many lines the list needs to show all. */
int view_full_height(const node_t *node);

/* --- the pages, each in a file of its own ---------------------------------------------------- */

typedef struct page {
    view_t *view;
    const node_t *node;
    const history_t *history;
    const ui_t *ui;
} page_t;

typedef struct area {
    int y, lines;
} area_t;

/* Draw from line y on. */
bool view_draw_list(const page_t *page, int y);
void view_draw_program(const page_t *page, int y);
void view_draw_help(const page_t *page, int y);

/* The line behind them. */
int view_draw_devices(const page_t *page, int y);
/* Of the column with the names of nodes. */
int view_site_width(const node_t *node);

/* All lines from y on but the last one. */
area_t view_area(const page_t *page, int y);
/* Which rows are in the area, so that `selected` is among them. Remembered in the view. */
void view_choose_rows(
    const page_t *page, area_t area, uint32_t count, uint32_t selected);

/* The page with the log, findings and blocks of a program; lines: how many would show all. */
int view_detail_lines(const page_t *page);
void view_draw_detail(const page_t *page, area_t area);

#endif /* RMM_TOP_VIEW_H */
