/* SPDX-License-Identifier: Apache-2.0 */
/* The list of a report of blocks: which rows it has room for, and how it counts the others. */
#include "harness/harness.h"

#include "publish/block_list.h"

enum { PART_ROWS = 10 };

static void add(rmm_block_list_t *list, uint64_t address, rmm_block_state_t state)
{
    rmm__block_list_add(
        list, (rmm_blocks_row_t){.address = address, .bytes = 256, .state = state});
}

TEST_CASE(takes_as_many_resources_as_a_report_has)
{
    rmm_block_list_t *list = rmm__block_list_create(PART_ROWS);

    assert_non_null(list);
    for (uint32_t i = 0; i < RMM_BLOCKS_RESOURCES_MAX; i++) {
        assert_true(rmm__block_list_begin(list, i + 1, 0));
    }
    assert_false(rmm__block_list_begin(list, 7777, 0));
    assert_int_equal(list->resource_count, RMM_BLOCKS_RESOURCES_MAX);
    assert_int_equal(
        list->resources[RMM_BLOCKS_RESOURCES_MAX - 1].resource_id,
        RMM_BLOCKS_RESOURCES_MAX);
    rmm__block_list_destroy(list);
}

TEST_CASE(gives_each_resource_an_equal_part_of_the_rows_that_are_left)
{
    rmm_block_list_t *list = rmm__block_list_create(3 * PART_ROWS);

    for (uint32_t i = 0; i < 3; i++) {
        assert_true(rmm__block_list_begin(list, i, 2 - i));
        rmm__block_list_reserve(list, 2 * PART_ROWS);
        for (uint32_t k = 0; k < PART_ROWS + i; k++) {
            add(list, 4096 * (i + 1) + k, RMM_BLOCK_USED);
        }
        assert_int_equal(list->resources[i].first_row, i * PART_ROWS);
        assert_int_equal(list->resources[i].row_count, PART_ROWS);
        assert_int_equal(list->resources[i].left_out_count, i);
        assert_int_equal(list->resources[i].left_out_bytes, 256 * i);
    }
    assert_int_equal(list->row_count, 3 * PART_ROWS);
    assert_int_equal(list->rows[PART_ROWS].address, 8192);
    rmm__block_list_destroy(list);
}

TEST_CASE(leaves_a_part_that_was_not_used_to_the_others)
{
    rmm_block_list_t *list = rmm__block_list_create(2 * PART_ROWS);

    assert_true(rmm__block_list_begin(list, 1, 1));
    rmm__block_list_reserve(list, 1);
    add(list, 1, RMM_BLOCK_FREE);
    assert_true(rmm__block_list_begin(list, 2, 0));
    rmm__block_list_reserve(list, UINT32_MAX - 1);
    for (uint32_t k = 0; k < 2 * PART_ROWS; k++) {
        add(list, 4096 + k, RMM_BLOCK_USED);
    }
    assert_int_equal(list->resources[1].row_count, 2 * PART_ROWS - 1);
    assert_int_equal(list->resources[1].left_out_count, 1);
    rmm__block_list_destroy(list);
}

/* The blocks of a chunk without a row are counted, the chunk is not a block. */
TEST_CASE(counts_no_chunk_among_the_blocks_without_a_row)
{
    rmm_block_list_t *list = rmm__block_list_create(PART_ROWS);

    assert_true(rmm__block_list_begin(list, 1, 0));
    add(list, 4096, RMM_BLOCK_CHUNK); /* nothing is reserved */
    add(list, 4096, RMM_BLOCK_FREE);
    rmm__block_list_moving(list, 512);
    assert_int_equal(list->row_count, 0);
    assert_int_equal(list->resources[0].left_out_count, 1);
    assert_int_equal(list->resources[0].left_out_bytes, 256);
    assert_int_equal(list->resources[0].moving_bytes, 512);
    rmm__block_list_destroy(list);
}

TEST_CASE(has_no_more_rows_than_a_report_may_have)
{
    rmm_block_list_t *list = rmm__block_list_create(UINT32_MAX);

    assert_int_equal(list->most_rows, RMM_BLOCKS_ROWS_MAX);
    rmm__block_list_destroy(list);
}
