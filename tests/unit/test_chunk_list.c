/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of an engine's chunks by itself, against a map of units. Random operations print
 * their seed when they fail; RMM_TEST_SEED=<number> runs one.
 */
#include "harness/harness.h"
#include "harness/random.h"
#include "pool/chunk_list.h"

#include <stdlib.h>
#include <string.h>

#include "core/host_memory.h"

enum { UNITS = 400, MOST_UNITS = 12, STEPS = 3000, SEEDS = 10 };

typedef struct map {
    engine_chunks_t list;
    bool is_used[UNITS];
    uint64_t random, seed;
    int step;
} map_t;

#define require(map, condition)                                                        \
    do {                                                                               \
        if (!(condition)) {                                                            \
            fail_msg(                                                                  \
                "RMM_TEST_SEED=%llu, step %d: %s", (unsigned long long)(map)->seed,    \
                (map)->step, #condition);                                              \
        }                                                                              \
    } while (0)

static bool is_any_used(const map_t *map, uint32_t unit, uint32_t units)
{
    bool any = false;

    for (uint32_t i = unit; i < unit + units; i++) {
        any = any || map->is_used[i];
    }
    return any;
}

static void set_used(map_t *map, uint32_t unit, uint32_t units, bool is_used)
{
    for (uint32_t i = unit; i < unit + units; i++) {
        map->is_used[i] = is_used;
    }
}

static void add_or_refuse(map_t *map)
{
    uint32_t units = 1 + (uint32_t)draw(&map->random, MOST_UNITS);
    uint32_t unit = (uint32_t)draw(&map->random, UNITS - units);
    bool overlaps = rmm__chunk_list_overlaps(&map->list, unit, units);

    require(map, overlaps == is_any_used(map, unit, units));
    if (!overlaps) {
        require(map, rmm__chunk_list_reserve(&map->list));
        rmm__chunk_list_insert(&map->list, unit, units);
        set_used(map, unit, units, true);
    }
}

/* As a trim does: the entry stays for a while. */
static void take_out(map_t *map)
{
    if (map->list.count != 0) {
        engine_chunk_t *chunk =
            &map->list.chunks[(uint32_t)draw(&map->random, map->list.count)];

        set_used(map, (uint32_t)chunk->unit, chunk->units, false);
        chunk->units = 0;
    }
}

static void check(map_t *map)
{
    uint32_t used = 0, listed = 0;

    for (uint32_t i = 0; i < map->list.count; i++) {
        const engine_chunk_t *chunk = &map->list.chunks[i];

        listed += chunk->units;
        require(map, i == 0 || chunk[-1].unit <= chunk->unit);
        require(map, rmm__chunk_list_place(&map->list, chunk->unit) <= i);
        require(map, rmm__chunk_list_place(&map->list, chunk->unit + 1) > i);
    }
    for (uint32_t i = 0; i < UNITS; i++) {
        used += map->is_used[i];
    }
    require(map, listed == used);
}

static void play(uint64_t seed)
{
    map_t map = {.seed = seed, .random = seed};

    for (map.step = 0; map.step < STEPS; map.step++) {
        uint32_t kind = (uint32_t)draw(&map.random, 100);

        if (kind < 55) {
            add_or_refuse(&map);
        } else if (kind < 97) {
            take_out(&map);
        } else {
            rmm__chunk_list_compact(&map.list);
        }
        check(&map);
    }
    rmm__free(map.list.chunks);
}

static void agrees_with_a_map_of_units(void **state)
{
    const char *seed = getenv("RMM_TEST_SEED");

    for (uint64_t i = 1; seed == NULL && i <= SEEDS; i++) {
        play(i);
    }
    if (seed != NULL) {
        play(strtoull(seed, NULL, 10));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_a_map_of_units),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
