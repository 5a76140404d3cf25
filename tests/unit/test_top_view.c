/* SPDX-License-Identifier: Apache-2.0 */
/* The pages of rmm-top and its keys, without a terminal. */
#include "harness/harness.h"

#include <stdlib.h>
#include <string.h>

#include "segment/segment_format.h"
#include "top/figure_text.h"
#include "top/tree.h"
#include "top_view_fixture.h"

/* --- helpers ------------------------------------------------------------------------------ */

/* The first line that has this text; -1: none. */
static int find(const char *text)
{
    for (int y = 0; y < view.canvas.height; y++) {
        if (strstr(line(y), text) != NULL) {
            return y;
        }
    }
    return -1;
}

static void assert_shown(const char *text)
{
    if (find(text) < 0) {
        for (int y = 0; y < view.canvas.height; y++) {
            print_message("%s\n", line(y));
        }
        fail_msg("\"%s\" is not shown", text);
    }
}

static void press(uint32_t key)
{
    ui_press(&ui, key, &node, &history);
}

static void type(const char *text)
{
    for (; *text != '\0'; text++) {
        press((unsigned char)*text);
    }
}

static int selected_line(void)
{
    for (int y = 1; y + 1 < view.canvas.height; y++) {
        if (view.canvas.cells[(size_t)y * (size_t)view.canvas.width].attribute ==
            ATTRIBUTE_SELECTED) {
            return y;
        }
    }
    return -1;
}

static void add_three(void)
{
    (void)top_node_program(&node, 1, "small", 1, 10);
    (void)top_node_program(&node, 2, "large", 1, 300);
    (void)top_node_program(&node, 3, "middle", NODE_HOST, 50);
}

/* --- the list ----------------------------------------------------------------------------- */

TEST(shows_devices_and_programs)
{
    add_three();
    node.devices[1].device_free_bytes = 180;
    draw();
    assert_string_equal(line(0), "rmm-top  3 programs");
    assert_shown("gpu0       310B     310B     200B     180B    1000B  [");
    assert_shown(
        "large                                       102 someone   gpu0       300B     "
        "600B     1.2K        -");
    assert_true(find("large") < find("middle") && find("middle") < find("small"));
    assert_int_equal(find("gpu0 ") + 1, find("host "));
}

TEST(a_bar_has_all_parts)
{
    static const char *const expected[] = {
        "[███▒▒▒▒▒▒░░       ]", "[###======xx.......]"};
    const bar_t bar = {166, 334, 111, 1000};
    canvas_t canvas = {.width = 0};
    char text[100];
    for (int ascii = 0; ascii < 2; ascii++) {
        assert_true(canvas_clear(&canvas, 20, 1, ascii == 1));
        assert_int_equal(canvas_bar(&canvas, 0, 0, 20, &bar), 20);
        canvas_line(&canvas, 0, text, sizeof(text));
        assert_string_equal(text, expected[ascii]);
    }
    canvas_fini(&canvas);
}

TEST(a_bar_never_exceeds_its_width)
{
    const bar_t lies[] = {
        {5000, 5000, 5000, 1000}, {1, 1, 1, 1u << 30}, {0, 0, UINT64_MAX, 1}};
    static const char *const expected[] = {
        "[##########]x", "[#=x.......]x", "[xxxxxxxxxx]x"};
    canvas_t canvas = {.width = 0};
    char text[100];
    for (size_t i = 0; i < 3; i++) {
        assert_true(canvas_clear(&canvas, 13, 1, true));
        canvas_text(&canvas, 0, 12, ATTRIBUTE_NORMAL, "x");
        canvas_bar(&canvas, 0, 0, 12, &lies[i]);
        canvas_line(&canvas, 0, text, sizeof(text));
        assert_string_equal(text, expected[i]);
    }
    canvas_fini(&canvas);
}

TEST(says_what_is_missing)
{
    node.forbidden = 2;
    node.refused = 1;
    node.left_out = 7;
    ui.width = 200;
    draw();
    assert_string_equal(
        line(0),
        "rmm-top  0 programs  2 programs of other users cannot be read  1 program "
        "has implausible figures  7 programs left out");
    assert_shown("no program uses the library now");
}

TEST(what_is_not_known_is_no_zero)
{
    node_use_t *use = top_node_program(&node, 1, "a", 1, 0);
    use->figures.current_bytes = FIGURE_UNKNOWN;
    use->figures.peak_bytes = FIGURE_UNKNOWN;
    draw();
    assert_shown("     101 someone   gpu0          -       0B        -        -");
}

