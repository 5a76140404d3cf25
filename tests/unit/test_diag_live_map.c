/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The map of live blocks against a list that is searched from end to end.
 */
#include "harness/harness.h"

#include <stdlib.h>

#include "diag/live_map.h"

#define MODEL_BLOCKS 300u
#define MODEL_STEPS 20000u
#define MANY_BLOCKS 100000u

typedef struct model_block {
    uint64_t start, end; /* both 0: none */
} model_block_t;

static uint64_t random_state;

static uint64_t draw(uint64_t below)
{
    /* xorshift64*, Vigna 2016 */
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return (random_state * 0x2545f4914f6cdd1dull) % below;
}

static void seed_from_environment(void)
{
    const char *text = getenv("RMM_TEST_SEED");

    random_state = text != NULL ? strtoull(text, NULL, 0) : 20240607u;
    print_message("RMM_TEST_SEED=%llu\n", (unsigned long long)random_state);
}

static uint32_t model_find(const model_block_t *model, uint64_t address)
{
    for (uint32_t i = 0; i < MODEL_BLOCKS; i++) {
        if (model[i].start <= address && address < model[i].end) {
            return i;
        }
    }
    return RMM_LIVE_NONE;
}

static bool model_overlaps(const model_block_t *model, uint64_t start, uint64_t end)
{
    for (uint32_t i = 0; i < MODEL_BLOCKS; i++) {
        if (model[i].start < end && start < model[i].end) {
            return true;
        }
    }
    return false;
}

/* Index i of the model is index i of the map: the map decides it. */
static void model_step(rmm_live_map_t *map, model_block_t *model)
{
    uint64_t start = 0x7f0000000000ull + draw(4096) * 256;
    uint64_t end = start + 1 + draw(draw(8) == 0 ? 65536 : 512);
    bool overlaps = model_overlaps(model, start, end);
    uint32_t victim = (uint32_t)draw(MODEL_BLOCKS);

    assert_int_equal(rmm__live_map_overlap(map, start, end) != RMM_LIVE_NONE, overlaps);
    if (!overlaps && draw(3) != 0) {
        uint32_t index = rmm__live_map_insert(map, start, end);

        if (index == RMM_LIVE_NONE) {
            assert_int_equal(map->count, MODEL_BLOCKS);
        } else {
            assert_int_equal(model[index].end, 0);
            model[index] = (model_block_t){start, end};
        }
    } else if (model[victim].end != 0) {
        rmm__live_map_erase(map, victim);
        model[victim] = (model_block_t){0, 0};
    }
}

TEST_CASE(agrees_with_a_list_under_random_changes)
{
    static model_block_t model[MODEL_BLOCKS];
    rmm_live_map_t map;

    seed_from_environment();
    assert_true(rmm__live_map_init(&map, MODEL_BLOCKS));
    for (uint32_t step = 0; step < MODEL_STEPS; step++) {
        model_step(&map, model);
        assert_true(rmm__live_map_check(&map));
        for (uint32_t probe = 0; probe < 8; probe++) {
            uint64_t address = 0x7f0000000000ull - 4096 + draw(4096 * 256 + 65536);

            assert_int_equal(
                rmm__live_map_find(&map, address), model_find(model, address));
        }
    }
    rmm__live_map_fini(&map);
}

/* Block i is [i * 512, i * 512 + 256): odd halves belong to nobody. */
TEST_CASE(finds_each_of_100000_blocks_and_nothing_between)
{
    rmm_live_map_t map;
    uint32_t *index_of = calloc(MANY_BLOCKS, sizeof(*index_of));

    assert_non_null(index_of);
    assert_true(rmm__live_map_init(&map, MANY_BLOCKS));
    for (uint64_t i = 0; i < MANY_BLOCKS; i++) {
        uint64_t scattered = (i * 48271) % MANY_BLOCKS; /* a permutation */

        index_of[scattered] = rmm__live_map_insert(
            &map, 0x1000000 + scattered * 512, 0x1000000 + scattered * 512 + 256);
        assert_int_not_equal(index_of[scattered], RMM_LIVE_NONE);
    }
    assert_true(rmm__live_map_check(&map));
    assert_true(map.tree.height <= 5); /* nodes of 16 or more: 16^4 < 100000 < 16^5 */
    for (uint64_t i = 0; i < MANY_BLOCKS; i++) {
        uint64_t start = 0x1000000 + i * 512;

        assert_int_equal(rmm__live_map_find(&map, start), index_of[i]);
        assert_int_equal(rmm__live_map_find(&map, start + 255), index_of[i]);
        assert_int_equal(rmm__live_map_find(&map, start + 256), RMM_LIVE_NONE);
    }
    assert_int_equal(
        rmm__live_map_insert(&map, 0x10, 0x20), RMM_LIVE_NONE); /* all are taken */
    for (uint64_t i = 0; i < MANY_BLOCKS; i += 2) {
        rmm__live_map_erase(&map, index_of[i]);
    }
    assert_true(rmm__live_map_check(&map));
    for (uint64_t i = 0; i < MANY_BLOCKS; i++) {
        assert_int_equal(
            rmm__live_map_find(&map, 0x1000000 + i * 512),
            i % 2 == 0 ? RMM_LIVE_NONE : index_of[i]);
    }
    rmm__live_map_fini(&map);
    free(index_of);
}

TEST_CASE(an_answer_that_was_kept_does_not_outlive_its_block)
{
    rmm_live_map_t map;
    uint32_t other = 0, small = 0;

    assert_true(rmm__live_map_init(&map, 4));
    other = rmm__live_map_insert(&map, 0x9000, 0xa000);
    small = rmm__live_map_insert(&map, 0x1000, 0x2000);
    assert_int_equal(rmm__live_map_find(&map, 0x1800), small);
    rmm__live_map_erase(&map, small);
    assert_int_equal(rmm__live_map_find(&map, 0x1800), RMM_LIVE_NONE);
    /* the same storage for another block: the old address is not in it */
    assert_int_equal(rmm__live_map_insert(&map, 0x3000, 0x4000), small);
    assert_int_equal(rmm__live_map_find(&map, 0x1800), RMM_LIVE_NONE);
    assert_int_equal(rmm__live_map_find(&map, 0x3000), small);
    assert_int_equal(rmm__live_map_find(&map, 0x9fff), other);
    rmm__live_map_fini(&map);
}
