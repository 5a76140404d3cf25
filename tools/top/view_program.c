/* SPDX-License-Identifier: Apache-2.0 */
/* The page of one program: its devices over time, then its resources as a tree. */
#include <stdio.h>
#include <stdlib.h>

#include "top/figure_text.h"
#include "top/tree.h"
#include "top/view.h"

#define NAME_WIDTH 20
#define TYPE_WIDTH 9
#define DEVICE_WIDTH 7
#define FIGURE_WIDTH 9
#define CURVE_LEAST 17 /* as long as its title */
#define CURVE_MOST 60

static uint32_t find_process(const page_t *page)
{
    uint32_t i = 0;
    while (i < page->node->process_count &&
           page->node->processes[i].id != page->ui->shown_id) {
        i++;
    }
    return i;
}

/* As many as have room. */
static int draw_figures(
    canvas_t *canvas, int y, int x, attribute_t attribute, const figure_text_t *figures,
    size_t count)
{
    for (size_t i = 0; i < count && x + FIGURE_WIDTH <= canvas->width; i++) {
        x = canvas_right(canvas, y, x, FIGURE_WIDTH, attribute, figures[i].text);
    }
    return x;
}

/* --- devices ------------------------------------------------------------------------------ */

/* The width of each of two curves side by side after column x, of one where they would be short. */
static int curve_width(const canvas_t *canvas, int x)
{
    int room = canvas->width - x - 2, half = (room - 2) / 2;
    int width = half >= CURVE_LEAST ? half : room;
    return width < CURVE_MOST ? width : CURVE_MOST;
}

static void draw_use(const page_t *page, int y, const node_use_t *use)
{
    canvas_t *canvas = &page->view->canvas;
    double rate = 0;
    bool has_rate = history_rate(page->history, page->ui->shown_id, use->device, &rate);
    const figures_t *figures = &use->figures;
    const figure_text_t texts[] = {
        figure_bytes(figures->current_bytes), figure_bytes(figures->reserved_bytes),
        figure_bytes(figures->peak_bytes),    figure_count(figures->current_count),
        figure_rate(has_rate, rate),          figure_count(figures->oom_count)};
    int x = canvas_left(
        canvas, y, 0, DEVICE_WIDTH, ATTRIBUTE_TITLE,
        page->node->devices[use->device].name);
    x = draw_figures(
        canvas, y, x, ATTRIBUTE_NORMAL, texts, sizeof(texts) / sizeof(texts[0]));
    uint64_t values[HISTORY_SAMPLES];
    int width = curve_width(canvas, x), rates_at = x + 2 + width + 2;
    if (width > 0) {
        size_t count = history_used(
            page->history, page->ui->shown_id, use->device, values, HISTORY_SAMPLES);
        canvas_curve(canvas, y, x + 2, width, values, count);
    }
    if (rates_at + width <= canvas->width) {
        size_t count = history_rates(
            page->history, page->ui->shown_id, use->device, values, HISTORY_SAMPLES);
        canvas_curve(canvas, y, rates_at, width, values, count);
    }
}

static int draw_uses(const page_t *page, int y, uint32_t process)
{
    static const figure_text_t titles[] = {{"CURRENT"}, {"RESERVED"}, {"PEAK"},
                                           {"LIVE"},    {"ALLOC/S"},  {"REFUSED"}};
    canvas_t *canvas = &page->view->canvas;
    int x = canvas_left(canvas, y, 0, DEVICE_WIDTH, ATTRIBUTE_HEADER, "DEVICE");
    x = draw_figures(
        canvas, y, x, ATTRIBUTE_HEADER, titles, sizeof(titles) / sizeof(titles[0]));
    int rates_at = x + 2 + curve_width(canvas, x) + 2;
    canvas_text(canvas, y, x + 2, ATTRIBUTE_HEADER, "CURRENT OVER TIME");
    if (rates_at + CURVE_LEAST <= canvas->width) {
        canvas_text(canvas, y, rates_at, ATTRIBUTE_HEADER, "ALLOC/S OVER TIME");
    }
    canvas_paint(canvas, y++, ATTRIBUTE_HEADER);
    for (uint32_t i = 0; i < page->node->use_count; i++) {
        if (page->node->uses[i].process == process) {
            draw_use(page, y++, &page->node->uses[i]);
        }
    }
    return y;
}

/* --- resources ---------------------------------------------------------------------------- */

/* From left to right: the title, and the text of a resource's figures. */
#define COLUMNS(X)                                                                     \
    X("CURRENT", figure_bytes(figures->current_bytes))                                 \
    X("RESERVED", figure_bytes(figures->reserved_bytes))                               \
    X("PEAK", figure_bytes(figures->peak_bytes))                                       \
    X("FREE", figure_bytes(figures->free_bytes))                                       \
    X("FRAG", figure_fragmentation(figures->free_bytes, figures->largest_free_bytes))  \
    X("LARGEST", figure_bytes(figures->largest_free_bytes))                            \
    X("ALLOCS", figure_count(figures->total_count))                                    \
    X("ASLEEP", figure_bytes(figures->asleep_bytes))
