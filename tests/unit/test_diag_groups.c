/* SPDX-License-Identifier: Apache-2.0 */
/* Groups of blocks: what belongs together, the bounds of the table, and its order. */
#include "harness/harness.h"

#include "unit/groups_fixture.h"

#define CASE(name) TEST_CASE_WITH(name, make_groups, drop_groups)

CASE(blocks_that_differ_in_one_thing_are_of_two_groups)
{
    const rmm_diag_group_t kinds[] = {
        {.verdict = 1}, {.resource_id = 1}, {.first_user = 1}, {.device = 1},
        {.device = -1}, {.size_class = 1},  {.site = 1},       {.verdict = 0}};
    const uint32_t count = sizeof(kinds) / sizeof(kinds[0]);

    for (uint32_t i = 0; i < 2 * count; i++) {
        rmm_diag_group_t block = kinds[i % count];

        block.bytes = 100 + i;
        block.count = 1 + i;
        block.byte_ms = 7 + i;
        block.largest = i < count ? 90 + i : 50; /* of the second the smaller */
        rmm__diag_groups_add(groups, &block);
    }
    assert_int_equal(groups->count, count);
    for (uint32_t i = 0; i < count; i++) {
        const rmm_diag_group_t *group = &groups->entries[i];

        assert_true(rmm__diag_group_is_like(group, &kinds[i]));
        assert_int_equal(group->bytes, 200 + 2 * i + count);
        assert_int_equal(group->count, 2 + 2 * i + count);
        assert_int_equal(group->byte_ms, 14 + 2 * i + count);
        assert_int_equal(group->largest, 90 + i);
    }
    assert_int_equal(groups->rest_count, 0);
    rmm__diag_groups_clear(groups);
    assert_int_equal(groups->count, 0);
    rmm__diag_groups_add(groups, &kinds[0]);
    assert_int_equal(groups->count, 1);
}

static void add_many(uint32_t first, uint32_t count, uint32_t site)
{
    for (uint32_t i = first; i < first + count; i++) {
        const rmm_diag_group_t block = {
            .resource_id = i, .site = site, .bytes = 8, .count = 1};

        rmm__diag_groups_add(groups, &block);
    }
}

CASE(a_full_table_knows_its_groups_and_counts_the_rest)
{
    const uint32_t others = RMM_DIAG_GROUPS_MAX - RMM_DIAG_GROUPS_WITH_SITE;

    add_many(0, RMM_DIAG_GROUPS_WITH_SITE, 5);
    assert_int_equal(groups->count, RMM_DIAG_GROUPS_WITH_SITE);
    add_many(RMM_DIAG_GROUPS_WITH_SITE, 1, 5); /* without its site */
    assert_int_equal(groups->count, RMM_DIAG_GROUPS_WITH_SITE + 1);
    assert_int_equal(groups->entries[RMM_DIAG_GROUPS_WITH_SITE].site, 0);
    add_many(RMM_DIAG_GROUPS_WITH_SITE + 1, others - 1, 0);
    assert_int_equal(groups->count, RMM_DIAG_GROUPS_MAX);
    assert_int_equal(groups->rest_count, 0);
    add_many(RMM_DIAG_GROUPS_MAX, 1, 5);
    add_many(RMM_DIAG_GROUPS_MAX, 2, 0);
    assert_int_equal(groups->rest_count, 3);
    assert_int_equal(groups->rest_bytes, 24);
    add_many(0, RMM_DIAG_GROUPS_WITH_SITE, 5); /* each is found again */
    add_many(RMM_DIAG_GROUPS_WITH_SITE, others, 0);
    assert_int_equal(groups->count, RMM_DIAG_GROUPS_MAX);
    assert_int_equal(groups->rest_count, 3);
    for (uint32_t i = 0; i < RMM_DIAG_GROUPS_MAX; i++) {
        assert_int_equal(groups->entries[i].resource_id, i);
        assert_int_equal(groups->entries[i].bytes, 16);
    }
}

CASE(the_worst_come_first_and_equals_have_one_order)
{
    const rmm_diag_group_t sorted[] = {
        {.verdict = 9, .byte_ms = 2, .bytes = 1},
        {.verdict = 8, .byte_ms = 1, .bytes = 5},
        {.verdict = 1, .byte_ms = 1, .bytes = 4, .resource_id = 9},
        {.verdict = 2, .byte_ms = 1, .bytes = 4, .resource_id = 1, .first_user = 9},
        {.verdict = 2,
         .byte_ms = 1,
         .bytes = 4,
         .resource_id = 2,
         .first_user = 1,
         .site = 9},
        {.verdict = 2,
         .byte_ms = 1,
         .bytes = 4,
         .resource_id = 2,
         .first_user = 2,
         .site = 1},
        {.verdict = 2,
         .byte_ms = 1,
         .bytes = 4,
         .resource_id = 2,
         .first_user = 2,
         .site = 2}};
    const uint32_t count = sizeof(sorted) / sizeof(sorted[0]);

    for (uint32_t from = 0; from < count; from++) {
        rmm__diag_groups_clear(groups);
        for (uint32_t i = 0; i < count; i++) {
            rmm__diag_groups_add(groups, &sorted[(from + 3 * i) % count]);
        }
        rmm__diag_groups_sort(groups);
        for (uint32_t i = 0; i < count; i++) {
            assert_memory_equal(&groups->entries[i], &sorted[i], sizeof(sorted[i]));
        }
    }
}
