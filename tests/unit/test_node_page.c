/* SPDX-License-Identifier: Apache-2.0 */
/* The page of the node: what texts become, how bars are cut, and that it ends. */
#include "harness/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "page/map_svg.h"
#include "page/node_page.h"
#include "page/order.h"

typedef struct buffer {
    char *bytes;
    size_t length, room;
} buffer_t;

static buffer_t buffer;
static rmm_sink_t sink;
static rmm_page_t page;

static void put(void *to, const char *bytes, size_t length)
{
    buffer_t *target = to;
    while (target->length + length + 1 > target->room) {
        target->room = target->room == 0 ? 4096 : target->room * 2;
        target->bytes = realloc(target->bytes, target->room);
        assert_non_null(target->bytes);
    }
    memcpy(target->bytes + target->length, bytes, length);
    target->length += length;
    target->bytes[target->length] = '\0';
}

static int begin(void **state)
{
    buffer.length = 0;
    sink = (rmm_sink_t){.put = put, .to = &buffer};
    rmm__page_begin(&page, &sink, "host", 0, true);
    return 0;
}

static int finish(void **state)
{
    free(buffer.bytes);
    buffer = (buffer_t){.bytes = NULL};
    return 0;
}

#define LEGEND_RECTS 9u /* two of them make its pattern */
#define TEST(name) TEST_CASE_WITH(name, begin, finish)

static void assert_has(const char *text)
{
    if (strstr(buffer.bytes, text) == NULL) {
        fail_msg("\"%s\" is not in: %s", text, buffer.bytes);
    }
}

static uint32_t count_of(const char *text)
{
    uint32_t count = 0;
    for (const char *at = buffer.bytes; (at = strstr(at, text)) != NULL; at++) {
        count++;
    }
    return count;
}

static const rmm_page_program_t program = {
    .pid = "42", .user = "someone", .command = "a", .state = "", .owner = ""};

static void put_resource(const char *name)
{
    const rmm_page_resource_t resource = {
        .name = name,
        .type = "pool",
        .device = "gpu0",
        .figures = {.current_bytes = 100, .reserved_bytes = 1000, .padding_bytes = 50},
        .free_bytes = 850,
        .largest_free_bytes = 600};
    rmm__page_resource(&page, &resource);
}

/* --- texts -------------------------------------------------------------------------------- */

TEST(texts_are_escaped)
{
    const rmm_page_program_t evil = {
        .pid = "<i>",
        .user = "\"'&",
        .command = "</summary><script>\n\x7f\xe2\x80\xae",
        .state = "<b>",
        .owner = "<a>"};
    assert_true(rmm__page_begin_program(&page, &evil));
    assert_has("<details id=\"p&lt;i&gt;\" class=\"ended\">"
               "<summary class=\"row\"><i></i><b class=\"t\">&lt;i&gt;</b>"
               "<span class=\"t\" title=\"&lt;/summary&gt;&lt;script&gt;?????\">"
               "&lt;/summary&gt;&lt;script&gt;????? <em>(&lt;b&gt;)</em></span>"
               "<span class=\"t\">&quot;&#39;&amp;</span>"
               "<span class=\"t\">&lt;a&gt;</span>");
    put_resource("<u>");
    assert_has("<td class=\"t\">&lt;u&gt;</td>");
    assert_null(strstr(buffer.bytes, "<script"));
}

/* A printed line is cut, so a text of a program must not be in one. */
TEST(long_texts_are_whole)
{
    char command[2000];
    memset(command, 'x', sizeof(command) - 1);
    command[sizeof(command) - 1] = '\0';
    rmm_page_program_t named = program;
    named.command = command;
    assert_true(rmm__page_begin_program(&page, &named));
    assert_has(command);
}

/* --- bars --------------------------------------------------------------------------------- */

