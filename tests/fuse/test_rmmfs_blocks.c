/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is printed of a report of blocks: the rows of a small one, and bounds that hold for any.
 */
#include "harness/harness.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>

#include "fuse/blocks_fixture.h"
#include "harness/random.h"

#define KIB UINT64_C(1024)
#define BASE UINT64_C(0x700000000000)

static rmm_blocks_file_t file = {.fd = -1};
static rmm_blocks_row_t rows[RMM_BLOCKS_ROWS_MAX];

static void open_rows(const rmm_blocks_resource_t *resources, uint32_t count)
{
    rmm_blocks_header_t header;
    int fd = memfd_create("blocks", MFD_CLOEXEC);
    assert_true(fd >= 0);
    blocks_header(&header, count);
    assert_int_equal(pwrite(fd, &header, sizeof(header), 0), (ssize_t)sizeof(header));
    assert_int_equal(
        pwrite(
            fd, resources, FIXTURE_RESOURCES * sizeof(resources[0]),
            header.resources_offset),
        (ssize_t)(FIXTURE_RESOURCES * sizeof(resources[0])));
    assert_int_equal(
        pwrite(fd, rows, count * sizeof(rows[0]), header.rows_offset),
        (ssize_t)(count * sizeof(rows[0])));
    assert_int_equal(rmm__block_report_attach(&file, fd), 0);
}

static int close_file(void **state)
{
    (void)state;
    rmm__block_report_close(&file);
    return 0;
}

#define CASE(test) TEST_CASE_WITH(test, NULL, close_file)

/* Two chunks of resource 1; the second one is memory of resource 2. */
static void open_small(void)
{
    const rmm_blocks_row_t small[] = {
        {BASE + 8 * KIB, 8 * KIB, RMM_BLOCKS_NO_STREAM, 0, RMM_BLOCK_CHUNK},
        {BASE + 9 * KIB, 7 * KIB, 5, 0, RMM_BLOCK_CACHED},
        {BASE + 8 * KIB, 1 * KIB, RMM_BLOCKS_NO_STREAM, 24, RMM_BLOCK_USED},
        {BASE, 4 * KIB, RMM_BLOCKS_NO_STREAM, 0, RMM_BLOCK_CHUNK},
        {BASE, 3 * KIB, RMM_BLOCKS_NO_STREAM, 72, RMM_BLOCK_USED},
        {BASE + 3 * KIB, 1 * KIB, RMM_BLOCKS_NO_STREAM, 0, RMM_BLOCK_FREE},
        {BASE + 8 * KIB, 8 * KIB, RMM_BLOCKS_NO_STREAM, 0, RMM_BLOCK_USED},
        {BASE + 32 * KIB, 2 * KIB, RMM_BLOCKS_NO_STREAM, 0, RMM_BLOCK_USED}};
    const rmm_blocks_resource_t resources[FIXTURE_RESOURCES] = {
        {.resource_id = 1,
         .first_row = 0,
         .row_count = 6,
         .left_out_count = 2,
         .left_out_bytes = 99},
        {.resource_id = 2, .first_row = 6, .row_count = 2},
        {.resource_id = 3, .first_row = 8, .row_count = 0}};
    memcpy(rows, small, sizeof(small));
    open_rows(resources, sizeof(small) / sizeof(small[0]));
}

/* Without the line that tells the age. */
static void expect_text(uint8_t id, const char *expected)
{
    text_t text;
    char seen[4096] = "";
    blocks_render(&file, id, &text);
    assert_true(text.length < sizeof(seen));
    for (size_t at = 0; at < text.length;) {
        const char *line = text.data + at;
        size_t bytes =
            (size_t)((const char *)memchr(line, '\n', text.length - at) - line) + 1;
        if (strncmp(line, "# taken_ns_ago ", 15) != 0) {
            strncat(seen, line, bytes);
        }
        at += bytes;
    }
    text_fini(&text);
    assert_string_equal(seen, expected);
}

CASE(prints_the_blocks_of_a_pool)
{
    open_small();
    expect_text(
        FILE_map, "#addr bytes state stream\n"
                  "# chunk 0x700000000000 4096\n"
                  "0x700000000000 3072 used -1\n"
                  "0x700000000c00 1024 free -1\n"
                  "# chunk 0x700000002000 8192\n"
                  "0x700000002000 1024 used -1\n"
                  "0x700000002400 7168 cached 5\n"
                  "# 2 more blocks of 99 bytes found no room\n");
    expect_text(
        FILE_streams, "#stream used_bytes used_count cached_bytes cached_count\n"
                      "5 -1 -1 7168 1\n"
                      "-1 4096 2 0 0\n"
                      "# 2 more blocks of 99 bytes found no room\n");
    expect_text(
        FILE_size_histogram, "#from_bytes used_count used_bytes free_count free_bytes\n"
                             "1024 1 1024 1 1024\n"
                             "2048 1 3072 0 0\n"
                             "4096 0 0 1 7168\n"
                             "# 2 more blocks of 99 bytes found no room\n");
}