TEST(every_size_is_drawn)
{
    static const int sizes[][2] = {{1, 1},  {20, 5},    {3, 80},
                                   {80, 3}, {500, 200}, {0, -4}};
    add_three();
    (void)top_node_resource(&node, 1, 0, "a");
    ui.shown_id = 3;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        ui.width = sizes[i][0];
        ui.height = sizes[i][1];
        for (int page = UI_LIST; page <= UI_HELP; page++) {
            ui.page = (ui_page_t)page;
            draw();
            assert_int_equal(view.canvas.width, sizes[i][0] < 1 ? 1 : sizes[i][0]);
            assert_int_equal(view.canvas.height, sizes[i][1] < 1 ? 1 : sizes[i][1]);
        }
    }
}

TEST(few_lines_are_for_programs)
{
    add_three();
    ui.width = 100;
    ui.height = 5;
    draw();
    assert_int_equal(find("DEVICE     USED"), -1);
    assert_shown("large");
    assert_shown("middle");
}

TEST(many_gpus_leave_room)
{
    top_node_begin(&node, 16);
    add_three();
    draw();
    assert_shown("10 more");
    assert_shown("large");
    ui.height = view_full_height(&node);
    draw();
    assert_shown("gpu15");
    assert_shown("host");
    assert_shown("small");
}

TEST(a_page_larger_than_the_bounds_is_cut)
{
    ui.width = VIEW_WIDTH_MAX + 1;
    ui.height = VIEW_HEIGHT_MAX + 1;
    draw();
    assert_int_equal(view.canvas.width, VIEW_WIDTH_MAX);
    assert_int_equal(view.canvas.height, VIEW_HEIGHT_MAX);
}

/* A line of the devices has 51 columns before the bar, and 2 between. */
TEST(devices_and_their_bars_are_left_out_where_there_is_no_room)
{
    ui.height = 9;
    for (ui.width = 64; ui.width <= 65; ui.width++) {
        draw();
        assert_true(find("DEVICE     USED") > 0);
        assert_int_equal(strchr(line(find("gpu0 ")), '[') != NULL, ui.width == 65);
    }
    ui.height = 8;
    draw();
    assert_int_equal(find("DEVICE     USED"), -1);
}

TEST(devices_that_just_fit_are_all_shown)
{
    top_node_begin(&node, 7); /* and the host: a third of 24 lines */
    draw();
    assert_shown("gpu6");
    assert_shown("host");
    assert_int_equal(find(" more"), -1);
    ui.height = 23;
    draw();
    assert_shown("2 more");
    assert_int_equal(find("host"), -1);
}

TEST(foreign_text_is_one_column_a_character)
{
    (void)top_node_program(
        &node, 1, "caf\xc3\xa9 \xe6\xbc\xa2\xe5\xad\x97 \xcc\x81 \xf0\x9f\x98\x80|", 1,
        10);
    draw();
    assert_shown("caf\xc3\xa9 ?? ? ?|");
    ui.is_ascii = true;
    draw();
    assert_shown("caf? ?? ? ?|");
    (void)top_node_program(&node, 2, "cut \xe6\xbc", 1, 10); /* no clean text */
    draw();
    assert_shown("cut ?");
}

TEST(ascii_is_only_ascii)
{
    add_three();
    (void)top_node_resource(&node, 1, 0, "a");
    (void)top_node_resource(&node, 2, 1, "b");
    ui.is_ascii = true;
    ui.width = 200;
    ui.shown_id = 3;
    for (int page = UI_LIST; page <= UI_HELP; page++) {
        ui.page = (ui_page_t)page;
        draw();
        for (int i = 0; i < view.canvas.width * view.canvas.height; i++) {
            assert_in_range(view.canvas.cells[i].character, ' ', '~');
        }
    }
}

/* --- keys --------------------------------------------------------------------------------- */

TEST(the_selected_row_stays_selected)
{
    add_three();
    press(UI_KEY_DOWN);
    draw();
    assert_int_equal(selected_line(), find("middle"));
    node.uses[2].figures.current_bytes = 1; /* now the last one */
    draw();
    assert_int_equal(selected_line(), find("middle"));
    assert_true(find("middle") > find("small"));
    press(UI_KEY_DOWN);
    press(UI_KEY_DOWN);
    draw();
    assert_int_equal(selected_line(), find("middle"));
    press(UI_KEY_HOME);
    draw();
    assert_int_equal(selected_line(), find("large"));
    press(UI_KEY_END);
    press(UI_KEY_UP);
    draw();
    assert_int_equal(selected_line(), find("small"));
}

