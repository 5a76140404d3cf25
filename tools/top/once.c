/* SPDX-License-Identifier: Apache-2.0 */
/* Prints one reading; see once.h. */
#include "top/once.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "common/error.h"
#include "common/output.h"
#include "common/standard_output.h"
#include "core/numbers.h"
#include "top/node_json.h"
#include "top/page.h"
#include "top/terminal.h"
#include "top/view.h"

#define WIDTH_USUAL 100

static int width_of_output(void)
{
    struct winsize size;
    const char *columns = getenv("COLUMNS");
    uint64_t width;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
        return size.ws_col;
    }
    return columns != NULL &&
                   rmm__number_parse(columns, strlen(columns), &width) ==
                       RMM_NUMBER_OK &&
                   width > 0 && width <= VIEW_WIDTH_MAX
               ? (int)width
               : WIDTH_USUAL;
}

/* The last line has the keys of the live page. */
static void print_lines(const canvas_t *canvas)
{
    char text[VIEW_WIDTH_MAX * CANVAS_CHARACTER_BYTES + 1];
    int last = canvas->height - 2;
    for (canvas_line(canvas, last, text, sizeof(text)); last > 0 && text[0] == '\0';) {
        canvas_line(canvas, --last, text, sizeof(text));
    }
    for (int y = 0; y <= last; y++) {
        canvas_line(canvas, y, text, sizeof(text));
        puts(text);
    }
}

static bool print_page(const options_t *options, const node_t *node)
{
    history_t history;
    view_t view = {.rows_y = 0};
    ui_t ui = {
        .sort = options->sort,
        .width = width_of_output(),
        .height = view_full_height(node),
        .is_ascii = !terminal_is_utf8()};
    history_init(&history);
    snprintf(ui.filter, sizeof(ui.filter), "%s", options->filter);
    bool is_whole = view_make(&view, node, &history, &ui);
    if (is_whole) {
        print_lines(&view.canvas);
        if (view.all_rows > view.row_count) {
            printf("%u more\n", view.all_rows - view.row_count);
        }
    }
    view_fini(&view);
    return is_whole;
}

static bool say_failure(const source_t *source)
{
    tool_error("%s", source_failure(source));
    return false;
}

/* Figures are read after the wait for the blocks, so that both are of one time. */
static bool take_with_blocks(source_t *source, node_t *node)
{
    const sampler_t *sampler = source_sampler(source);
    if (!source_take_one(source, node)) {
        return false;
    }
    if (sampler == NULL) {
        return true;
    }
    page_ask_for_blocks(sampler, node);
    return source_take_one(source, node);
}

static bool say_not_written(const char *path)
{
    tool_error("cannot write %.200s: %s", path, strerror(errno));
    return false;
}

bool once_write_html(const options_t *options, source_t *source)
{
    node_t node;
    output_t output;
    if (!output_open(&output, options->html)) {
        return say_not_written(options->html);
    }
    node_init(&node);
    bool is_whole = take_with_blocks(source, &node) &&
                    page_write(output.file, source_sampler(source), &node, time(NULL));
    node_fini(&node);
    if (!is_whole) {
        output_discard(&output);
        return say_failure(source);
    }
    return output_commit(&output) || say_not_written(options->html);
}

bool once_print_page(const options_t *options, source_t *source)
{
    node_t node;
    node_init(&node);
    bool is_whole = source_take_one(source, &node) && print_page(options, &node);
    node_fini(&node);
    return is_whole ? standard_output_end(true) : say_failure(source);
}

bool once_print_json(source_t *source)
{
    node_t node;
    node_init(&node);
    json_t *json = source_take_one(source, &node) ? node_json(&node) : NULL;
    node_fini(&node);
    if (json == NULL) {
        return say_failure(source);
    }
    bool is_written = json_dumpf(json, stdout, JSON_INDENT(2)) == 0 && puts("") >= 0;
    json_decref(json);
    return standard_output_end(is_written);
}
