/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Histories that are made here, and what the page and the trace have of them. Both are read back
 * with jansson.
 */
#include "harness/harness.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fenv.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <jansson.h>

#include "common/output.h"
#include "timeline/json_text.h"
#include "timeline/page.h"
#include "timeline/page_calls.h"
#include "timeline/page_map.h"
#include "timeline/page_peak.h"
#include "timeline/trace.h"

static history_t history;

static int make_history(void **state)
{
    history_init(&history);
    assert_true(history_add_text(&history.resources, "resource 1"));
    assert_true(history_add_text(&history.streams, "stream 1"));
    return 0;
}

static int drop_history(void **state)
{
    history_fini(&history);
    return 0;
}

#define CASE(name) TEST_CASE_WITH(name, make_history, drop_history)

static void add_of(
    int32_t device, uint64_t address, uint64_t bytes, uint64_t begin_ns,
    uint64_t end_ns)
{
    assert_true(history_add_block(
        &history, &(history_block_t){
                      .address = address,
                      .bytes = bytes,
                      .begin_ns = begin_ns,
                      .end_ns = end_ns,
                      .first_user = HISTORY_NONE,
                      .last_user = HISTORY_NONE,
                      .device = device}));
}

static void add(uint64_t address, uint64_t bytes, uint64_t begin_ns, uint64_t end_ns)
{
    add_of(0, address, bytes, begin_ns, end_ns);
}

/* --- reading back --------------------------------------------------------------------- */

static json_t *load(const char *text, size_t bytes)
{
    json_error_t error;
    json_t *value = json_loadb(text, bytes, 0, &error);

    if (value == NULL) {
        fail_msg("%s at %d", error.text, error.position);
    }
    return value;
}

static json_t *load_trace(void)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    json_t *trace = NULL;

    assert_non_null(out);
    trace_write(&history, out);
    assert_int_equal(fclose(out), 0);
    trace = load(text, bytes);
    free(text);
    return trace;
}

static json_t *load_page(void)
{
    static const char begin[] = "id=\"data\">";
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    char *data = NULL;
    json_t *page = NULL;

    assert_non_null(out);
    assert_true(page_write(&history, out));
    assert_int_equal(fclose(out), 0);
    data = strstr(text, begin);
    assert_non_null(data);
    data += strlen(begin);
    page = load(data, (size_t)(strstr(data, "</script>") - data));
    free(text);
    return page;
}

static int64_t number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);

    assert_true(json_is_integer(value));
    return json_integer_value(value);
}

static int64_t item(const json_t *array, size_t i)
{
    assert_true(json_is_integer(json_array_get(array, i)));
    return json_integer_value(json_array_get(array, i));
}

static bool has_text(const json_t *object, const char *key, const char *text)
{
    const char *value = json_string_value(json_object_get(object, key));

    return value != NULL && strcmp(value, text) == 0;
}

/* --- texts ---------------------------------------------------------------------------- */

CASE(a_text_is_a_string_of_json_and_harmless_in_html)
{
    static const char given[] = "a\"b\\c</script>\n\x01\x7f&\xc3\xa4";
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    json_t *value = NULL;

    assert_non_null(out);
    json_text_put(out, given);
    assert_int_equal(fclose(out), 0);
    assert_null(strpbrk(text, "<>&\n"));
    value = json_loads(text, JSON_DECODE_ANY, NULL);
    assert_string_equal(json_string_value(value), given);
    json_decref(value);
    free(text);
}

CASE(texts_that_are_not_clean_become_so)
{
    assert_true(history_add_text(&history.names, "a\nb\xff\xc3\xa4"));
    assert_true(history_add_text(&history.names, ""));
    assert_string_equal(history.names.items[0], "a?b?\xc3\xa4");
    assert_string_equal(history_text(&history.names, 1, "none"), "");
    assert_string_equal(history_text(&history.names, 2, "none"), "none");
    assert_string_equal(history_text(&history.names, HISTORY_NONE, "none"), "none");
}

CASE(a_title_that_is_not_clean_becomes_so)
{
    json_t *trace = NULL, *page = NULL, *track = NULL;

    strcpy(history.title, "log\xff\xc3.csv");
    assert_true(history_finish(&history));
    trace = load_trace();
    page = load_page();
    track = json_array_get(json_object_get(trace, "traceEvents"), 0);
    assert_true(has_text(json_object_get(track, "args"), "name", "log??.csv"));
    assert_true(has_text(page, "title", "log??.csv"));
    json_decref(trace);
    json_decref(page);
}