TEST(goes_through_more_rows_than_lines)
{
    for (uint64_t i = 1; i <= 100; i++) {
        (void)top_node_program(&node, i, "program", 1, 1000 - i);
    }
    for (int i = 0; i < 99; i++) {
        press(UI_KEY_DOWN);
        draw();
        assert_true(selected_line() > 0);
    }
    assert_shown("     200 someone");
    press(UI_KEY_PAGE_UP);
    draw();
    assert_non_null(strstr(line(selected_line()), "     190 someone"));
}

TEST(sorts_by_each_column)
{
    static const char *const first[UI_SORT_COUNT] = {
        [UI_SORT_CURRENT] = "large", [UI_SORT_RESERVED] = "small",
        [UI_SORT_PEAK] = "middle",   [UI_SORT_RATE] = "small",
        [UI_SORT_PID] = "small",     [UI_SORT_USER] = "middle",
        [UI_SORT_COMMAND] = "large", [UI_SORT_NODE] = "small"};
    add_three();
    node.uses[0].figures.reserved_bytes = 9000;
    node.uses[1].figures.peak_bytes = FIGURE_UNKNOWN; /* last */
    node.uses[2].figures.peak_bytes = 9000;
    strcpy(node.processes[2].user, "anyone");
    for (uint64_t i = 0; i < 2; i++) {
        node.time_ns = i * 1000000000u;
        node.uses[0].figures.total_count = i * 1000;
        assert_true(history_add(&history, &node));
    }
    for (int i = 0; i < UI_SORT_COUNT; i++) {
        assert_int_equal(ui.sort, i);
        draw();
        assert_non_null(strstr(line(view.rows_y), first[i]));
        press('s');
    }
    assert_int_equal(ui.sort, UI_SORT_CURRENT);
}

TEST(a_rate_that_is_not_known_comes_last)
{
    (void)top_node_program(&node, 2, "idle", 1, 10);
    assert_true(history_add(&history, &node));
    top_node_begin(&node, 1);
    node.time_ns = 1000000000u;
    (void)top_node_program(&node, 1, "new", 1, 10);
    (void)top_node_program(&node, 2, "idle", 1, 10);
    (void)top_node_program(&node, 3, "newer", 1, 10);
    assert_true(history_add(&history, &node));
    ui.sort = UI_SORT_RATE;
    draw();
    int y = find("idle");
    assert_true(y > 0);
    assert_int_equal(find("new"), y + 1);
    assert_int_equal(find("newer"), y + 2);
}

TEST(equal_rows_of_a_program_are_in_the_order_of_the_devices)
{
    top_node_begin(&node, 3);
    (void)top_node_program(&node, 1, "everywhere", 3, 50);
    for (uint32_t device = 2; device > 0; device--) {
        node_use_t *use = node_add_use(&node);
        assert_non_null(use);
        *use = node.uses[0];
        use->device = device;
    }
    draw();
    int y = find("someone   gpu0");
    assert_true(y > 0);
    assert_int_equal(find("someone   gpu1"), y + 1);
    assert_int_equal(find("someone   gpu2"), y + 2);
}

TEST(the_filter_is_typed_and_cleared)
{
    add_three();
    press('/');
    type("LARq");
    press(UI_KEY_BACKSPACE);
    draw();
    assert_shown("filter: LAR");
    assert_shown("large");
    assert_int_equal(find("middle"), -1);
    press(UI_KEY_ENTER);
    assert_false(ui.is_typing || ui.is_over);
    draw();
    assert_shown("/ filter: LAR");
    press(UI_KEY_ESCAPE);
    draw();
    assert_shown("middle");
    press('/');
    type("103");
    draw();
    assert_shown("middle");
    assert_int_equal(find("large"), -1);
    press(UI_KEY_ESCAPE);
    press('/');
    for (int i = 0; i < 200; i++) {
        press('z');
    }
    assert_int_equal(strlen(ui.filter), UI_FILTER_BYTES - 1);
    draw();
    assert_shown("no program matches the filter");
    press(UI_KEY_ENTER);
    press(UI_KEY_ENTER); /* no row: nothing to enter */
    assert_int_equal(ui.page, UI_LIST);
}