TEST(a_bar_is_cut_at_the_whole)
{
    const rmm_page_device_t lies = {
        .name = "gpu0",
        .model = "",
        .current_bytes = 700,
        .reserved_bytes = 5000,
        .cached_bytes = 4300,
        .others_bytes = 900,
        .free_bytes = 0,
        .capacity_bytes = 1000};
    rmm__page_device(&page, &lies);
    assert_has("<rect class=\"used\" x=\"0\" width=\"700\"");
    assert_has("<rect class=\"inside\" x=\"700\" width=\"300\"");
    assert_int_equal(count_of("<rect"), 2 + LEGEND_RECTS);
}

TEST(a_pool_shows_what_is_free_in_one_piece)
{
    put_resource("2.pool");
    assert_has("<rect class=\"used\" x=\"0\" width=\"100\"");
    assert_has("<rect class=\"lost\" x=\"100\" width=\"50\"");
    assert_has("<rect class=\"largest inside\" x=\"150\" width=\"600\"");
    assert_has("<rect class=\"inside\" x=\"750\" width=\"250\"");
    assert_has("<title>in use 100 B, padding 50 B, largest free piece 600 B, "
               "free inside pools 250 B, of 1000 B</title>");
}

TEST(what_is_not_known_is_no_zero)
{
    const rmm_page_device_t unknown = {
        .name = "host",
        .model = "",
        .current_bytes = RMM_PAGE_UNKNOWN,
        .reserved_bytes = RMM_PAGE_UNKNOWN,
        .cached_bytes = RMM_PAGE_UNKNOWN,
        .others_bytes = RMM_PAGE_UNKNOWN,
        .free_bytes = RMM_PAGE_UNKNOWN,
        .capacity_bytes = RMM_PAGE_UNKNOWN};
    rmm__page_device(&page, &unknown);
    assert_int_equal(count_of("<td>-</td>"), 5);
    assert_null(strstr(buffer.bytes, "<svg class=\"bar\""));
}

TEST(a_share_of_half_a_pixel_is_seen)
{
    const rmm_page_device_t device = {
        .name = "gpu0",
        .model = "",
        .current_bytes = 1,
        .reserved_bytes = 1,
        .others_bytes = 1499,
        .capacity_bytes = 1500};
    rmm__page_device(&page, &device);
    assert_has("<rect class=\"used\" x=\"0\" width=\"1\"");
}

TEST(a_number_that_rounds_to_1024_takes_the_next_unit)
{
    const rmm_page_figures_t figures = {
        .current_bytes = 1048575, .reserved_bytes = 1048064, .peak_bytes = 1023};
    rmm__page_use(&page, "gpu0", &figures);
    assert_has("<td title=\"1048575 bytes\">1.0 MiB</td>");
    assert_has("<td title=\"1048064 bytes\">1023.5 KiB</td>");
    assert_has("<td>1023 B</td>");
}

TEST(a_resource_without_free_memory_has_no_bar)
{
    const rmm_page_resource_t resource = {
        .name = "3.cuda",
        .type = "cuda",
        .device = "gpu0",
        .figures = {.current_bytes = 100, .reserved_bytes = 100}};
    rmm__page_resource(&page, &resource);
    assert_has("3.cuda");
    assert_int_equal(count_of("<svg class=\"bar\""), 0);
}

/* --- rows --------------------------------------------------------------------------------- */