/* --- peaks ---------------------------------------------------------------------------- */

CASE(without_anything_both_are_empty)
{
    json_t *trace = NULL, *page = NULL;

    assert_true(history_finish(&history));
    trace = load_trace();
    page = load_page();
    assert_int_equal(json_array_size(json_object_get(trace, "traceEvents")), 2);
    assert_int_equal(json_array_size(json_object_get(page, "blocks")), 0);
    assert_int_equal(json_array_size(json_object_get(page, "regions")), 0);
    assert_int_equal(json_array_size(json_object_get(page, "locations")), 0);
    assert_int_equal(number(page, "span"), 0);
    json_decref(trace);
    json_decref(page);
}

CASE(each_location_has_its_own_peak)
{
    add_of(0, 0x1000, 100, 10, 20);
    add_of(0, 0x2000, 50, 15, HISTORY_LIVE);
    add_of(HISTORY_HOST, 0x9000, 70, 30, 40);
    assert_true(history_finish(&history));
    assert_int_equal(history.location_count, 2);
    assert_int_equal(history_location_of(&history, 0)->peak_bytes, 150);
    assert_int_equal(history_location_of(&history, 0)->peak_count, 2);
    assert_int_equal(history_location_of(&history, 0)->peak_ns, 15);
    assert_int_equal(history_location_of(&history, HISTORY_HOST)->peak_bytes, 70);
    assert_null(history_location_of(&history, 1));
    assert_int_equal(history.begin_ns, 10);
    assert_int_equal(history.end_ns, 40);
    assert_true(history.blocks[1].is_left);
    assert_int_equal(history.blocks[1].end_ns, 40);
}

CASE(what_ends_at_the_moment_of_the_peak_holds_it)
{
    json_t *page = NULL;
    const json_t *location = NULL, *holders = NULL;

    add(0x1000, 100, 10, 20);
    add(0x2000, 50, 20, 30);
    add(0x3000, 7, 20, 20);
    assert_true(history_finish(&history));
    page = load_page();
    location = json_array_get(json_object_get(page, "locations"), 0);
    holders = json_object_get(location, "holders");
    assert_int_equal(number(location, "peak_bytes"), 157);
    assert_int_equal(json_array_size(holders), 3);
    assert_int_equal(item(json_array_get(holders, 0), 0), 100);
    assert_int_equal(item(json_array_get(holders, 1), 0), 50);
    assert_int_equal(item(json_array_get(holders, 2), 0), 7);
    json_decref(page);
}

CASE(holders_beyond_those_shown_are_summed_up)
{
    json_t *page = NULL;
    const json_t *location = NULL, *holders = NULL;

    for (uint32_t i = 0; i < PAGE_HOLDERS_MAX + 5; i++) {
        char name[16];

        snprintf(name, sizeof(name), "kernel %u", i);
        assert_true(history_add_text(&history.names, name));
        add(0x1000 * (i + 1), 1000 - i, i, HISTORY_LIVE);
        history.blocks[i].first_user = i;
    }
    add(0x900000, 1000, 500, HISTORY_LIVE); /* of the same kernel as the first */
    history.blocks[PAGE_HOLDERS_MAX + 5].first_user = 0;
    assert_true(history_finish(&history));
    page = load_page();
    location = json_array_get(json_object_get(page, "locations"), 0);
    holders = json_object_get(location, "holders");
    assert_int_equal(json_array_size(holders), PAGE_HOLDERS_MAX);
    assert_int_equal(item(json_array_get(holders, 0), 0), 2000);
    assert_int_equal(item(json_array_get(holders, 0), 1), 2);
    assert_int_equal(item(json_array_get(holders, 0), 3), 0);
    assert_int_equal(item(json_array_get(holders, 1), 0), 999);
    assert_int_equal(
        item(json_object_get(location, "others"), 0), 960 + 959 + 958 + 957 + 956);
    assert_int_equal(item(json_object_get(location, "others"), 1), 5);
    json_decref(page);
}

/* --- bounds --------------------------------------------------------------------------- */

CASE(a_counter_with_many_changes_keeps_its_peak)
{
    const uint64_t changes = 2 * TRACE_POINTS_MAX;
    json_t *trace = NULL, *event = NULL;
    size_t i, points = 0;
    int64_t most = 0, last = -1;

    for (uint64_t block = 0; block < changes / 2; block++) {
        add(0x1000, block == 31337 ? 999 : 100, 4 * block, 4 * block + 2);
    }
    assert_true(history_finish(&history));
    trace = load_trace();
    json_array_foreach(json_object_get(trace, "traceEvents"), i, event)
    {
        if (has_text(event, "name", "live bytes, device 0")) {
            last = number(json_object_get(event, "args"), "bytes");
            most = last > most ? last : most;
            points++;
        }
    }
    assert_int_equal(points, TRACE_POINTS_MAX + 1);
    assert_int_equal(most, 999);
    assert_int_equal(last, 0);
    json_decref(trace);
}

