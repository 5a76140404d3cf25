/* SPDX-License-Identifier: Apache-2.0 */
/* The first page: the devices (view_devices.c), then the programs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "top/figure_text.h"
#include "top/rows.h"
#include "top/view.h"

#define FIGURE_WIDTH 9
#define NAME_LEAST 16
#define NAME_NARROW 12 /* where nothing else would fit */
#define NAME_MOST 28   /* beside the whole command line */

/* --- which columns ------------------------------------------------------------------------ */

typedef enum column_id {
    COLUMN_COMMAND,
    COLUMN_NODE,
    COLUMN_PID,
    COLUMN_USER,
    COLUMN_DEVICE,
    COLUMN_CURRENT,
    COLUMN_RESERVED,
    COLUMN_PEAK,
    COLUMN_RATE,
    COLUMN_OWNER,
    COLUMN_LINE,
    COLUMN_COUNT
} column_id_t;

typedef struct column {
    const char *title;
    int width; /* the least, with a space; < 0: flush left */
    ui_sort_t sort;
} column_t;

/* From left to right. */
static const column_t columns[COLUMN_COUNT] = {
    [COLUMN_COMMAND] = {"COMMAND", -NAME_LEAST, UI_SORT_COMMAND},
    [COLUMN_NODE] = {"NODE", -1, UI_SORT_NODE}, /* as wide as the names are */
    [COLUMN_PID] = {"PID", 8, UI_SORT_PID},
    [COLUMN_USER] = {"USER", -9, UI_SORT_USER},
    [COLUMN_DEVICE] = {"DEVICE", -6, UI_SORT_COUNT},
    [COLUMN_CURRENT] = {"CURRENT", FIGURE_WIDTH, UI_SORT_CURRENT},
    [COLUMN_RESERVED] = {"RESERVED", FIGURE_WIDTH, UI_SORT_RESERVED},
    [COLUMN_PEAK] = {"PEAK", FIGURE_WIDTH, UI_SORT_PEAK},
    [COLUMN_RATE] = {"ALLOC/S", FIGURE_WIDTH, UI_SORT_RATE},
    [COLUMN_OWNER] = {"OWNER", -23, UI_SORT_COUNT},
    [COLUMN_LINE] = {"COMMAND LINE", -60, UI_SORT_COUNT},
};

/* What has room goes on the line in this order, and stays away from there on. */
static const column_id_t by_importance[] = {COLUMN_COMMAND,  COLUMN_NODE,   COLUMN_PID,
                                            COLUMN_CURRENT,  COLUMN_DEVICE, COLUMN_PEAK,
                                            COLUMN_RESERVED, COLUMN_USER,   COLUMN_RATE,
                                            COLUMN_OWNER,    COLUMN_LINE};

/* 0: not shown. */
typedef struct layout {
    int widths[COLUMN_COUNT];
} layout_t;

static int space_before(column_id_t column)
{
    return columns[column].width < 0 && column != COLUMN_COMMAND;
}

static bool has_owners(const node_t *node)
{
    bool has_owner = false;
    for (uint32_t i = 0; i < node->process_count && !has_owner; i++) {
        const cgroup_t *group = &node->processes[i].group;
        has_owner = group->job[0] != '\0' || group->pod[0] != '\0' ||
                    group->container[0] != '\0' || group->unit[0] != '\0';
    }
    return has_owner;
}

/* What remains of the line is the program's, or that of its whole command line. */
static layout_t choose_columns(const node_t *node, int width)
{
    layout_t layout = {.widths = {0}};
    size_t count = sizeof(by_importance) / sizeof(by_importance[0]);
    for (size_t i = 0; i < count; i++) {
        column_id_t column = by_importance[i];
        int wanted = abs(columns[column].width) + space_before(column);
        if (column == COLUMN_COMMAND &&
            width < NAME_LEAST + columns[COLUMN_PID].width) {
            wanted = NAME_NARROW;
        }
        if (column == COLUMN_NODE) {
            wanted = view_site_width(node);
        }
        if ((column == COLUMN_OWNER && !has_owners(node)) ||
            (column == COLUMN_NODE && node->site_count == 0)) {
            continue;
        }
        if (wanted > width && column != COLUMN_COMMAND) {
            break;
        }
        layout.widths[column] = wanted;
        width -= wanted;
    }
    column_id_t elastic =
        layout.widths[COLUMN_LINE] != 0 ? COLUMN_LINE : COLUMN_COMMAND;
    if (elastic == COLUMN_LINE && width > 0) {
        int more = NAME_MOST - NAME_LEAST;
        more = more < width ? more : width;
        layout.widths[COLUMN_COMMAND] += more;
        width -= more;
    }
    layout.widths[elastic] += width;
    return layout;
}

