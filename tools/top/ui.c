/* SPDX-License-Identifier: Apache-2.0 */
/* The effect of each key; see ui.h. */
#include "top/ui.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/numbers.h"
#include "segment/segment_format.h"

#include "top/rows.h"
#include "top/tree.h"

const char *const ui_sort_names[UI_SORT_COUNT] = {
    [UI_SORT_CURRENT] = "current", [UI_SORT_RESERVED] = "reserved",
    [UI_SORT_PEAK] = "peak",       [UI_SORT_RATE] = "rate",
    [UI_SORT_PID] = "pid",         [UI_SORT_USER] = "user",
    [UI_SORT_COMMAND] = "command", [UI_SORT_NODE] = "node"};

/* --- moving ------------------------------------------------------------------------------- */

static uint32_t move(uint32_t at, uint32_t count, int64_t steps)
{
    int64_t to = (int64_t)at + steps, last = (int64_t)count - 1;
    if (to > last) {
        to = last;
    }
    return to < 0 ? 0 : (uint32_t)to;
}

/* 0: no key that moves. */
static int64_t steps_of(uint32_t key)
{
    switch (key) {
    case UI_KEY_UP:
    case 'k':
        return -1;
    case UI_KEY_DOWN:
    case 'j':
        return 1;
    case UI_KEY_PAGE_UP:
        return -UI_PAGE_ROWS;
    case UI_KEY_PAGE_DOWN:
        return UI_PAGE_ROWS;
    case UI_KEY_HOME:
    case 'g':
        return -(int64_t)UINT32_MAX;
    case UI_KEY_END:
    case 'G':
        return UINT32_MAX;
    default:
        return 0;
    }
}

static void select_row(ui_t *ui, const rows_t *rows, uint32_t index)
{
    if (index < rows->count) {
        ui->selected_id = rows->rows[index].process->id;
        ui->selected_device = rows->rows[index].use->device;
    }
}

static uint32_t resource_count(const ui_t *ui, const node_t *node)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < node->resource_count; i++) {
        count += node->processes[node->resources[i].process].id == ui->shown_id;
    }
    return count;
}

/* --- pages -------------------------------------------------------------------------------- */

static void enter_program(ui_t *ui, const rows_t *rows)
{
    if (rows->count > 0) {
        select_row(ui, rows, rows->selected);
        ui->shown_id = ui->selected_id;
        ui->shown_line = 0;
        ui->page = UI_PROGRAM;
    }
}

static void press_in_list(ui_t *ui, uint32_t key, const rows_t *rows)
{
    int64_t steps = steps_of(key);
    if (steps != 0) {
        select_row(ui, rows, move(rows->selected, rows->count, steps));
    } else if (key == UI_KEY_ENTER) {
        enter_program(ui, rows);
    } else if (key == 's') {
        ui->sort = (ui_sort_t)((ui->sort + 1) % UI_SORT_COUNT);
    } else if (key == '/') {
        ui->is_typing = true;
    } else if (key == UI_KEY_ESCAPE) {
        ui->filter[0] = '\0';
    }
}

/* --- requests ----------------------------------------------------------------------------- */

static ui_request_kind_t request_of(uint32_t key)
{
    switch (key) {
    case 'p':
    case 'P':
        return UI_REQUEST_RESET;
    case 'l':
    case 'L':
        return UI_REQUEST_LIMIT;
    case 't':
    case 'T':
        return UI_REQUEST_TRIM;
    default:
        return UI_REQUEST_NONE;
    }
}

/* Small letters are for the selected resource, capitals for the program on its device. */
static void begin_request(ui_t *ui, uint32_t key, const node_t *node)
{
    const node_resource_t *resource = ui_resource(ui, node);
    if (resource == NULL) {
        snprintf(ui->message, sizeof(ui->message), "no resource is selected");
        return;
    }
    ui_request_t *request = &ui->request;
    *request = (ui_request_t){
        .kind = request_of(key),
        .id = ui->shown_id,
        .is_resource = key >= 'a',
        .resource_id = resource->instance_id,
        .device = resource->device};
    if (request->is_resource) {
        snprintf(
            request->name, sizeof(request->name), "%u.%.48s", resource->instance_id,
            resource->name);
    } else {
        snprintf(
            request->name, sizeof(request->name), "the program on %s",
            node->devices[resource->device].name);
    }
    ui->typed[0] = '\0';
    ui->is_complete = request->kind == UI_REQUEST_RESET;
}

static bool parse_limit(const char *text, uint64_t *limit_out)
{
    if (strcmp(text, "max") == 0) {
        *limit_out = RMM_SEGMENT_NO_LIMIT;
        return true;
    }
    return rmm__number_parse_bytes(text, strlen(text), limit_out) == RMM_NUMBER_OK &&
           *limit_out <= INT64_MAX;
}

static void cancel_request(ui_t *ui)
{
    ui->request.kind = UI_REQUEST_NONE;
}