/* What stands in `row` besides the bar: each figure another number, in the order of the head. */
TEST(each_figure_stands_in_its_column)
{
    const rmm_page_figures_t figures = {
        .current_bytes = 101,
        .reserved_bytes = 1000,
        .padding_bytes = 103,
        .peak_bytes = 104,
        .current_count = 105,
        .oom_count = 106};
    const rmm_page_resource_t resource = {
        .name = "2.pool",
        .type = "pool",
        .device = "gpu0",
        .upstream_id = 7,
        .figures = figures,
        .free_bytes = 300,
        .largest_free_bytes = 200};
    const rmm_page_device_t device = {
        .name = "gpu1",
        .model = "M",
        .current_bytes = 201,
        .reserved_bytes = 302,
        .cached_bytes = 90,
        .others_bytes = 204,
        .free_bytes = 205,
        .capacity_bytes = 1000};

    rmm__page_use(&page, "host", &figures);
    assert_has("<tr><td class=\"t\">host</td><td>101 B</td><td>1000 B</td>"
               "<td>104 B</td><td>105</td><td>106</td></tr>\n");
    rmm__page_resource(&page, &resource);
    assert_has("<tr><td class=\"t\">2.pool</td><td class=\"t\">pool</td>"
               "<td class=\"t\">gpu0</td><td>7</td><td>101 B</td><td>1000 B</td>"
               "<td>104 B</td><td>105</td><td>106</td><td>200 B</td>"
               "<td class=\"wide\">");
    rmm__page_begin_devices(&page, 3600);
    assert_has("<th class=\"t past\">Last hour</th></tr>");
    rmm__page_device(&page, &device);
    assert_has("<tr><td class=\"t\">gpu1</td><td class=\"t model\">M</td>"
               "<td class=\"wide\">");
    assert_has("</svg></td><td>201 B</td><td>90 B</td><td>204 B</td><td>205 B</td>"
               "<td>1000 B</td><td class=\"past\"></td></tr>\n");
    assert_has("<rect class=\"inside\" x=\"201\" width=\"90\"");
    assert_has("<rect class=\"lost\" x=\"291\" width=\"11\"");
    assert_has("<title>in use 201 B, free inside pools 90 B, padding 11 B, "
               "other programs 204 B, of 1000 B</title>");
}

/* The figures of a program stand in its row, which needs no click. */
TEST(a_collapsed_row_has_the_sums_over_the_gpus)
{
    const rmm_page_figures_t host = {.current_bytes = 7, .reserved_bytes = 7};
    const rmm_page_figures_t gpu = {
        .current_bytes = 100,
        .reserved_bytes = 1000,
        .cached_bytes = 850,
        .peak_bytes = 700,
        .oom_count = 3};
    rmm_page_program_t shown = program;
    rmm__page_program_add(&shown, "host", &host, RMM_PAGE_UNKNOWN);
    rmm__page_program_add(&shown, "gpu2", &gpu, 4000);
    rmm__page_program_add(&shown, "gpu5", &gpu, 4000);
    assert_true(rmm__page_begin_program(&page, &shown));
    assert_has(
        "<span class=\"t\" title=\"a\">a <em class=\"warn\">6 refused</em></span>");
    assert_has(
        "<span class=\"t\">gpu2,5</span><span title=\"2000 bytes\">2.0 KiB</span>"
        "<span>200 B</span><span title=\"1700 bytes\">1.7 KiB</span>"
        "<span title=\"1400 bytes\">1.4 KiB</span><span class=\"wide\">");
    assert_has("<rect class=\"used\" x=\"0\" width=\"25\" height=\"1\"/>"
               "<rect class=\"inside\" x=\"25\" width=\"213\" height=\"1\"/>"
               "<rect class=\"lost\" x=\"238\" width=\"13\" height=\"1\"/>");
}

TEST(a_row_names_up_to_three_gpus_and_else_host_memory)
{
    const rmm_page_figures_t figures = {.current_bytes = 7, .reserved_bytes = 7};
    rmm_page_program_t shown = program;
    rmm__page_program_add(&shown, "host", &figures, RMM_PAGE_UNKNOWN);
    assert_string_equal(shown.devices, "host");
    assert_int_equal(shown.figures.current_bytes, 7);
    for (unsigned i = 0; i < 4; i++) {
        char name[16];
        snprintf(name, sizeof(name), "gpu%u", i);
        rmm__page_program_add(&shown, name, &figures, 100);
        assert_int_equal(shown.figures.current_bytes, 7 * (i + 1));
        if (i == 2) {
            assert_string_equal(shown.devices, "gpu0,1,2");
        }
    }
    assert_string_equal(shown.devices, "4 GPUs");
    assert_int_equal(shown.capacity_bytes, 400);
    rmm__page_program_add(&shown, "host", &figures, RMM_PAGE_UNKNOWN);
    assert_int_equal(shown.figures.current_bytes, 28);
}

/* --- jobs, refusals, histories ------------------------------------------------------------ */