TEST(help_goes_back_to_the_page_before)
{
    add_three();
    press(UI_KEY_ENTER);
    press('h');
    draw();
    assert_shown("sort by the next column");
    press('x');
    assert_int_equal(ui.page, UI_PROGRAM);
    press(UI_KEY_ESCAPE);
    press('?');
    press('h');
    assert_int_equal(ui.page, UI_LIST);
    press(' ');
    draw();
    assert_shown("FROZEN");
    press('q');
    assert_true(ui.is_over);
}

TEST(a_click_selects_the_row)
{
    add_three();
    ui_click(&ui, 2, &node, &history);
    draw();
    assert_int_equal(selected_line(), find("small"));
    ui_click(&ui, 3, &node, &history); /* below the last one */
    draw();
    assert_int_equal(selected_line(), find("small"));
}

/* --- a program ---------------------------------------------------------------------------- */

TEST(shows_resources_below_their_upstream)
{
    (void)top_node_program(&node, 1, "a", 1, 10);
    (void)top_node_resource(&node, 3, 2, "limit");
    (void)top_node_resource(&node, 2, 1, "pool");
    (void)top_node_resource(&node, 4, 1, "other");
    (void)top_node_resource(&node, 1, 0, "cuda");
    (void)top_node_program(&node, 2, "b", 1, 5);
    (void)top_node_resource(&node, 1, 0, "theirs");
    press(UI_KEY_ENTER);
    draw();
    assert_shown("pid 101  someone  a");
    int y = find("1.cuda");
    assert_int_equal(find("└ 2.pool"), y + 1);
    assert_int_equal(find("  └ 3.limit"), y + 2);
    assert_int_equal(find("└ 4.other"), y + 3);
    assert_int_equal(find("theirs"), -1);
    press(UI_KEY_DOWN);
    draw();
    assert_int_equal(selected_line(), y + 1);
    press(UI_KEY_END);
    draw();
    assert_int_equal(selected_line(), y + 3);
}

/* A program may write any upstream. */
TEST(circles_of_upstreams_end)
{
    static const uint32_t upstreams[][3] = {{1, 2, 3}, {2, 3, 1}, {0, 9, 9}, {3, 3, 2}};
    for (size_t i = 0; i < 4; i++) {
        uint32_t count = 0;
        top_node_begin(&node, 1);
        (void)top_node_program(&node, 1, "a", 1, 10);
        for (uint32_t j = 0; j < 3; j++) {
            (void)top_node_resource(&node, j + 1, upstreams[i][j], "r");
        }
        (void)top_node_resource(&node, 1, 1, "again");
        tree_line_t *lines = tree_make(&node, 0, &count);
        assert_non_null(lines);
        assert_int_equal(count, 4);
        free(lines);
    }
}

TEST(says_that_a_program_has_ended)
{
    add_three();
    press(UI_KEY_ENTER);
    top_node_begin(&node, 1);
    (void)top_node_program(&node, 1, "small", 1, 10);
    draw();
    assert_shown("this program has ended; Esc goes back");
    press(UI_KEY_DOWN);
    press(UI_KEY_ESCAPE);
    draw();
    assert_int_equal(selected_line(), find("small"));
}

TEST(draws_memory_over_time)
{
    for (uint64_t i = 0; i < 4; i++) {
        top_node_begin(&node, 1);
        node.time_ns = i;
        (void)top_node_program(&node, 1, "a", 1, i * 100);
        assert_true(history_add(&history, &node));
    }
    press(UI_KEY_ENTER);
    draw();
    assert_shown("▁▃▆█");
    ui.is_ascii = true;
    draw();
    assert_shown("_,=#");
}

/* --- more of a program -------------------------------------------------------------------- */

static detail_t detail;

/* 1.pool of the program 1 is looked at: two chunks, of which the second has no free cell. */
static void look_at_a_pool(void)
{
    static rmm_blocks_row_t rows[] = {
        {.address = 0x1000, .bytes = 4000, .state = RMM_BLOCK_CHUNK},
        {.address = 0x1000, .bytes = 1000, .state = RMM_BLOCK_USED},
        {.address = 0x1000 + 1000, .bytes = 3000, .state = RMM_BLOCK_FREE},
        {.address = 0x1000 + 3980, .bytes = 4000, .state = RMM_BLOCK_USED}, /* a lie */
        {.address = 0x9000, .bytes = 4000, .state = RMM_BLOCK_CHUNK},
        {.address = 0x9000, .bytes = 4000, .state = RMM_BLOCK_USED}};
    (void)top_node_program(&node, 1, "a", 1, 10);
    (void)top_node_resource(&node, 1, 0, "pool");
    detail = (detail_t){.id = 1, .resource_id = 1, .blocks = rows, .block_count = 6};
    ui.detail = &detail;
    ui.page = UI_PROGRAM;
    ui.shown_id = 1;
    ui.width = 80;
}