CASE(joins_what_lives_in_a_process)
{
    open_small();
    expect_text(
        FILE_allocations,
        "#addr\tsize\tstream\tresource\tdevice\tage_ns\tfirst_use\tlast_use\tuses\n"
        "0x700000000000\t3000\t-1\t1\t0\t-1\t-\t-\t-1\n"
        "0x700000002000\t1000\t-1\t1\t0\t-1\t-\t-\t-1\n"
        "0x700000008000\t2048\t-1\t2\t-1\t-1\t-\t-\t-1\n");
}

static size_t count_of(const text_t *text, const char *part)
{
    size_t count = 0;
    const char *at = text->data, *end = text->data + text->length;
    while ((at = memmem(at, (size_t)(end - at), part, strlen(part))) != NULL) {
        count++;
        at += strlen(part);
    }
    return count;
}

CASE(draws_each_block)
{
    text_t text;
    open_small();
    blocks_render(&file, FILE_map_svg, &text);
    assert_int_equal(count_of(&text, "<title>"), 4);
    assert_int_equal(count_of(&text, "</title></rect>"), 4);
    assert_int_equal(count_of(&text, "0x700000002400: 7168 bytes cached, stream 5"), 1);
    text_fini(&text);
}

CASE(says_that_a_resource_is_not_in_the_report)
{
    const rmm_blocks_resource_t resources[FIXTURE_RESOURCES] = {{.resource_id = 7}};
    open_rows(resources, 0);
    expect_text(
        FILE_map, "#addr bytes state stream\n"
                  "# not in the report: nothing was allocated from it yet\n");
}

CASE(a_resource_with_rows_beyond_the_table_is_none)
{
    const rmm_blocks_resource_t resources[FIXTURE_RESOURCES] = {
        {.resource_id = 1, .first_row = 1, .row_count = 2},
        {.resource_id = 2, .first_row = 2, .row_count = 2},
        {.resource_id = 3, .first_row = 4, .row_count = 0}};
    rmm_blocks_resource_t found;
    open_rows(resources, 3);
    assert_true(rmm__block_report_find(&file, 1, &found));
    assert_int_equal(found.row_count, 2);
    assert_false(rmm__block_report_find(&file, 2, &found));
    assert_false(rmm__block_report_find(&file, 3, &found));
}

/* --- any ------------------------------------------------------------------------------ */

static uint64_t odd_number(uint64_t *random)
{
    const uint64_t edges[] = {
        0,
        1,
        255,
        256,
        4096,
        UINT64_C(1) << 32,
        BASE,
        BASE + 1,
        UINT64_C(1) << 63,
        UINT64_MAX,
        UINT64_MAX - 1};
    uint64_t edge = edges[draw(random, sizeof(edges) / sizeof(edges[0]))];
    return draw(random, 2) == 0 ? edge : edge + draw(random, 1 << 20);
}

static void render_all(void)
{
    blocks_check_rows(&file);
    for (size_t i = 0; i < BLOCK_FILES; i++) {
        text_t text;
        blocks_render(&file, block_files[i], &text);
        text_fini(&text);
    }
}

CASE(any_rows_make_whole_texts)
{
    rmm_blocks_resource_t resources[FIXTURE_RESOURCES];
    uint64_t random = 3;
    for (int round = 0; round < 400; round++) {
        blocks_resources(resources, FIXTURE_ROWS);
        for (uint32_t i = 0; i < FIXTURE_ROWS; i++) {
            rows[i] = (rmm_blocks_row_t){
                odd_number(&random), odd_number(&random), odd_number(&random),
                (uint32_t)odd_number(&random),
                (uint32_t)draw(&random, RMM_BLOCK_STATES + 1)};
        }
        open_rows(resources, FIXTURE_ROWS);
        render_all();
        rmm__block_report_close(&file);
    }
}

/* As many rows as there may be, in the ways that make the most work and the longest texts. */
CASE(the_largest_reports_are_bounded)
{
    const uint32_t most = RMM_BLOCKS_ROWS_MAX;
    for (int way = 0; way < 4; way++) {
        const rmm_blocks_resource_t all[FIXTURE_RESOURCES] = {
            {.resource_id = 1, .row_count = most},
            {.resource_id = 2, .row_count = most},
            {.resource_id = 3, .row_count = most}};
        for (uint32_t i = 0; i < most; i++) {
            rows[i] = (rmm_blocks_row_t){
                BASE + (way == 0 ? 0 : i * 256), way == 2 ? UINT64_MAX / 4 : 255,
                UINT64_MAX - 1 - i, 0,
                way == 1 || i % 1024 == 0 ? RMM_BLOCK_CHUNK : RMM_BLOCK_CACHED - i % 3};
        }
        if (way == 3) { /* one chunk, every mark of it on its own */
            rows[0] = (rmm_blocks_row_t){BASE, 256 * most, 0, 0, RMM_BLOCK_CHUNK};
        }
        open_rows(all, most);
        render_all();
        rmm__block_report_close(&file);
    }
}