/* Blocks that fill the lower half of the map, and small ones above them. */
CASE(blocks_that_are_not_drawn_alone_shade_the_grid)
{
    const uint64_t count = PAGE_BLOCKS_MAX, small = 1000;
    json_t *page = NULL;
    const char *grid = NULL;
    size_t shades = 0;

    for (uint64_t i = 0; i < count; i++) {
        add(i * 100, 100, 0, 1000000);
    }
    for (uint64_t i = 0; i < small; i++) {
        add(count * 100 + i * (count * 100 / small), 50, 500000, 750000);
    }
    assert_true(history_finish(&history));
    page = load_page();
    assert_int_equal(json_array_size(json_object_get(page, "blocks")), count);
    assert_int_equal(number(page, "together"), small);
    grid = json_string_value(json_object_get(page, "grid"));
    assert_int_equal(strlen(grid), 2 * PAGE_GRID_COLUMNS * PAGE_GRID_ROWS);
    for (size_t cell = 0; cell < PAGE_GRID_COLUMNS * PAGE_GRID_ROWS; cell++) {
        bool is_free = strncmp(&grid[2 * cell], "00", 2) == 0;
        size_t column = cell % PAGE_GRID_COLUMNS;
        bool is_then = column >= PAGE_GRID_COLUMNS / 2 - 1 &&
                       column <= PAGE_GRID_COLUMNS * 3 / 4 + 1;
        bool is_above = cell / PAGE_GRID_COLUMNS >= PAGE_GRID_ROWS / 2 - 1;

        assert_true(is_free || (is_then && is_above));
        shades += !is_free;
    }
    assert_in_range(
        shades, PAGE_GRID_COLUMNS * PAGE_GRID_ROWS / 8 - 2 * PAGE_GRID_COLUMNS,
        PAGE_GRID_COLUMNS * PAGE_GRID_ROWS / 8 + 2 * PAGE_GRID_COLUMNS);
    json_decref(page);
}

CASE(blocks_without_bytes_have_no_place_in_the_grid)
{
    json_t *page = NULL;

    for (uint64_t i = 0; i < PAGE_BLOCKS_MAX + 10; i++) {
        add(4096, 0, i, i + 1);
    }
    assert_true(history_finish(&history));
    assert_int_equal(feclearexcept(FE_ALL_EXCEPT), 0);
    page = load_page();
    assert_int_equal(fetestexcept(FE_INVALID | FE_DIVBYZERO), 0);
    assert_int_equal(number(page, "together"), 10);
    assert_int_equal(
        strspn(json_string_value(json_object_get(page, "grid")), "0"),
        2 * PAGE_GRID_COLUMNS * PAGE_GRID_ROWS);
    json_decref(page);
}

CASE(regions_are_joined_until_they_are_few)
{
    json_t *page = NULL;
    const json_t *regions = NULL;

    for (uint64_t i = 0; i < 5000; i++) {
        add(i << 30, 4096, i, HISTORY_LIVE);
    }
    add(1ull << 50, 4096, 5000, HISTORY_LIVE);
    assert_true(history_finish(&history));
    page = load_page();
    regions = json_object_get(page, "regions");
    assert_in_range(json_array_size(regions), 2, PAGE_REGIONS_MAX);
    assert_int_equal(item(json_array_get(regions, 1), 1), 4096);
    json_decref(page);
}

CASE(blocks_at_the_end_of_all_addresses_have_a_place)
{
    json_t *page = NULL;

    add(UINT64_MAX - 4095, 4096, 0, 10); /* its end is no address */
    add(0, 1ull << 60, 20, 30);
    assert_true(history_finish(&history));
    page = load_page();
    assert_int_equal(number(page, "block_count"), 2);
    json_decref(page);
}

