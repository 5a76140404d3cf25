/* SPDX-License-Identifier: Apache-2.0 */
/* The first page: the devices with bars, then the programs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "top/figure_text.h"
#include "top/rows.h"
#include "top/view.h"

#define NAME_WIDTH 6
#define FIGURE_WIDTH 9
#define BAR_LEAST 12
#define BAR_MOST 60
#define CURVE_WIDTH 30
#define HEIGHT_WITH_DEVICES 9
#define WIDTH_WITH_OWNERS 120

/* --- devices ------------------------------------------------------------------------------ */

static uint64_t known(uint64_t figure)
{
    return figure != FIGURE_UNKNOWN ? figure : 0;
}

static void draw_device(const page_t *page, int y, uint32_t index)
{
    canvas_t *canvas = &page->view->canvas;
    const node_device_t *device = &page->node->devices[index];
    const uint64_t figures[] = {
        device->figures.current_bytes, device->figures.cached_bytes,
        node_others_bytes(device), node_free_bytes(device), device->capacity_bytes};
    int x = canvas_left(canvas, y, 0, NAME_WIDTH, ATTRIBUTE_TITLE, device->name);
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
    if (canvas->width - x - 2 >= CURVE_WIDTH) {
        uint64_t values[HISTORY_SAMPLES];
        size_t count = history_used(
            page->history, HISTORY_DEVICES, index, values, HISTORY_SAMPLES);
        x = canvas_curve(canvas, y, x + 2, CURVE_WIDTH, values, count);
        canvas_text(canvas, y, x + 2, ATTRIBUTE_NORMAL, device->model);
    }
}

static void draw_device_header(canvas_t *canvas, int y)
{
    static const char *const names[] = {"USED", "CACHED", "OTHERS", "FREE", "TOTAL"};
    int x = canvas_left(canvas, y, 0, NAME_WIDTH, ATTRIBUTE_HEADER, "DEVICE");
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
    draw_device_header(canvas, y++);
    for (uint32_t i = 1; i <= count; i++) {
        if (i >= room && count > room) {
            char text[64];
            snprintf(text, sizeof(text), "%u more", count - i + 1);
            canvas_text(canvas, y++, 0, ATTRIBUTE_WARNING, text);
            break;
        }
        draw_device(page, y++, i < count ? i : NODE_HOST);
    }
    return y;
}

/* --- programs ----------------------------------------------------------------------------- */

typedef struct column {
    const char *title;
    int width; /* < 0: flush left; 0: the rest of the line */
    ui_sort_t sort;
    bool is_of_wide; /* only where there is much room */
} column_t;

static const column_t columns[] = {
    {"PID", 8, UI_SORT_PID, false},
    {" USER", -11, UI_SORT_USER, false},
    {"DEVICE", -6, UI_SORT_COUNT, false},
    {"CURRENT", FIGURE_WIDTH, UI_SORT_CURRENT, false},
    {"RESERVED", FIGURE_WIDTH, UI_SORT_RESERVED, false},
    {"PEAK", FIGURE_WIDTH, UI_SORT_PEAK, false},
    {"ALLOC/S", FIGURE_WIDTH, UI_SORT_RATE, false},
    {"  OWNER", -24, UI_SORT_COUNT, true},
    {"  COMMAND", 0, UI_SORT_COMMAND, false},
};
#define COLUMNS (sizeof(columns) / sizeof(columns[0]))

static void draw_cells(
    canvas_t *canvas, int y, attribute_t attribute, const char *const texts[COLUMNS])
{
    int x = 0;
    for (size_t i = 0; i < COLUMNS; i++) {
        int width = columns[i].width;
        if (columns[i].is_of_wide && canvas->width < WIDTH_WITH_OWNERS) {
            continue;
        }
        if (width == 0) {
            width = canvas->width - x > 0 ? canvas->width - x : 0;
            x = canvas_left(canvas, y, x, width, attribute, texts[i]);
        } else if (width < 0) {
            x = canvas_left(canvas, y, x, -width, attribute, texts[i]);
        } else {
            x = canvas_right(canvas, y, x, width, attribute, texts[i]);
        }
    }
    canvas_paint(canvas, y, attribute);
}