TEST(shows_the_blocks_of_the_selected_pool)
{
    look_at_a_pool();
    draw();
    int y = find("BLOCKS of 1, 0 s ago");
    assert_true(y > 0);
    /* 320 cells of 25 bytes: 40 used, 120 free, 160 used */
    for (int x = 0; x < 80; x++) {
        const cell_t *cells = &view.canvas.cells[(size_t)(y + 1) * 80];
        assert_int_equal(cells[x].character, x < 40 ? 0x2588 : 0x2591);
        assert_int_equal(cells[80 + x].character, 0x2591);
        assert_int_equal(cells[160 + x].character, 0x2588);
        assert_int_equal(cells[240 + x].character, 0x2588);
    }
    detail.blocks = NULL;
    draw();
    assert_int_equal(find("BLOCKS"), -1);
}

TEST(shows_findings_and_the_end_of_the_log)
{
    look_at_a_pool();
    detail.is_diagnosed = true;
    detail.findings_total = 12;
    detail.finding_count = 1;
    strcpy(detail.findings[0].text, "out of bounds");
    detail.log_count = DETAIL_LOG_LINES;
    for (uint32_t i = 0; i < detail.log_count; i++) {
        snprintf(detail.log[i].text, DETAIL_LINE_BYTES, "message %u.", i);
    }
    ui.height = 30;
    draw();
    assert_shown("FINDINGS of the diagnosis: 12");
    assert_shown("out of bounds");
    assert_shown("message 31.");
    assert_int_equal(find("message 0."), -1);
    for (ui.height = 1; ui.height < 40; ui.height++) {
        draw(); /* nothing is drawn outside, and the keys are there */
        assert_true(ui.height < 2 || find("Esc back") == ui.height - 1);
        assert_true(ui.height < 9 || find("1.pool") > 0);
    }
    detail.is_hidden = true;
    draw();
    assert_shown("are shown to the program's user and root");
    assert_int_equal(find("out of bounds"), -1);
    ui.shown_id = 2; /* of another program than the one that is looked at */
    draw();
    assert_int_equal(find("are shown to"), -1);
}

TEST(many_resources_leave_room_for_the_rest)
{
    look_at_a_pool();
    for (uint32_t i = 2; i < 100; i++) {
        (void)top_node_resource(&node, i, 0, "pool");
    }
    press(UI_KEY_END);
    draw();
    assert_non_null(strstr(line(selected_line()), "99.pool"));
    assert_true(find("BLOCKS") > selected_line());
    assert_int_equal(ui_resource(&ui, &node)->instance_id, 99);
    ui.shown_id = 7;
    assert_null(ui_resource(&ui, &node));
}

/* --- requests ----------------------------------------------------------------------------- */

static ui_request_t request;

TEST(asks_before_a_trim)
{
    look_at_a_pool();
    press('t');
    draw();
    assert_shown("trim 1.pool: return its unused memory? y/n");
    assert_false(ui_take_request(&ui, &request));
    press('q'); /* an answer, and no key */
    assert_false(ui.is_over);
    assert_false(ui_take_request(&ui, &request));
    draw();
    assert_int_equal(find("shall"), -1);
    press('T');
    press('y');
    assert_true(ui_take_request(&ui, &request));
    assert_int_equal(request.kind, UI_REQUEST_TRIM);
    assert_false(request.is_resource);
    assert_int_equal(request.device, 1);
    assert_int_equal(request.id, 1);
    assert_string_equal(request.name, "the program on gpu0");
    assert_false(ui_take_request(&ui, &request)); /* once */
}

static void type_limit(const char *text)
{
    press('l');
    type(text);
    press(UI_KEY_ENTER);
}

