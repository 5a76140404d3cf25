/* SPDX-License-Identifier: Apache-2.0 */
/* A node of one program and the view of rmm-top on it, as a test of what is drawn begins. */
#ifndef RMM_TESTS_UNIT_TOP_VIEW_FIXTURE_H
#define RMM_TESTS_UNIT_TOP_VIEW_FIXTURE_H

#include "harness/harness.h"
#include "top/view.h"
#include "top_node.h"

static history_t history;
static node_t node;
static view_t view;
static ui_t ui;

static int begin(void **state)
{
    history_init(&history);
    node_init(&node);
    top_node_begin(&node, 1);
    ui = (ui_t){.width = 100, .height = 24};
    return 0;
}

static int finish(void **state)
{
    history_fini(&history);
    node_fini(&node);
    view_fini(&view);
    return 0;
}

#define TEST(name) TEST_CASE_WITH(name, begin, finish)

static void draw(void)
{
    assert_true(view_make(&view, &node, &history, &ui));
}

static const char *line(int y)
{
    static char text[VIEW_WIDTH_MAX * CANVAS_CHARACTER_BYTES + 1];
    canvas_line(&view.canvas, y, text, sizeof(text));
    return text;
}

#endif /* RMM_TESTS_UNIT_TOP_VIEW_FIXTURE_H */