TEST(a_job_that_ended_says_when)
{
    const rmm_page_job_t job = {
        .kind = "pod",
        .name = "team/<b>",
        .user = "u",
        .current_bytes = 250,
        .reserved_bytes = 500,
        .peak_bytes = 600,
        .capacity_bytes = 1000,
        .oom_count = 2,
        .programs = 3,
        .ended_seconds_ago = RMM_PAGE_UNKNOWN};
    rmm_page_job_t ended = job;
    ended.ended_seconds_ago = 150;
    rmm__page_job(&page, &job);
    assert_has("<tr><td class=\"t\">pod</td><td class=\"t\">team/&lt;b&gt;</td>"
               "<td class=\"t\">u</td><td>3</td><td>500 B</td><td>250 B</td>"
               "<td>600 B</td><td>2</td><td class=\"wide\">");
    assert_has("<rect class=\"inside\" x=\"250\" width=\"250\"");
    rmm__page_job(&page, &ended);
    assert_has("<tr class=\"ended\"><td class=\"t\">pod</td>");
    assert_has("<td>ended 2 min</td>");
}

TEST(a_refusal_names_who_held_the_memory)
{
    const rmm_page_refusal_t refusal = {
        .number = 9,
        .time = "11-30 16:00:00",
        .process = "42",
        .user = "u",
        .command = "<c>",
        .job = "",
        .device = "gpu1",
        .resource = "r",
        .bytes = 100,
        .free_bytes = RMM_PAGE_UNKNOWN,
        .current_bytes = 3,
        .reserved_bytes = 4};
    const rmm_page_holder_t holder = {
        .process = "43",
        .user = "v",
        .command = "<d>",
        .held_bytes = 5,
        .current_bytes = 6};
    rmm__page_begin_refusals(&page);
    rmm__page_begin_refusal(&page, &refusal);
    rmm__page_holder(&page, &holder);
    rmm__page_end_refusal(&page, 2, 77);
    rmm__page_end_refusals(&page);
    assert_has("<details id=\"r9\"><summary class=\"row\"><i></i>");
    assert_has("<span class=\"t\">&lt;c&gt;</span><span class=\"t\">u</span>"
               "<span class=\"t\">-</span><span class=\"t\">gpu1</span>"
               "<span>100 B</span><span>-</span><span class=\"t\">r</span>"
               "<span>4 B</span><span>3 B</span></summary>");
    assert_has("<tr><td class=\"t\">43</td><td class=\"t\">&lt;d&gt;</td>"
               "<td class=\"t\">v</td><td>5 B</td><td>6 B</td></tr>");
    assert_has("colspan=\"3\">2 more programs</td><td>77 B</td>");
}

/* Each area is the sum of those below it, the newest sample is at the right, and a sample that is
 * missing is a gap. */
TEST(a_history_is_drawn_in_steps)
{
    static const float used[] = {100, 100, -1, 50};
    static const float inside[] = {0, 50, -1, 50};
    const rmm_page_history_t history = {
        .series = {{"used", used}, {"inside", inside}},
        .series_count = 2,
        .count = 4,
        .room = 10,
        .step_ms = 30000};
    const rmm_page_device_t device = {
        .name = "gpu1", .model = "M", .capacity_bytes = 200, .history = &history};
    rmm__page_begin_devices(&page, 300);
    assert_has("<th class=\"t past\">Last 5 minutes</th>");
    rmm__page_device(&page, &device);
    assert_has("<title>last 2 minutes, at most 150 B</title>"
               "<path class=\"inside\" d=\"M6 100V50H7V25H8V100M9 100V50H10V100\"/>"
               "<path class=\"used\" d=\"M6 100V50H8V100M9 100V75H10V100\"/></svg>");
}

/* --- elements ----------------------------------------------------------------------------- */