/* Of so long a time a nanosecond is less than what a double tells apart. */
CASE(times_that_nobody_has_are_in_some_bin)
{
    json_t *page = NULL;

    add(0x1000, 100, 0, 10);
    add(0x2000, 100, 1ull << 62, HISTORY_LIVE);
    for (uint64_t i = 0; i <= PAGE_CALLS_MAX; i++) {
        assert_true(history_add_call(
            &history, &(history_call_t){.when_ns = 1ull << 62, .name = HISTORY_NONE}));
    }
    assert_true(history_finish(&history));
    assert_int_equal(history_bin(&history, 0, 10), 0);
    assert_int_equal(history_bin(&history, 1ull << 61, 10), 5);
    assert_int_equal(history_bin(&history, 1ull << 62, 10), 9);
    page = load_page();
    assert_int_equal(json_array_size(json_object_get(page, "calls")), 1);
    json_decref(page);
}

CASE(launches_close_together_are_one)
{
    json_t *page = NULL, *call = NULL;
    size_t i;
    int64_t sum = 0;

    for (uint64_t when = 0; when < 3 * PAGE_CALLS_MAX; when++) {
        assert_true(history_add_call(
            &history, &(history_call_t){.when_ns = when, .name = HISTORY_NONE}));
    }
    assert_true(history_finish(&history));
    page = load_page();
    json_array_foreach(json_object_get(page, "calls"), i, call)
    {
        sum += item(call, 3);
    }
    assert_int_equal(sum, 3 * PAGE_CALLS_MAX);
    assert_in_range(i, PAGE_CALLS_MAX / 4, PAGE_CALLS_MAX);
    json_decref(page);
}

/* --- files ---------------------------------------------------------------------------- */

static char folder[96];

static int make_folder(void **state)
{
    const char *parent = getenv("TMPDIR");

    snprintf(
        folder, sizeof(folder), "%.64s/rmm-output.XXXXXX",
        parent != NULL ? parent : "/tmp");
    return mkdtemp(folder) != NULL ? 0 : -1;
}

static int drop_folder(void **state)
{
    char path[128];

    snprintf(path, sizeof(path), "%s/file", folder);
    (void)unlink(path);
    return rmdir(folder); /* nothing else is left */
}

#define FILE_CASE(name) TEST_CASE_WITH(name, make_folder, drop_folder)

FILE_CASE(a_file_appears_whole_or_not_at_all)
{
    char path[128];
    output_t output;
    struct stat status;
    mode_t mask = umask(027);

    snprintf(path, sizeof(path), "%s/file", folder);
    assert_true(output_open(&output, path));
    assert_true(fputs("text", output.file) >= 0);
    output_discard(&output);
    assert_int_equal(access(path, F_OK), -1);
    assert_true(output_open(&output, path));
    assert_true(fputs("text", output.file) >= 0);
    assert_int_equal(access(path, F_OK), -1);
    assert_true(output_commit(&output));
    umask(mask);
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_size, 4);
    assert_int_equal(status.st_mode & 0777, 0640);
    output_discard(&output); /* it is closed: nothing happens */
    assert_int_equal(access(path, F_OK), 0);
}

/* As after SIGKILL. drop_folder() fails if something is left. */
FILE_CASE(a_process_that_is_killed_leaves_nothing)
{
    char path[128];
    output_t output;
    int status = 0, unnamed = open(folder, O_TMPFILE | O_WRONLY, 0600);
    pid_t pid = 0;

    if (unnamed < 0) {
        print_message("%s: no O_TMPFILE\n", folder);
        skip();
    }
    close(unnamed);
    snprintf(path, sizeof(path), "%s/file", folder);
    pid = fork();
    if (pid == 0) {
        bool is_open = output_open(&output, path) && fputs("text", output.file) >= 0 &&
                       fflush(output.file) == 0;
        _exit(is_open ? EXIT_SUCCESS : EXIT_FAILURE);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

/* Each replaces the one before, as two processes that write the same file. */
FILE_CASE(the_last_that_is_whole_is_the_file)
{
    char path[128], text[8] = "";
    output_t first, second;
    FILE *file = NULL;

    snprintf(path, sizeof(path), "%s/file", folder);
    assert_true(output_open(&first, path));
    assert_true(output_open(&second, path));
    assert_true(fputs("first", first.file) >= 0);
    assert_true(fputs("second", second.file) >= 0);
    assert_true(output_commit(&second));
    assert_true(output_commit(&first));
    file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(fgets(text, sizeof(text), file));
    assert_string_equal(text, "first");
    fclose(file);
}

FILE_CASE(what_cannot_be_opened_says_why)
{
    char path[128];
    output_t output;

    assert_false(output_open(&output, folder));
    assert_int_equal(errno, EISDIR);
    snprintf(path, sizeof(path), "%s/none/file", folder);
    assert_false(output_open(&output, path));
    assert_int_equal(errno, ENOENT);
    output_discard(&output);
}
