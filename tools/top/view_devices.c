/* SPDX-License-Identifier: Apache-2.0 */
/* The upper part of the first page: the devices with bars, of one node or of several. */
#include <stdio.h>
#include <string.h>

#include "node/figures.h"
#include "top/figure_text.h"
#include "top/view.h"

#define NAME_WIDTH 6
#define FIGURE_WIDTH 9
#define BAR_LEAST 12
#define BAR_MOST 60
#define CURVE_WIDTH 30
#define HEIGHT_WITH_DEVICES 9
#define SITE_MOST 23

/* --- devices ------------------------------------------------------------------------------ */

static uint64_t known(uint64_t figure)
{
    return figure != FIGURE_UNKNOWN ? figure : 0;
}

/* Draws what is left of the bar, too. index: of the curve; NODE_NO_INDEX: there is none. */
static void draw_device(
    const page_t *page, int y, int x, const node_device_t *device, uint32_t index)
{
    canvas_t *canvas = &page->view->canvas;
    const uint64_t figures[] = {
        device->figures.current_bytes, device->figures.cached_bytes,
        node_others_bytes(device), node_free_bytes(device), device->capacity_bytes};
    x = canvas_left(canvas, y, x, NAME_WIDTH, ATTRIBUTE_TITLE, device->name);
    for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++) {
        x = canvas_right(
            canvas, y, x, FIGURE_WIDTH, ATTRIBUTE_NORMAL,
            figure_bytes(figures[i]).text);
    }
    int width = canvas->width - x - 2;
    width = width < BAR_MOST ? width : BAR_MOST;
    if (device->capacity_bytes != FIGURE_UNKNOWN && width >= BAR_LEAST) {
        uint64_t used = known(figures[0]),
                 reserved = known(device->figures.reserved_bytes);
        const bar_t bar = {
            used, reserved > used ? reserved - used : 0, known(figures[2]),
            device->capacity_bytes};
        x = canvas_bar(canvas, y, x + 2, width, &bar);
    } else {
        x += 2 + width;
    }
    if (canvas->width - x - 2 >= CURVE_WIDTH && index != NODE_NO_INDEX) {
        uint64_t values[HISTORY_SAMPLES];
        size_t count = history_used(
            page->history, HISTORY_DEVICES, index, values, HISTORY_SAMPLES);
        x = canvas_curve(canvas, y, x + 2, CURVE_WIDTH, values, count);
        canvas_text(canvas, y, x + 2, ATTRIBUTE_NORMAL, device->model);
    }
}

static void draw_device_header(canvas_t *canvas, int y, int names_width)
{
    static const char *const names[] = {"USED", "CACHED", "OTHERS", "FREE", "TOTAL"};
    int x = canvas_left(
        canvas, y, 0, names_width, ATTRIBUTE_HEADER, names_width > 0 ? "NODE" : "");
    x = canvas_left(canvas, y, x, NAME_WIDTH, ATTRIBUTE_HEADER, "DEVICE");
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        x = canvas_right(canvas, y, x, FIGURE_WIDTH, ATTRIBUTE_HEADER, names[i]);
    }
    canvas_text(
        canvas, y, x + 2, ATTRIBUTE_HEADER,
        canvas->is_ascii ? "# used  = cached  x others" : "█ used  ▒ cached  ░ others");
    canvas_paint(canvas, y, ATTRIBUTE_HEADER);
}

/* At most a third of the lines, none where there are few; the GPUs first, host memory last. */
static int draw_devices(const page_t *page, int y)
{
    canvas_t *canvas = &page->view->canvas;
    uint32_t count = page->node->device_count, room = (uint32_t)canvas->height / 3;
    if (canvas->height < HEIGHT_WITH_DEVICES) {
        return y;
    }
    draw_device_header(canvas, y++, 0);
    for (uint32_t i = 1; i <= count; i++) {
        if (i >= room && count > room) {
            char text[64];
            snprintf(text, sizeof(text), "%u more", count - i + 1);
            canvas_text(canvas, y++, 0, ATTRIBUTE_WARNING, text);
            break;
        }
        uint32_t index = i < count ? i : NODE_HOST;
        draw_device(page, y++, 0, &page->node->devices[index], index);
    }
    return y;
}

/* --- devices of several nodes ------------------------------------------------------------- */

/* Of the longest, with a space. */
int view_site_width(const node_t *node)
{
    size_t longest = strlen("NODE");
    for (uint32_t i = 0; i < node->site_count; i++) {
        size_t length = strlen(node->sites[i].name);
        longest = length > longest ? length : longest;
    }
    return (int)(longest < SITE_MOST ? longest : SITE_MOST) + 1;
}