static void draw_cells(
    canvas_t *canvas, int y, attribute_t attribute, const layout_t *layout,
    const char *const texts[COLUMN_COUNT])
{
    int x = 0;
    for (column_id_t i = 0; i < COLUMN_COUNT; i++) {
        int width = layout->widths[i], space = space_before(i);
        if (width == 0) {
            continue;
        }
        if (columns[i].width < 0) {
            x += space;
            x = canvas_left(canvas, y, x, width - space, attribute, texts[i]);
        } else {
            x = canvas_right(canvas, y, x, width, attribute, texts[i]);
        }
    }
    canvas_paint(canvas, y, attribute);
}

static void draw_program_header(const page_t *page, int y, const layout_t *layout)
{
    const char *titles[COLUMN_COUNT];
    char marked[16];
    for (size_t i = 0; i < COLUMN_COUNT; i++) {
        titles[i] = columns[i].title;
        if (columns[i].sort == page->ui->sort) {
            bool is_left = columns[i].width < 0;
            snprintf(marked, sizeof(marked), is_left ? "%s*" : "*%s", columns[i].title);
            titles[i] = marked;
        }
    }
    draw_cells(&page->view->canvas, y, ATTRIBUTE_HEADER, layout, titles);
}

/* --- programs ----------------------------------------------------------------------------- */

static const char *command_of(const node_process_t *process)
{
    return process->command[0] != '\0' ? process->command : process->comm;
}

/* Without the folders of the program and of its script, behind options or not: the column is
 * narrow, and the programs of one folder would look alike. */
static void shorten_command(char *shortened, size_t size, const char *command)
{
    size_t used = 0;
    for (int paths = 0; *command != '\0' && used + 1 < size;) {
        size_t length = strcspn(command, " "), skip = 0;
        const char *name = memrchr(command, '/', length);
        bool is_path = paths == 0 || command[0] == '/' || command[0] == '.';
        if (paths < 2 && is_path) {
            skip = name != NULL && name + 1 < command + length
                       ? (size_t)(name + 1 - command)
                       : 0;
            paths++;
        }
        length += strspn(command + length, " ");
        size_t copied =
            length - skip < size - used - 1 ? length - skip : size - used - 1;
        memcpy(shortened + used, command + skip, copied);
        used += copied;
        command += length;
    }
    shortened[used] = '\0';
}

static void draw_row(
    canvas_t *canvas, int y, const layout_t *layout, const row_t *row, bool is_selected)
{
    const node_process_t *process = row->process;
    char pid[16] = "-", user[40], program[320] = "", owner[CGROUP_LABEL_BYTES];
    const figures_t *figures = &row->use->figures;
    figure_text_t current = figure_bytes(figures->current_bytes);
    figure_text_t reserved = figure_bytes(figures->reserved_bytes);
    figure_text_t peak = figure_bytes(figures->peak_bytes);
    figure_text_t rate = figure_rate(row->has_rate, row->rate);
    if (process->pid > 0) {
        snprintf(pid, sizeof(pid), "%d", (int)process->pid);
    }
    snprintf(user, sizeof(user), "%.9s", process->user);
    cgroup_label(&process->group, owner);
    shorten_command(program, sizeof(program), command_of(process));
    const char *const texts[COLUMN_COUNT] = {
        program,       row->site, pid,       user,  row->device->name,  current.text,
        reserved.text, peak.text, rate.text, owner, command_of(process)};
    draw_cells(
        canvas, y, is_selected ? ATTRIBUTE_SELECTED : ATTRIBUTE_NORMAL, layout, texts);
}

bool view_draw_list(const page_t *page, int y)
{
    canvas_t *canvas = &page->view->canvas;
    rows_t rows;
    if (!rows_make(page->node, page->history, page->ui, &rows)) {
        return false;
    }
    y = view_draw_devices(page, y);
    const layout_t layout = choose_columns(page->node, canvas->width);
    draw_program_header(page, y++, &layout);
    view_choose_rows(page, view_area(page, y), rows.count, rows.selected);
    for (uint32_t i = 0; i < page->view->row_count; i++) {
        uint32_t index = page->view->first_row + i;
        draw_row(
            canvas, y + (int)i, &layout, &rows.rows[index], index == rows.selected);
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
    int devices = (int)node->device_count + (int)node->site_count + 1;
    int height = 1 + devices + 1 + (int)node->use_count + 2;
    return height > devices * 3 + 3 ? height : devices * 3 + 3;
}