TEST(a_limit_is_typed)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } good[] = {
        {"max", RMM_SEGMENT_NO_LIMIT},
        {"0", 0},
        {"512MiB", 512u << 20},
        {"9223372036854775807", INT64_MAX}};
    static const char *const bad[] = {"-1",      "1.5",   "9223372036854775808",
                                      "maximum", "1 GiB", "99999999TiB"};
    look_at_a_pool();
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        type_limit(good[i].text);
        assert_true(ui_take_request(&ui, &request));
        assert_int_equal(request.kind, UI_REQUEST_LIMIT);
        assert_true(request.is_resource && request.resource_id == 1);
        assert_int_equal(request.limit_bytes, good[i].bytes);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        type_limit(bad[i]);
        assert_false(ui_take_request(&ui, &request));
        draw();
        assert_shown("is not a limit: max, or bytes");
        press(UI_KEY_UP);
        draw();
        assert_int_equal(find("is no limit"), -1);
    }
    type_limit(""); /* nothing was asked for */
    assert_false(ui_take_request(&ui, &request));
    press('l');
    for (int i = 0; i < 100; i++) {
        press('9');
    }
    assert_int_equal(strlen(ui.typed), UI_TYPED_BYTES - 1);
    draw();
    assert_shown("limit of 1.pool: 999");
    ui_click(&ui, 0, &node, &history);
    press(UI_KEY_ESCAPE);
    assert_int_equal(ui.page, UI_PROGRAM);
    assert_false(ui_take_request(&ui, &request));
}

TEST(a_peak_is_reset_at_once)
{
    look_at_a_pool();
    press('p');
    assert_true(ui_take_request(&ui, &request));
    assert_int_equal(request.kind, UI_REQUEST_RESET);
    ui.page = UI_LIST; /* there no program is shown */
    press('p');
    assert_false(ui_take_request(&ui, &request));
    ui.page = UI_PROGRAM;
    ui.shown_id = 9;
    press('p');
    assert_false(ui_take_request(&ui, &request));
    draw();
    assert_shown("no resource is selected");
}

TEST(shows_limits_that_there_are)
{
    look_at_a_pool();
    detail.has_limits = true;
    detail.limit_bytes = detail.program_limit_bytes = RMM_SEGMENT_NO_LIMIT;
    draw();
    assert_int_equal(find("limit of 1"), -1);
    detail.limit_bytes = 1u << 30;
    draw();
    assert_shown("limit of 1: 1.0G, of the program on its device: max");
}

/* --- figures ------------------------------------------------------------------------------ */

TEST(figures_are_short)
{
    static const struct {
        uint64_t value;
        const char *bytes, *count;
    } cases[] = {
        {0, "0B", "0"},
        {999, "999B", "999"},
        {1000, "1000B", "1.0k"},
        {1024, "1.0K", "1.0k"},
        {1048575, "1.0M", "1.0M"},
        {85899345920u, "80.0G", "85.9G"},
        {UINT64_MAX - 1, "16.0E", "18.4E"},
        {FIGURE_UNKNOWN, "-", "-"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_string_equal(figure_bytes(cases[i].value).text, cases[i].bytes);
        assert_string_equal(figure_count(cases[i].value).text, cases[i].count);
        assert_true(strlen(figure_bytes(cases[i].value).text) <= 7);
    }
    assert_string_equal(figure_rate(true, 1234567.0).text, "1.2M");
    assert_string_equal(figure_rate(false, 5.0).text, "-");
    assert_string_equal(figure_fragmentation(1000, 250).text, "75%");
    assert_string_equal(figure_fragmentation(0, 0).text, "0%");
    assert_string_equal(figure_fragmentation(5, 10).text, "0%");
    assert_string_equal(figure_fragmentation(FIGURE_UNKNOWN, 10).text, "-");
}

TEST(what_is_missing_is_a_warning)
{
    node.forbidden = 1;
    ui.width = 200;
    draw();
    const char *where = strstr(line(0), "1 program of another");
    assert_non_null(where);
    size_t x = (size_t)(where - line(0));
    assert_int_equal(view.canvas.cells[x].attribute, ATTRIBUTE_WARNING);
    assert_int_not_equal(view.canvas.cells[x - 3].attribute, ATTRIBUTE_WARNING);
}

TEST(a_filter_matches_whole_pids_and_names_of_devices)
{
    (void)top_node_program(&node, 1, "a", 1, 10);
    node.processes[0].pid = 1234;
    strcpy(ui.filter, "123");
    draw();
    assert_shown("no program matches the filter");
    strcpy(ui.filter, "1234");
    draw();
    assert_true(find("no program matches the filter") < 0);
    strcpy(ui.filter, "GPU0");
    draw();
    assert_true(find("no program matches the filter") < 0);
}

TEST(a_program_without_a_command_or_a_pid_is_shown_by_what_is_known)
{
    (void)top_node_program(&node, 1, "by_comm", 1, 10);
    node.processes[0].command[0] = '\0';
    node.processes[0].pid = 0;
    draw();
    assert_shown("       - someone");
    assert_shown("by_comm");
}
