/* SPDX-License-Identifier: Apache-2.0 */
/* Several nodes: their addresses, their snapshots put together, and how rmm-top shows them. */
#include "harness/harness.h"

#include <string.h>

#include "top/fleet_node.h"
#include "top/node_json.h"
#include "top/view.h"
#include "top_node.h"

/* --- addresses ---------------------------------------------------------------------------- */

TEST_CASE(an_address_is_completed)
{
    static const struct {
        const char *text, *url, *name;
    } cases[] = {
        {"node1", "http://node1:19400/json", "node1"},
        {"node1.example.org", "http://node1.example.org:19400/json", "node1"},
        {"node1:80", "http://node1:80/json", "node1"},
        {"192.0.2.7", "http://192.0.2.7:19400/json", "192.0.2.7"},
        {"[2001:db8::1]", "http://[2001:db8::1]:19400/json", "[2001:db8::1]"},
        {"http://node1:19400/metrics", "http://node1:19400/json", "node1"},
        {"https://node1/", "https://node1/json", "node1"},
        {"https://node1/rmm/json", "https://node1/rmm/json", "node1"}};
    char url[FLEET_URL_BYTES], name[NODE_SITE_BYTES];
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_true(fleet_node_address(cases[i].text, url, name));
        assert_string_equal(url, cases[i].url);
        assert_string_equal(name, cases[i].name);
    }
}

TEST_CASE(what_is_no_address_is_refused)
{
    static const char *const cases[] = {
        "",        "a b",        "a,b",           "ftp://a", "file:///etc/passwd",
        "http://", "a:99999",    "a\nb",          "\x1b[2J", "caf\xc3\xa9",
        "[::1",    "gopher://a", "http://a:port/"};
    char url[FLEET_URL_BYTES], name[NODE_SITE_BYTES], longest[FLEET_URL_BYTES + 1];
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (fleet_node_address(cases[i], url, name)) {
            fail_msg("\"%s\" is taken as %s", cases[i], url);
        }
    }
    memset(longest, 'a', sizeof(longest));
    longest[FLEET_URL_BYTES] = '\0';
    assert_false(fleet_node_address(longest, url, name));
}

/* --- several nodes ------------------------------------------------------------------------ */

static node_t node;
static history_t history;
static view_t view;
static ui_t ui;

/* Two GPUs and a program of so many bytes. */
static void add_site(const char *name, const char *reason, uint64_t bytes)
{
    node_t one;
    node_site_t *site = node_add_site(&node);
    assert_non_null(site);
    strcpy(site->name, name);
    strcpy(site->reason, reason);
    site->time_ns = 1;
    node_init(&one);
    top_node_begin(&one, 2);
    if (reason[0] == '\0') {
        (void)top_node_program(&one, bytes, "train", 2, bytes);
    }
    one.forbidden = 1;
    assert_true(node_append(&node, &one));
    node_fini(&one);
}

static int begin(void **state)
{
    node_init(&node);
    history_init(&history);
    ui = (ui_t){.width = 100, .height = 40};
    add_site("first", "", 100);
    add_site("second", "does not answer within 3 s", 0);
    add_site("third", "", 300);
    return 0;
}

static int finish(void **state)
{
    node_fini(&node);
    history_fini(&history);
    view_fini(&view);
    return 0;
}

#define TEST(name) TEST_CASE_WITH(name, begin, finish)

static const char *line(int y)
{
    static char text[VIEW_WIDTH_MAX * CANVAS_CHARACTER_BYTES + 1];
    canvas_line(&view.canvas, y, text, sizeof(text));
    return text;
}

static int find(const char *text)
{
    int y = 0;
    while (y < view.canvas.height && strstr(line(y), text) == NULL) {
        y++;
    }
    return y < view.canvas.height ? y : -1;
}

static void draw(void)
{
    assert_true(view_make(&view, &node, &history, &ui));
}