#define TITLE(title, text) {title},
#define TEXT(title, text) text,

static void
draw_resource(const page_t *page, int y, const tree_line_t *line, attribute_t attribute)
{
    canvas_t *canvas = &page->view->canvas;
    const node_resource_t *resource = line->resource;
    const figures_t *figures = &resource->figures;
    const figure_text_t texts[] = {COLUMNS(TEXT)};
    char name[160];
    int indent = line->depth < NAME_WIDTH / 4 ? (int)line->depth * 2 : NAME_WIDTH / 2;
    snprintf(
        name, sizeof(name), "%*s%s%u.%s", indent > 2 ? indent - 2 : 0, "",
        indent == 0        ? ""
        : canvas->is_ascii ? "` "
                           : "└ ",
        resource->instance_id, resource->name);
    int x = canvas_left(canvas, y, 0, NAME_WIDTH - 1, attribute, name) + 1;
    x = canvas_left(canvas, y, x, TYPE_WIDTH - 1, attribute, resource->type) + 1;
    x = canvas_left(
        canvas, y, x, DEVICE_WIDTH - 1, attribute,
        page->node->devices[resource->device].name);
    draw_figures(canvas, y, x, attribute, texts, sizeof(texts) / sizeof(texts[0]));
    canvas_paint(canvas, y, attribute);
}

static void draw_resource_header(canvas_t *canvas, int y)
{
    static const figure_text_t titles[] = {COLUMNS(TITLE)};
    int x = canvas_left(canvas, y, 0, NAME_WIDTH, ATTRIBUTE_HEADER, "RESOURCE");
    x = canvas_left(canvas, y, x, TYPE_WIDTH, ATTRIBUTE_HEADER, "TYPE");
    x = canvas_left(canvas, y, x, DEVICE_WIDTH - 1, ATTRIBUTE_HEADER, "DEVICE");
    draw_figures(
        canvas, y, x, ATTRIBUTE_HEADER, titles, sizeof(titles) / sizeof(titles[0]));
    canvas_paint(canvas, y, ATTRIBUTE_HEADER);
}

/* The resources have half of the lines, and more where the rest needs less. Takes from *area what
 * remains for that. */
static area_t divide(const page_t *page, uint32_t count, area_t *area)
{
    int wanted = view_detail_lines(page);
    int rows = count < 1 ? 1 : count < (uint32_t)area->lines ? (int)count : area->lines;
    int most =
        area->lines - wanted > area->lines / 2 ? area->lines - wanted : area->lines / 2;
    if (wanted == 0 || area->lines < 4) {
        return (area_t){0, 0};
    }
    rows = rows < most ? rows : most;
    const area_t detail = {area->y + rows, area->lines - rows};
    area->lines = rows;
    return detail;
}

static void draw_resources(const page_t *page, int y, uint32_t process)
{
    uint32_t count = 0;
    tree_line_t *lines = tree_make(page->node, process, &count);
    if (lines == NULL) {
        return;
    }
    draw_resource_header(&page->view->canvas, y++);
    uint32_t selected = page->ui->shown_line < count ? page->ui->shown_line : 0;
    area_t area = view_area(page, y), detail = divide(page, count, &area);
    view_choose_rows(page, area, count, selected);
    for (uint32_t i = 0; i < page->view->row_count; i++) {
        uint32_t index = page->view->first_row + i;
        draw_resource(
            page, y + (int)i, &lines[index],
            index == selected ? ATTRIBUTE_SELECTED : ATTRIBUTE_NORMAL);
    }
    if (count == 0) {
        canvas_text(
            &page->view->canvas, y, 0, ATTRIBUTE_NORMAL,
            "this program publishes no resource");
    }
    if (detail.lines > 0) {
        view_draw_detail(page, detail);
    }
    free(lines);
}

void view_draw_program(const page_t *page, int y)
{
    canvas_t *canvas = &page->view->canvas;
    uint32_t index = find_process(page);
    char text[480], label[CGROUP_LABEL_BYTES];
    if (index == page->node->process_count) {
        canvas_text(
            canvas, y, 0, ATTRIBUTE_WARNING, "this program has ended; Esc goes back");
        return;
    }
    const node_process_t *process = &page->node->processes[index];
    cgroup_label(&process->group, label);
    const char *site =
        page->node->site_count > 0 ? page->node->sites[process->site].name : "";
    snprintf(
        text, sizeof(text), "%s%spid %d  %s  %s%s%s", site, site[0] != '\0' ? "  " : "",
        (int)process->pid, process->user, label, label[0] != '\0' ? "  " : "",
        process->command[0] != '\0' ? process->command : process->comm);
    canvas_text(canvas, y, 0, ATTRIBUTE_TITLE, text);
    y = draw_uses(page, y + 1, index);
    draw_resources(page, y, index);
}
