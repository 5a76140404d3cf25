/* SPDX-License-Identifier: Apache-2.0 */
/* Whose a program is: its column in rmm-top, the filter, and JSON there and back. */
#include "harness/harness.h"

#include <string.h>

#include "top/node_json.h"
#include "top/view.h"
#include "top_node.h"

static history_t history;
static node_t node;

static int begin(void **state)
{
    history_init(&history);
    node_init(&node);
    top_node_begin(&node, 1);
    (void)top_node_program(&node, 1, "train", 1, 10);
    strcpy(node.processes[0].group.job, "4711");
    strcpy(node.processes[0].group.step, "0");
    return 0;
}

static int finish(void **state)
{
    history_fini(&history);
    node_fini(&node);
    return 0;
}

#define TEST(name) TEST_CASE_WITH(name, begin, finish)

static bool shows(const ui_t *ui, const char *text)
{
    char line[VIEW_WIDTH_MAX * CANVAS_CHARACTER_BYTES + 1];
    view_t view = {.rows_y = 0};
    bool is_shown = false;
    assert_true(view_make(&view, &node, &history, ui));
    for (int y = 0; y < view.canvas.height; y++) {
        canvas_line(&view.canvas, y, line, sizeof(line));
        is_shown = is_shown || strstr(line, text) != NULL;
    }
    view_fini(&view);
    return is_shown;
}

TEST(a_wide_list_has_a_column)
{
    ui_t ui = {.width = 99, .height = 24};
    assert_false(shows(&ui, "OWNER"));
    assert_false(shows(&ui, "slurm 4711.0"));
    ui.width = 101;
    assert_true(shows(&ui, "OWNER"));
    assert_true(shows(&ui, "slurm 4711.0"));
    assert_true(shows(&ui, "train"));
}

TEST(a_filter_finds_it_and_the_page_of_the_program_has_it)
{
    ui_t ui = {.width = 80, .height = 24};
    strcpy(ui.filter, "4711.0");
    assert_true(shows(&ui, "train"));
    strcpy(ui.filter, "4711.1");
    assert_false(shows(&ui, "train"));
    ui = (ui_t){.width = 80, .height = 24, .page = UI_PROGRAM, .shown_id = 1};
    assert_true(shows(&ui, "someone  slurm 4711.0  train"));
}

TEST(json_has_it_there_and_back)
{
    node_t read;
    strcpy(node.processes[0].group.container, "web");
    json_t *json = node_json(&node);
    assert_non_null(json);
    node_init(&read);
    assert_int_equal(node_from_json(json, NULL, NULL, &read), NODE_PARSED);
    assert_string_equal(read.processes[0].group.job, "4711");
    assert_string_equal(read.processes[0].group.step, "0");
    assert_string_equal(read.processes[0].group.container, "web");
    assert_string_equal(read.processes[0].group.unit, "");
    node_fini(&read);
    json_decref(json);
}
