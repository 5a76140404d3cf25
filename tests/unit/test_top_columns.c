/* SPDX-License-Identifier: Apache-2.0 */
/* Which columns the list of programs has at a width, and how a program is named there. */
#include "harness/harness.h"

#include <string.h>

#include "top_view_fixture.h"

/* The line before the first program. */
static const char *header(void)
{
    return line(view.rows_y - 1);
}

static const char *row(void)
{
    return line(view.rows_y);
}

static bool has(const char *text, const char *part)
{
    bool is_there = strstr(text, part) != NULL;
    if (!is_there) {
        print_message("\"%s\" is not in\n\"%s\"\n", part, text);
    }
    return is_there;
}

TEST(a_command_is_shown_without_folders)
{
    static const struct {
        const char *command, *shown;
    } cases[] = {
        {"/usr/bin/python3 /srv/train.py --x /d", "python3 train.py --x /d  "},
        {"python3 -u /srv/train.py /data", "python3 -u train.py /data  "},
        {"../bin/serve", "serve  "},
        {"/ /. x", "/ . x  "},
        {"/usr/bin/ x", "/usr/bin/ x"}};
    (void)top_node_program(&node, 1, "", 1, 10);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        strcpy(node.processes[0].command, cases[i].command);
        draw();
        assert_string_equal(strstr(row(), cases[i].shown), row());
    }
}

TEST(the_width_decides_which_columns_are_shown)
{
    static const struct {
        int width;
        const char *header, *row;
    } cases[] = {
        {60, "COMMAND                PID DEVICE *CURRENT RESERVED     PEAK",
         "python3 train.py -     101 gpu0        10B      20B      40B"},
        {80, "PID USER      DEVICE *CURRENT RESERVED     PEAK  ALLOC/S",
         "python3 train.py --     101 someone   gpu0  "},
        {120, "PEAK  ALLOC/S OWNER", "- slurm 4711"},
        {200, "OWNER                   COMMAND LINE",
         "slurm 4711              /usr/bin/python3 /srv/train.py --batch 32"}};
    (void)top_node_program(
        &node, 1, "/usr/bin/python3 /srv/train.py --batch 32", 1, 10);
    strcpy(node.processes[0].group.job, "4711");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        ui.width = cases[i].width;
        draw();
        assert_true(has(header(), cases[i].header));
        assert_true(has(row(), cases[i].row));
    }
}

TEST(the_name_is_first_at_every_width)
{
    (void)top_node_program(
        &node, 1, "/usr/bin/python3 /srv/train.py --batch 32", 1, 10);
    for (ui.width = 12; ui.width < 250; ui.width++) {
        draw();
        assert_int_equal(strncmp(row(), "python3 trai", 12), 0);
        assert_true(ui.width < 20 || has(row(), " 101"));
        assert_true(ui.width < 60 || has(row(), "python3 train.py"));
    }
}

TEST(owners_have_a_column_where_there_are_owners)
{
    (void)top_node_program(&node, 1, "/usr/bin/python3", 1, 10);
    ui.width = 140;
    draw();
    assert_null(strstr(header(), "OWNER"));
    assert_true(has(header(), "COMMAND LINE"));
    assert_true(has(row(), "/usr/bin/python3"));
    strcpy(node.processes[0].group.job, "4711");
    draw();
    assert_true(has(header(), "OWNER"));
    assert_null(strstr(header(), "COMMAND LINE"));
}