static void draw_program_header(const page_t *page, int y)
{
    const char *titles[COLUMNS];
    char marked[16];
    for (size_t i = 0; i < COLUMNS; i++) {
        titles[i] = columns[i].title;
        if (columns[i].sort == page->ui->sort) {
            bool is_left = columns[i].width <= 0;
            snprintf(marked, sizeof(marked), is_left ? "%s*" : "*%s", columns[i].title);
            titles[i] = marked;
        }
    }
    draw_cells(&page->view->canvas, y, ATTRIBUTE_HEADER, titles);
}

static const char *command_of(const node_process_t *process)
{
    return process->command[0] != '\0' ? process->command : process->comm;
}

/* Behind the folders of a path that begins the text. */
static const char *without_folders(const char *text)
{
    const char *end = text + strcspn(text, " ");
    const char *name = memrchr(text, '/', (size_t)(end - text));
    return name != NULL && name + 1 < end ? name + 1 : text;
}

/* Without the folders of the program and of its script: the column is narrow, and the programs of
 * one folder would look alike. */
static void shorten_command(char *shortened, size_t size, const char *command)
{
    const char *program = without_folders(command);
    int length = (int)strcspn(program, " ");
    const char *rest = program + length;
    if (rest[0] == ' ' && rest[1] == '/') {
        rest = without_folders(rest + 1);
        snprintf(shortened, size, "  %.*s %s", length, program, rest);
    } else {
        snprintf(shortened, size, "  %s", program);
    }
}

static void draw_row(canvas_t *canvas, int y, const row_t *row, bool is_selected)
{
    char pid[16] = "-", user[40], command[320], label[CGROUP_LABEL_BYTES], owner[40];
    const figures_t *figures = &row->use->figures;
    figure_text_t current = figure_bytes(figures->current_bytes);
    figure_text_t reserved = figure_bytes(figures->reserved_bytes);
    figure_text_t peak = figure_bytes(figures->peak_bytes);
    figure_text_t rate = figure_rate(row->has_rate, row->rate);
    if (row->process->pid > 0) {
        snprintf(pid, sizeof(pid), "%d", (int)row->process->pid);
    }
    snprintf(user, sizeof(user), " %.9s", row->process->user);
    cgroup_label(&row->process->group, label);
    snprintf(owner, sizeof(owner), "  %.22s", label);
    shorten_command(command, sizeof(command), command_of(row->process));
    const char *const texts[COLUMNS] = {pid,          user,          row->device->name,
                                        current.text, reserved.text, peak.text,
                                        rate.text,    owner,         command};
    draw_cells(canvas, y, is_selected ? ATTRIBUTE_SELECTED : ATTRIBUTE_NORMAL, texts);
}

bool view_draw_list(const page_t *page, int y)
{
    canvas_t *canvas = &page->view->canvas;
    rows_t rows;
    if (!rows_make(page->node, page->history, page->ui, &rows)) {
        return false;
    }
    y = draw_devices(page, y);
    draw_program_header(page, y++);
    view_choose_rows(page, view_area(page, y), rows.count, rows.selected);
    for (uint32_t i = 0; i < page->view->row_count; i++) {
        uint32_t index = page->view->first_row + i;
        draw_row(canvas, y + (int)i, &rows.rows[index], index == rows.selected);
    }
    if (rows.count == 0) {
        canvas_text(
            canvas, y, 0, ATTRIBUTE_NORMAL,
            page->node->use_count == 0 ? "no program uses the library now"
                                       : "no program matches the filter");
    }
    free(rows.rows);
    return true;
}

int view_full_height(const node_t *node)
{
    int devices = (int)node->device_count + 1;
    int height = 1 + devices + 1 + (int)node->use_count + 2;
    return height > devices * 3 + 3 ? height : devices * 3 + 3;
}