TEST(what_is_begun_is_ended)
{
    static const char *const tags[] = {
        "table", "details", "figure", "svg",    "tr",     "body",   "html",
        "head",  "h1",      "p",      "main",   "header", "form",   "style",
        "div",   "ul",      "li",     "script", "time",   "summary"};
    const rmm_page_figures_t figures = {.current_bytes = 1};
    const rmm_blocks_row_t chunk = {
        .address = 1 << 20, .bytes = 65536, .state = RMM_BLOCK_CHUNK};
    const rmm_map_t map = {&chunk, 1, 2};
    char opens[16], ends[16];

    rmm__page_remark(&page, 0, "of nothing");
    rmm__page_remark(&page, 3, "of something");
    rmm__page_begin_devices(&page, 3600);
    rmm__page_end_devices(&page);
    rmm__page_begin_jobs(&page);
    rmm__page_end_jobs(&page);
    rmm__page_begin_programs(&page);
    assert_true(rmm__page_begin_program(&page, &program));
    rmm__page_use(&page, "gpu0", &figures);
    rmm__page_begin_resources(&page);
    put_resource("2.pool");
    rmm__page_end_resources(&page);
    rmm__page_map(&page, "2.pool", &map, 0);
    rmm__page_end_program(&page);
    rmm__page_end_programs(&page);
    rmm__page_begin_refusals(&page);
    rmm__page_end_refusals(&page);
    rmm__page_end(&page);
    for (size_t i = 0; i < sizeof(tags) / sizeof(tags[0]); i++) {
        snprintf(opens, sizeof(opens), "<%s>", tags[i]);
        snprintf(ends, sizeof(ends), "<%s ", tags[i]); /* with attributes */
        uint32_t opened = count_of(opens) + count_of(ends);
        snprintf(ends, sizeof(ends), "</%s>", tags[i]);
        assert_true(opened > 0);
        assert_int_equal(opened, count_of(ends));
    }
    assert_null(strstr(buffer.bytes, "of nothing"));
    assert_has("<p class=\"warn\">3 of something</p>\n");
    assert_null(strstr(buffer.bytes, "No program uses"));
    assert_null(strstr(buffer.bytes, "more programs"));
}

/* --- maps --------------------------------------------------------------------------------- */

static void put_map(const rmm_blocks_row_t *rows, uint32_t count, uint32_t lines_max)
{
    const rmm_map_t map = {.lines_max = lines_max, .count = count, .rows = rows};
    rmm__page_map(&page, "2.pool", &map, 0);
}

TEST(a_chunk_takes_as_many_lines_as_there_are_and_no_more)
{
    rmm_blocks_row_t chunk = {
        .address = 1 << 20, .bytes = 2 * 65536, .state = RMM_BLOCK_CHUNK};
    put_map(&chunk, 1, 2);
    assert_has("; a line is 64.0 KiB</figcaption>");
    assert_int_equal(count_of("class=\"ground\""), 2);
    chunk.bytes++;
    put_map(&chunk, 1, 2);
    assert_has("; a line is 128.0 KiB</figcaption>");
    assert_int_equal(count_of("class=\"ground\""), 2 + 2);
}

TEST(a_block_goes_on_in_the_next_line)
{
    const rmm_blocks_row_t rows[] = {
        {.address = 0x100000, .bytes = 0x20000, .state = RMM_BLOCK_CHUNK},
        {.address = 0x108000, .bytes = 0x10000, .state = RMM_BLOCK_USED}};
    put_map(rows, 2, 2);
    assert_has("<rect class=\"used\" x=\"512\" y=\"0\" width=\"512\" height=\"13\">");
    assert_has("<rect class=\"used\" x=\"0\" y=\"16\" width=\"512\" height=\"13\">");
    assert_int_equal(count_of("<title>0x108000: 65536 bytes used"), 2);
}

TEST(what_is_between_two_blocks_stays_empty)
{
    const rmm_blocks_row_t rows[] = {
        {.address = 0x100000, .bytes = 0x10000, .state = RMM_BLOCK_CHUNK},
        {.address = 0x100000, .bytes = 0x4000, .state = RMM_BLOCK_USED},
        {.address = 0x108000, .bytes = 0x8000, .state = RMM_BLOCK_FREE}};
    put_map(rows, 3, 1);
    assert_has("<rect class=\"used\" x=\"0\" y=\"0\" width=\"256\" height=\"13\">");
    assert_has("<rect class=\"inside\" x=\"512\" y=\"0\" width=\"512\" height=\"13\">");
}

