/* SPDX-License-Identifier: Apache-2.0 */
/* The first and the last line of each page, and the help; see view.h. */
#include "top/view.h"

#include <stdio.h>
#include <string.h>

/* --- first line --------------------------------------------------------------------------- */

static int put_count(
    canvas_t *canvas, int x, attribute_t attribute, uint32_t count, const char *one,
    const char *several)
{
    char text[128];
    snprintf(text, sizeof(text), "%u %s", count, count == 1 ? one : several);
    return canvas_text(canvas, 0, x, attribute, text);
}

/* States how much is not shown. */
static int draw_missing(canvas_t *canvas, int x, const node_t *node)
{
    if (node->forbidden != 0) {
        x = put_count(
            canvas, x + 2, ATTRIBUTE_WARNING, node->forbidden,
            "program of another user cannot be read",
            "programs of other users cannot be read");
    }
    if (node->refused != 0) {
        x = put_count(
            canvas, x + 2, ATTRIBUTE_WARNING, node->refused,
            "program has implausible figures", "programs have implausible figures");
    }
    if (node->left_out != 0) {
        x = put_count(
            canvas, x + 2, ATTRIBUTE_WARNING, node->left_out, "program left out",
            "programs left out");
    }
    return x;
}

static int draw_silent(canvas_t *canvas, int x, const node_t *node)
{
    uint32_t silent = 0;
    for (uint32_t i = 0; i < node->site_count; i++) {
        silent += node->sites[i].reason[0] != '\0';
    }
    return silent == 0 ? x
                       : put_count(
                             canvas, x + 2, ATTRIBUTE_WARNING, silent, "has no figures",
                             "have no figures");
}

static void draw_title(const page_t *page)
{
    canvas_t *canvas = &page->view->canvas;
    const node_t *node = page->node;
    int x = canvas_text(canvas, 0, 0, ATTRIBUTE_TITLE, "rmm-top") + 2;
    x = put_count(
        canvas, x, ATTRIBUTE_NORMAL, node->process_count, "program", "programs");
    if (node->site_count > 0) {
        x = put_count(
            canvas, x + 2, ATTRIBUTE_NORMAL, node->site_count, "node", "nodes");
        x = draw_silent(canvas, x, node);
    }
    if (page->ui->is_frozen) {
        x = canvas_text(canvas, 0, x + 2, ATTRIBUTE_WARNING, "FROZEN");
    }
    if (page->ui->source[0] != '\0') {
        x = canvas_text(canvas, 0, x + 2, ATTRIBUTE_WARNING, page->ui->source);
    }
    (void)draw_missing(canvas, x, node);
}

/* --- last line ---------------------------------------------------------------------------- */

static void draw_filter(canvas_t *canvas, int y, const ui_t *ui)
{
    int x = canvas_text(canvas, y, 0, ATTRIBUTE_TITLE, "filter: ");
    x = canvas_text(canvas, y, x, ATTRIBUTE_NORMAL, ui->filter);
    x = canvas_text(canvas, y, x, ATTRIBUTE_SELECTED, " ");
    canvas_text(canvas, y, x + 2, ATTRIBUTE_NORMAL, "Enter keeps it, Esc clears it");
}

/* The question to the user, or the answer to a request. False: nothing. */
static bool draw_question(canvas_t *canvas, int y, const ui_t *ui)
{
    char text[UI_NAME_BYTES + 80];
    int x;
    switch (ui->request.kind) {
    case UI_REQUEST_LIMIT:
        snprintf(text, sizeof(text), "limit of %s: ", ui->request.name);
        x = canvas_text(canvas, y, 0, ATTRIBUTE_TITLE, text);
        x = canvas_text(canvas, y, x, ATTRIBUTE_NORMAL, ui->typed);
        x = canvas_text(canvas, y, x, ATTRIBUTE_SELECTED, " ");
        canvas_text(
            canvas, y, x + 2, ATTRIBUTE_NORMAL, "max, 512MiB, ...; Esc cancels");
        return true;
    case UI_REQUEST_TRIM:
        snprintf(
            text, sizeof(text), "trim %s: return its unused memory? y/n",
            ui->request.name);
        canvas_text(canvas, y, 0, ATTRIBUTE_TITLE, text);
        return true;
    case UI_REQUEST_RESET:
    case UI_REQUEST_NONE:
        break;
    }
    canvas_text(canvas, y, 0, ATTRIBUTE_WARNING, ui->message);
    return ui->message[0] != '\0';
}