/* A character into a text, or the last one out of it. ASCII only: what programs are called by is
 * compared byte for byte. */
static void edit(char *text, size_t bytes, uint32_t key)
{
    size_t length = strlen(text);
    if (key == UI_KEY_BACKSPACE && length > 0) {
        text[length - 1] = '\0';
    } else if (key >= ' ' && key < 0x7f && length + 1 < bytes) {
        text[length] = (char)key;
        text[length + 1] = '\0';
    }
}

static void type_limit(ui_t *ui, uint32_t key)
{
    if (key == UI_KEY_ESCAPE || (key == UI_KEY_ENTER && ui->typed[0] == '\0')) {
        cancel_request(ui);
    } else if (key != UI_KEY_ENTER) {
        edit(ui->typed, sizeof(ui->typed), key);
    } else if (parse_limit(ui->typed, &ui->request.limit_bytes)) {
        ui->is_complete = true;
    } else {
        snprintf(
            ui->message, sizeof(ui->message),
            "\"%s\" is not a limit: max, or bytes, also with KiB, MiB, GiB or TiB",
            ui->typed);
        cancel_request(ui);
    }
}

static void answer(ui_t *ui, uint32_t key)
{
    if (ui->request.kind == UI_REQUEST_LIMIT) {
        type_limit(ui, key);
    } else if (key == 'y') {
        ui->is_complete = true;
    } else {
        cancel_request(ui);
    }
}

bool ui_take_request(ui_t *ui, ui_request_t *request_out)
{
    bool is_made = ui->request.kind != UI_REQUEST_NONE && ui->is_complete;
    if (is_made) {
        *request_out = ui->request;
        ui->is_complete = false;
        cancel_request(ui);
    }
    return is_made;
}

static void press_in_program(ui_t *ui, uint32_t key, const node_t *node)
{
    int64_t steps = steps_of(key);
    if (request_of(key) != UI_REQUEST_NONE) {
        begin_request(ui, key, node);
    } else if (steps != 0) {
        ui->shown_line = move(ui->shown_line, resource_count(ui, node), steps);
    } else if (key == UI_KEY_ESCAPE || key == UI_KEY_BACKSPACE || key == UI_KEY_ENTER) {
        ui->page = UI_LIST;
    }
}

static void type(ui_t *ui, uint32_t key)
{
    if (key == UI_KEY_ENTER) {
        ui->is_typing = false;
    } else if (key == UI_KEY_ESCAPE) {
        ui->is_typing = false;
        ui->filter[0] = '\0';
    } else {
        edit(ui->filter, sizeof(ui->filter), key);
    }
}

/* True: one of the keys that do the same on all pages. */
static bool press_anywhere(ui_t *ui, uint32_t key)
{
    switch (key) {
    case 'q':
        ui->is_over = true;
        return true;
    case ' ':
        ui->is_frozen = !ui->is_frozen;
        return true;
    case '?':
    case 'h':
        if (ui->page != UI_HELP) {
            ui->page_before_help = ui->page;
            ui->page = UI_HELP;
            return true;
        }
        return false;
    default:
        return false;
    }
}

void ui_press(ui_t *ui, uint32_t key, const node_t *node, const history_t *history)
{
    rows_t rows;
    ui->message[0] = '\0';
    if (ui->request.kind != UI_REQUEST_NONE) {
        answer(ui, key);
    } else if (ui->is_typing) {
        type(ui, key);
    } else if (press_anywhere(ui, key)) {
        return;
    } else if (ui->page == UI_HELP) {
        ui->page = ui->page_before_help;
    } else if (ui->page == UI_PROGRAM) {
        press_in_program(ui, key, node);
    } else if (rows_make(node, history, ui, &rows)) {
        press_in_list(ui, key, &rows);
        free(rows.rows);
    }
}

const node_resource_t *ui_resource(const ui_t *ui, const node_t *node)
{
    const node_resource_t *found = NULL;
    uint32_t process = 0, count = 0;
    while (process < node->process_count &&
           node->processes[process].id != ui->shown_id) {
        process++;
    }
    tree_line_t *lines = ui->page == UI_PROGRAM && process < node->process_count
                             ? tree_make(node, process, &count)
                             : NULL;
    if (count > 0) {
        found = lines[ui->shown_line < count ? ui->shown_line : 0].resource;
    }
    free(lines);
    return found;
}

void ui_click(ui_t *ui, uint32_t row, const node_t *node, const history_t *history)
{
    rows_t rows;
    if (ui->request.kind != UI_REQUEST_NONE) {
        return; /* it is about the selected row */
    }
    if (ui->page == UI_PROGRAM && row < resource_count(ui, node)) {
        ui->shown_line = row;
    } else if (ui->page == UI_LIST && rows_make(node, history, ui, &rows)) {
        select_row(ui, &rows, row);
        free(rows.rows);
    }
}