TEST(a_mark_names_the_stream_of_its_block)
{
    const rmm_blocks_row_t rows[] = {
        {.address = 0x100000, .bytes = 0x10000, .state = RMM_BLOCK_CHUNK},
        {.address = 0x100000, .bytes = 0x8000, .state = RMM_BLOCK_CACHED},
        {.address = 0x108000,
         .bytes = 0x8000,
         .stream = RMM_BLOCKS_NO_STREAM,
         .state = RMM_BLOCK_USED}};
    put_map(rows, 3, 1);
    assert_has("<title>0x100000: 32768 bytes cached, stream 0</title>");
    assert_has("<title>0x108000: 32768 bytes used</title>");
}

/* Blocks too small to be seen are one mark, in the colour of what most of its bytes are. */
TEST(small_blocks_have_the_colour_of_most_bytes)
{
    const rmm_blocks_row_t rows[] = {
        {.address = 1 << 20, .bytes = 1 << 20, .state = RMM_BLOCK_CHUNK},
        {.address = 1 << 20, .bytes = 256, .state = RMM_BLOCK_USED},
        {.address = (1 << 20) + 256, .bytes = 1024, .state = RMM_BLOCK_FREE}};
    const rmm_map_t map = {.lines_max = 1, .count = 3, .rows = rows};
    rmm__page_map(&page, "2.pool", &map, 0);
    assert_int_equal(count_of("<title>2 blocks from 0x100000"), 1);
    assert_has(
        "<rect class=\"inside\" x=\"0\" y=\"0\" width=\"1\" height=\"13\"><title>2 ");
}

/* --- size --------------------------------------------------------------------------------- */

/* As many blocks as there are pixels, in more chunks than lines. */
static rmm_blocks_row_t *make_rows(uint32_t *count_out)
{
    const uint32_t chunks = 64, blocks = 1000;
    rmm_blocks_row_t *rows = calloc(chunks * (blocks + 1), sizeof(*rows));
    assert_non_null(rows);
    *count_out = 0;
    for (uint32_t i = 0; i < chunks; i++) {
        uint64_t address = (uint64_t)(i + 1) << 32;
        rows[(*count_out)++] = (rmm_blocks_row_t){
            .address = address, .bytes = 65536 * 1000, .state = RMM_BLOCK_CHUNK};
        for (uint32_t j = 0; j < blocks; j++) {
            rows[(*count_out)++] = (rmm_blocks_row_t){
                .address = address + 65536 * j,
                .bytes = 65536,
                .stream = RMM_BLOCKS_NO_STREAM,
                .state = j % 2 ? RMM_BLOCK_USED : RMM_BLOCK_FREE};
        }
    }
    return rows;
}

TEST(pictures_end_in_time)
{
    rmm_map_t map = {.lines_max = RMM_PAGE_MAP_LINES};
    rmm_blocks_row_t *rows = make_rows(&map.count);
    map.rows = rows;
    size_t before = buffer.length;
    rmm__page_map(&page, "2.pool", &map, 1500000000);
    assert_has("Blocks of 2.pool, reported 1.5 s ago; a line is 64.0 MiB");
    assert_has("<p>32 more chunks found no line</p>");
    /* Half of a line for each, in marks of four pixels. */
    assert_in_range(buffer.length - before, 32 * 120 * 80, 1100000);
    for (uint32_t i = 0; i < 100; i++) {
        rmm__page_map(&page, "2.pool", &map, 0);
    }
    free(rows);
    assert_in_range(
        buffer.length, RMM_PAGE_MAPS_BYTES_MAX, RMM_PAGE_MAPS_BYTES_MAX + 1100000);
    rmm__page_end(&page);
    assert_has("more maps are not on this page</p>\n</main>\n");
}