static bool is_silent(const node_site_t *site)
{
    return site->reason[0] != '\0';
}

static void add_known(uint64_t *sum, uint64_t figure)
{
    *sum = figure_add_known(*sum, figure);
}

/* All GPUs of a node as one. */
static node_device_t sum_of_site(const node_t *node, uint32_t site)
{
    node_device_t sum = {.name = "gpus"};
    for (uint32_t i = 0; i < node->device_count; i++) {
        const node_device_t *device = &node->devices[i];
        if (device->site == site && !device->is_host) {
            add_known(&sum.figures.current_bytes, device->figures.current_bytes);
            add_known(&sum.figures.reserved_bytes, device->figures.reserved_bytes);
            add_known(&sum.figures.cached_bytes, device->figures.cached_bytes);
            add_known(&sum.capacity_bytes, device->capacity_bytes);
            add_known(&sum.device_free_bytes, node_free_bytes(device));
        }
    }
    return sum;
}

typedef struct site_lines {
    const page_t *page;
    int y, last, width; /* of names */
    uint32_t left_out;
} site_lines_t;

static bool has_line(site_lines_t *lines)
{
    lines->left_out += lines->y > lines->last;
    return lines->y <= lines->last;
}

static void draw_site_name(const site_lines_t *lines, const node_site_t *site)
{
    canvas_left(
        &lines->page->view->canvas, lines->y, 0, lines->width - 1, ATTRIBUTE_TITLE,
        site->name);
}

static void draw_silent_sites(site_lines_t *lines)
{
    const node_t *node = lines->page->node;
    for (uint32_t i = 0; i < node->site_count; i++) {
        if (is_silent(&node->sites[i]) && has_line(lines)) {
            draw_site_name(lines, &node->sites[i]);
            canvas_text(
                &lines->page->view->canvas, lines->y++, lines->width, ATTRIBUTE_WARNING,
                node->sites[i].reason);
        }
    }
}

static void draw_gpus_of_sites(site_lines_t *lines)
{
    const node_t *node = lines->page->node;
    for (uint32_t i = 0; i < node->device_count; i++) {
        const node_device_t *device = &node->devices[i];
        const node_site_t *site = &node->sites[device->site];
        if (!device->is_host && !is_silent(site) && has_line(lines)) {
            draw_site_name(lines, site);
            draw_device(lines->page, lines->y++, lines->width, device, i);
        }
    }
}

static void draw_sums_of_sites(site_lines_t *lines)
{
    const node_t *node = lines->page->node;
    for (uint32_t i = 0; i < node->site_count; i++) {
        if (!is_silent(&node->sites[i]) && has_line(lines)) {
            const node_device_t sum = sum_of_site(node, i);
            draw_site_name(lines, &node->sites[i]);
            draw_device(lines->page, lines->y++, lines->width, &sum, NODE_NO_INDEX);
        }
    }
}

/* Lines that all GPUs need, and the nodes without figures. */
static uint32_t lines_of_gpus(const node_t *node)
{
    uint32_t lines = 0;
    for (uint32_t i = 0; i < node->site_count; i++) {
        lines += is_silent(&node->sites[i]);
    }
    for (uint32_t i = 0; i < node->device_count; i++) {
        const node_device_t *device = &node->devices[i];
        lines += !device->is_host && !is_silent(&node->sites[device->site]);
    }
    return lines;
}

/* In at most a third of the lines: first the nodes without figures, then each GPU of the others, or
 * where that is too much a line a node. */
static int draw_sites(const page_t *page, int y)
{
    canvas_t *canvas = &page->view->canvas;
    int room = canvas->height / 3 - 1;
    if (canvas->height < HEIGHT_WITH_DEVICES) {
        return y;
    }
    site_lines_t lines = {page, y + 1, y + room, view_site_width(page->node), 0};
    draw_device_header(canvas, y, lines.width);
    draw_silent_sites(&lines);
    if (lines_of_gpus(page->node) <= (uint32_t)room) {
        draw_gpus_of_sites(&lines);
    } else {
        lines.last -= page->node->site_count > (uint32_t)room;
        draw_sums_of_sites(&lines);
    }
    if (lines.left_out > 0) {
        char text[64];
        snprintf(text, sizeof(text), "%u more", lines.left_out);
        canvas_text(canvas, lines.y++, 0, ATTRIBUTE_WARNING, text);
    }
    return lines.y;
}

int view_draw_devices(const page_t *page, int y)
{
    return page->node->site_count > 0 ? draw_sites(page, y) : draw_devices(page, y);
}