TEST(snapshots_are_put_together)
{
    assert_int_equal(node.site_count, 3);
    assert_int_equal(node.device_count, 9);
    assert_int_equal(node.process_count, 2);
    assert_int_equal(node.forbidden, 3);
    assert_int_equal(node.uses[1].process, 1);
    assert_int_equal(node.uses[1].device, 8);
    assert_int_equal(node.devices[8].site, 2);
    assert_int_equal(node.processes[1].site, 2);
}

TEST(each_gpu_has_a_line_with_its_node)
{
    draw();
    assert_non_null(strstr(line(0), "2 programs  3 nodes  1 has no figures"));
    assert_int_equal(find("second does not answer within 3 s"), 2);
    assert_int_equal(find("first  gpu0         0B"), 3);
    assert_int_equal(find("third  gpu1       300B"), 6);
    assert_int_equal(find("host"), -1);
    assert_non_null(strstr(line(view.rows_y), " third "));
    assert_non_null(strstr(line(view.rows_y - 1), " NODE "));
}

TEST(a_node_has_one_line_where_there_are_many_gpus)
{
    ui.height = 16; /* of which 4 are for nodes */
    draw();
    assert_int_equal(find("second does not answer within 3 s"), 2);
    assert_int_equal(find("first  gpus       100B     100B"), 3);
    assert_int_equal(find("third  gpus       300B     300B"), 4);
    assert_int_equal(find("gpu1"), find("train"));
    ui.height = 9;
    draw();
    assert_true(find("3 more") > 0 || find("2 more") > 0);
}

TEST(every_size_is_drawn)
{
    for (ui.height = 1; ui.height < 40; ui.height++) {
        for (ui.width = 1; ui.width < 130; ui.width += 7) {
            draw();
            assert_int_equal(view.canvas.height, ui.height);
        }
    }
}

TEST(a_filter_and_an_order_know_nodes)
{
    strcpy(ui.filter, "thir");
    draw();
    assert_int_equal(view.row_count, 1);
    ui.filter[0] = '\0';
    ui.sort = UI_SORT_NODE;
    draw();
    assert_non_null(strstr(line(view.rows_y), "first"));
    assert_non_null(strstr(line(view.rows_y + 1), "third"));
}

TEST(json_names_nodes_and_leaves_out_those_without_figures)
{
    json_t *json = node_json(&node);
    assert_non_null(json);
    const json_t *sites = json_object_get(json, "nodes");
    assert_int_equal(json_array_size(sites), 3);
    assert_true(json_is_null(json_object_get(json_array_get(sites, 0), "error")));
    assert_string_equal(
        json_string_value(json_object_get(json_array_get(sites, 1), "error")),
        "does not answer within 3 s");
    const json_t *devices = json_object_get(json, "devices");
    static const char *const names[] = {"gpu0", "gpu1", "host", "gpu0", "gpu1", "host"};
    assert_int_equal(json_array_size(devices), 6);
    for (size_t i = 0; i < 6; i++) {
        const json_t *device = json_array_get(devices, i);
        assert_string_equal(
            json_string_value(json_object_get(device, "device")), names[i]);
        assert_string_equal(
            json_string_value(json_object_get(device, "node")),
            i < 3 ? "first" : "third");
    }
    json_decref(json);
}

TEST(a_node_that_has_not_answered_again_gets_no_new_sample)
{
    double rate;
    uint64_t values[HISTORY_SAMPLES];
    for (uint64_t i = 1; i <= 4; i++) {
        node.sites[0].time_ns = i * 1000000000u;
        node.uses[0].figures.total_count = i * 10;
        assert_true(history_add(&history, &node));
    }
    assert_true(history_rate(&history, 100, 2, &rate));
    assert_true(rate > 9.9 && rate < 10.1);
    assert_int_equal(history_used(&history, 100, 2, values, HISTORY_SAMPLES), 4);
    assert_int_equal(history_used(&history, 300, 8, values, HISTORY_SAMPLES), 1);
    node.layout++; /* indexes mean other devices now */
    assert_true(history_add(&history, &node));
    assert_int_equal(history_used(&history, 100, 2, values, HISTORY_SAMPLES), 1);
}