TEST(programs_end_in_time)
{
    uint32_t shown = 0;
    for (uint32_t i = 0; i < 100000; i++) {
        if (rmm__page_begin_program(&page, &program)) {
            rmm__page_end_program(&page);
            shown++;
        }
    }
    rmm__page_end_programs(&page);
    rmm__page_end(&page);
    assert_in_range(shown, 1000, 99999);
    assert_in_range(buffer.length, RMM_PAGE_BYTES_MAX, RMM_PAGE_BYTES_MAX + 20000);
    char text[100];
    snprintf(
        text, sizeof(text), "%u more programs are not on this page", 100000 - shown);
    assert_has(text);
}

TEST(without_programs_it_says_so)
{
    rmm__page_begin_devices(&page, 3600);
    rmm__page_begin_programs(&page);
    rmm__page_end_programs(&page);
    rmm__page_end(&page);
    assert_has("No program uses the library now.");
    assert_has("<time id=\"time\">1970-01-01 00:00:00 UTC</time>");
}

TEST(the_largest_come_first)
{
    rmm_page_order_t order[] = {{0, 5}, {1, RMM_PAGE_UNKNOWN}, {2, 7}, {3, 5}, {4, 0}};
    static const uint32_t expected[] = {2, 0, 3, 4, 1};
    rmm__page_sort(order, 5);
    for (uint32_t i = 0; i < 5; i++) {
        assert_int_equal(order[i].index, expected[i]);
    }
    rmm__page_sort(NULL, 0);
}

/* --- the map of a pool ----------------------------------------------------------------- */

#define KIB 1024u
#define NO_STREAM RMM_BLOCKS_NO_STREAM

/* A chunk of two lines and a half with blocks that cross lines, and some too small to be seen; one
 * of a byte; one of a whole line, in one block. */
static const rmm_blocks_row_t map_rows[] = {
    {.address = 0x100000, .bytes = 160 * KIB, .state = RMM_BLOCK_CHUNK},
    {.address = 0x100000, .bytes = 16 * KIB, .state = RMM_BLOCK_USED, .stream = 3},
    {.address = 0x104000,
     .bytes = 47 * KIB,
     .state = RMM_BLOCK_FREE,
     .stream = NO_STREAM},
    {.address = 0x10fc00, .bytes = 33 * KIB, .state = RMM_BLOCK_CACHED, .stream = 0},
    {.address = 0x120000, .bytes = 64, .state = RMM_BLOCK_USED, .stream = 7},
    {.address = 0x120040, .bytes = 64, .state = RMM_BLOCK_FREE, .stream = 7},
    {.address = 0x120080, .bytes = 64, .state = RMM_BLOCK_FREE, .stream = 7},
    {.address = 0x1200c0, .bytes = 64, .state = RMM_BLOCK_USED, .stream = 7},
    {.address = 0x120100, .bytes = 64, .state = RMM_BLOCK_FREE, .stream = 7},
    {.address = 0x120140, .bytes = 64, .state = RMM_BLOCK_FREE, .stream = 7},
    {.address = 0x121000, .bytes = 256, .state = RMM_BLOCK_GRAPH, .stream = 9},
    {.address = 0x121100, .bytes = 64, .state = RMM_BLOCK_LOST, .stream = 9},
    {.address = 0x400000, .bytes = 1, .state = RMM_BLOCK_CHUNK},
    {.address = 0x800000, .bytes = 64 * KIB, .state = RMM_BLOCK_CHUNK},
    {.address = 0x800000, .bytes = 64 * KIB, .state = RMM_BLOCK_USED, .stream = 1}};

typedef struct drawn {
    unsigned x, line, width;
    const char *class_name, *title; /* title NULL: the ground of the line */
} drawn_t;

static const drawn_t whole[] = {
    {150, 0, 1024, "ground", NULL},
    {150, 0, 256, "used", "0x100000: 16384 bytes used, stream 3<"},
    {406, 0, 752, "inside", "0x104000: 48128 bytes free<"},
    {1158, 0, 16, "kept", "0x10fc00: 33792 bytes cached, stream 0<"},
    {150, 1, 1024, "ground", NULL},
    {150, 1, 512, "kept", "0x10fc00: 33792 bytes cached, stream 0<"},
    {150, 2, 512, "ground", NULL},
    {150, 2, 4, "used", "4 blocks from 0x120000: 128 bytes used<"},
    {154, 2, 2, "inside", "2 blocks from 0x120100: 0 bytes used<"},
    {214, 2, 4, "graph", "0x121000: 256 bytes graph, stream 9<"},
    {218, 2, 1, "lost", "0x121100: 64 bytes lost, stream 9<"},
    {150, 3, 1, "ground", NULL},
    {150, 4, 1024, "ground", NULL},
    {150, 4, 1024, "used", "0x800000: 65536 bytes used, stream 1<"}};