static void draw_keys(const page_t *page)
{
    canvas_t *canvas = &page->view->canvas;
    const ui_t *ui = page->ui;
    char text[200];
    int y = canvas->height - 1;
    if (ui->is_typing) {
        draw_filter(canvas, y, ui);
        return;
    }
    if (draw_question(canvas, y, ui)) {
        return;
    }
    if (ui->page == UI_HELP) {
        snprintf(text, sizeof(text), "q quit  any other key: back");
    } else if (ui->page == UI_PROGRAM) {
        snprintf(
            text, sizeof(text),
            "q quit  h help  Esc back  space freeze  p reset peak  l limit  t trim");
    } else {
        snprintf(
            text, sizeof(text),
            "q quit  h help  s sort: %s  / filter%s%s  Enter resources  space freeze",
            ui_sort_names[ui->sort], ui->filter[0] != '\0' ? ": " : "", ui->filter);
    }
    canvas_text(canvas, y, 0, ATTRIBUTE_HEADER, text);
    canvas_paint(canvas, y, ATTRIBUTE_HEADER);
}

/* --- help --------------------------------------------------------------------------------- */

void view_draw_help(const page_t *page, int y)
{
    static const char *const lines[] = {
        "up down j k      select a row; page up, page down: ten rows; home, end",
        "Enter            the resources of the selected program; Esc: back",
        "p l t            of the selected resource: reset its peak, limit it, trim it",
        "P L T            the same of the program on that resource's device",
        "s                sort by the next column",
        "/                filter by command, user, node, device or pid; Esc: all",
        "space            freeze, and continue",
        "mouse            select a row; wheel: up and down",
        "h ?              this help",
        "q                quit",
        "",
        "USED   in live blocks of programs  CACHED  held by pools for later "
        "allocations",
        "OTHERS used according to the driver, less what these programs hold",
        "PEAK   highest since the start or a reset      ALLOC/S  allocations per "
        "second",
    };
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        canvas_text(&page->view->canvas, y + (int)i, 0, ATTRIBUTE_NORMAL, lines[i]);
    }
}

/* --- page --------------------------------------------------------------------------------- */

area_t view_area(const page_t *page, int y)
{
    return (area_t){y, page->view->canvas.height - 1 - y};
}

void view_choose_rows(
    const page_t *page, area_t area, uint32_t count, uint32_t selected)
{
    view_t *view = page->view;
    uint32_t room = area.lines > 0 ? (uint32_t)area.lines : 0;
    view->rows_y = area.y;
    view->all_rows = count;
    view->first_row = room != 0 ? selected / room * room : 0;
    view->row_count = count > view->first_row ? count - view->first_row : 0;
    if (view->row_count > room) {
        view->row_count = room;
    }
}

static int bounded(int value, int most)
{
    if (value < 1) {
        return 1;
    }
    return value < most ? value : most;
}

bool view_make(
    view_t *view, const node_t *node, const history_t *history, const ui_t *ui)
{
    const page_t page = {view, node, history, ui};
    bool is_whole = canvas_clear(
        &view->canvas, bounded(ui->width, VIEW_WIDTH_MAX),
        bounded(ui->height, VIEW_HEIGHT_MAX), ui->is_ascii);
    if (!is_whole) {
        return false;
    }
    view->row_count = view->all_rows = 0;
    draw_title(&page);
    switch (ui->page) {
    case UI_LIST:
        is_whole = view_draw_list(&page, 1);
        break;
    case UI_PROGRAM:
        view_draw_program(&page, 1);
        break;
    case UI_HELP:
        view_draw_help(&page, 2);
        break;
    }
    draw_keys(&page);
    return is_whole;
}

void view_fini(view_t *view)
{
    canvas_fini(&view->canvas);
}