/* In two lines: a line is four times as long, and one chunk is left out. */
static const drawn_t crowded[] = {
    {150, 0, 640, "ground", NULL},
    {150, 0, 64, "used", "0x100000: 16384 bytes used, stream 3<"},
    {214, 0, 188, "inside", "0x104000: 48128 bytes free<"},
    {402, 0, 132, "kept", "0x10fc00: 33792 bytes cached, stream 0<"},
    {662, 0, 1, "inside", "6 blocks from 0x120000: 128 bytes used<"},
    {678, 0, 1, "graph", "2 blocks from 0x121000: 0 bytes used<"},
    {150, 1, 1, "ground", NULL}};

static void draw_map(uint32_t lines_max)
{
    const rmm_map_t map = {map_rows, sizeof(map_rows) / sizeof(map_rows[0]), lines_max};

    buffer.length = 0;
    rmm__map_svg_begin(&sink, &map);
    rmm__map_svg_end(&sink);
}

static void assert_drawn(const drawn_t *marks, uint32_t count)
{
    char text[256];

    for (uint32_t i = 0; i < count; i++) {
        snprintf(
            text, sizeof(text),
            "<rect class=\"%s\" x=\"%u\" y=\"%u\" width=\"%u\" height=\"13\"%s%s",
            marks[i].class_name, marks[i].x, 48 + 16 * marks[i].line, marks[i].width,
            marks[i].title != NULL ? "><title>" : "/>",
            marks[i].title != NULL ? marks[i].title : "");
        assert_has(text);
    }
    assert_int_equal(count_of("<rect"), count + 2 + 5); /* the pattern, the legend */
}

TEST(a_map_is_drawn_to_scale)
{
    static const char *const names[] = {"used", "free", "cached", "graph", "lost"};
    char text[64];

    draw_map(100);
    assert_drawn(whole, sizeof(whole) / sizeof(whole[0]));
    assert_has("width=\"1182\" height=\"192\" viewBox=\"0 0 1182 192\"");
    assert_has("<text x=\"4\" y=\"20\">A line: 65536 bytes</text>");
    for (unsigned i = 0; i < 5; i++) {
        snprintf(
            text, sizeof(text), "<text x=\"%u\" y=\"38\">%s</text>", 166 + 90 * i,
            names[i]);
        assert_has(text);
    }
    assert_has("<text x=\"4\" y=\"58\">0x100000</text>");
    assert_has("<text x=\"4\" y=\"74\">0x110000</text>");
    assert_has("<text x=\"4\" y=\"90\">0x120000</text>");
    assert_has("<text x=\"4\" y=\"106\">0x400000</text>");
    assert_has("<text x=\"4\" y=\"122\">0x800000</text>");
    assert_has("<text x=\"4\" y=\"144\"></text>\n</svg>\n");
    draw_map(5); /* as many as it needs */
    assert_drawn(whole, sizeof(whole) / sizeof(whole[0]));
}

TEST(a_map_with_too_few_lines_says_what_is_left_out)
{
    draw_map(2);
    assert_drawn(crowded, sizeof(crowded) / sizeof(crowded[0]));
    assert_has("height=\"144\"");
    assert_has("<text x=\"4\" y=\"20\">A line: 262144 bytes</text>");
    assert_has(
        "<text x=\"4\" y=\"96\"># 1 more chunks found no line\n</text>\n</svg>\n");
    draw_map(4); /* one fewer than it would need */
    assert_has("<text x=\"4\" y=\"20\">A line: 131072 bytes</text>");
}
