/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random operations against a shadow that is too simple to be wrong: an array of cells, one
 * a unit, that say who holds it. After every operation the manager's walk is compared with
 * the shadow; every few, the manager checks itself.
 *
 * Each seed is printed when it fails; RMM_TEST_SEED=<number> runs that seed alone.
 */
#include <stdio.h>

#include "unit/suballoc_fixture.h"

#define SEEDS 48
#define STEPS 1500
#define MAX_REGIONS 6
#define MAX_REGION_UNITS 1200
#define MAX_HEAPS 5
#define MAX_LIVE 600
#define LIVE RMM_HEAP_NONE
#define MOVED UINT64_MAX /* a stamp while a transfer is played */

typedef struct cell {
    rmm_heap_t heap; /* LIVE, or the heap in which the unit is free */
    uint32_t id;     /* of a live block; 0 in a free one */
    uint64_t stamp;  /* of a free one; 0 in a live one */
} cell_t;

typedef struct shadow_region {
    uint32_t first_unit, units; /* units 0: not there */
    cell_t cells[MAX_REGION_UNITS];
} shadow_region_t;

typedef struct shadow_block {
    uint32_t unit, units, id;
} shadow_block_t;

/*
 * `last` is the block that was freed last here. It has merged, but if the next alloc takes
 * it again, its neighbours have the stamps that they had before.
 */
typedef struct shadow_heap {
    bool exists;
    rmm_heap_t heap;
    uint64_t last_stamp;
    shadow_block_t last; /* units 0: none */
} shadow_heap_t;

typedef struct model {
    test_storage_t storage;
    rmm_suballoc_t *sa;
    uint64_t random;
    uint64_t seed, step;
    uint32_t next_id;
    uint32_t live_count;
    shadow_block_t live[MAX_LIVE];
    shadow_heap_t heaps[MAX_HEAPS];
    shadow_region_t regions[MAX_REGIONS];
} model_t;

#define require(model, condition)                                                      \
    do {                                                                               \
        if (!(condition)) {                                                            \
            fail_msg(                                                                  \
                "RMM_TEST_SEED=%llu, step %llu: %s",                                   \
                (unsigned long long)(model)->seed, (unsigned long long)(model)->step,  \
                #condition);                                                           \
        }                                                                              \
    } while (0)

/* xorshift64 */
static uint32_t draw(model_t *model, uint32_t below)
{
    model->random ^= model->random << 13;
    model->random ^= model->random >> 7;
    model->random ^= model->random << 17;
    return (uint32_t)((model->random >> 32) * below >> 32);
}

/* Small sizes are frequent, large ones occur. */
static uint32_t draw_units(model_t *model, uint32_t most)
{
    uint32_t log2 = draw(model, 11);
    uint32_t units = 1 + draw(model, 1u << log2);
    return units > most ? most : units;
}

static cell_t *cell_at(model_t *model, uint32_t unit)
{
    for (int i = 0; i < MAX_REGIONS; i++) {
        shadow_region_t *region = &model->regions[i];
        if (unit - region->first_unit < region->units) {
            return &region->cells[unit - region->first_unit];
        }
    }
    return NULL;
}

static void
set_cells(model_t *model, uint32_t unit, uint32_t units, const cell_t *value)
{
    for (uint32_t i = 0; i < units; i++) {
        cell_t *cell = cell_at(model, unit + i);
        require(model, cell != NULL);
        *cell = *value;
    }
}

/* The end of the run of equal owner that begins at cell i. */
static uint32_t run_end(const shadow_region_t *region, uint32_t i)
{
    uint32_t end = i + 1;
    while (end < region->units && region->cells[end].heap == region->cells[i].heap &&
           region->cells[end].id == region->cells[i].id) {
        end++;
    }
    return end;
}

/* The free block of all cells around this unit takes the stamp. */
static void spread_stamp(model_t *model, uint32_t unit, uint64_t stamp)
{
    for (int r = 0; r < MAX_REGIONS; r++) {
        shadow_region_t *region = &model->regions[r];
        for (uint32_t i = 0, end = 0; i < region->units; i = end) {
            end = run_end(region, i);
            if (unit - region->first_unit < end && unit - region->first_unit >= i) {
                for (uint32_t k = i; k < end; k++) {
                    region->cells[k].stamp = stamp;
                }
            }
        }
    }
}

/* The merge of the block that was freed last is final. */
static void settle(model_t *model, shadow_heap_t *heap)
{
    if (heap->last.units != 0) {
        spread_stamp(model, heap->last.unit, cell_at(model, heap->last.unit)->stamp);
        heap->last.units = 0;
    }
}

/* Does any free block of the heap hold that many units, aligned? */
static bool
fit_exists(model_t *model, rmm_heap_t heap, uint32_t units, uint32_t align_units)
{
    for (int r = 0; r < MAX_REGIONS; r++) {
        const shadow_region_t *region = &model->regions[r];
        for (uint32_t i = 0, end = 0; i < region->units; i = end) {
            end = run_end(region, i);
            uint32_t unit = region->first_unit + i;
            uint32_t pad = (align_units - unit % align_units) % align_units;
            if (region->cells[i].heap == heap && pad + units <= end - i) {
                return true;
            }
        }
    }
    return false;
}

/* ---- comparing -------------------------------------------------------------------- */

typedef struct comparison {
    model_t *model;
    uint64_t seen_units;
} comparison_t;

static bool compare_block(void *context, const rmm_block_info_t *info)
{
    comparison_t *comparison = context;
    model_t *model = comparison->model;
    cell_t *first = cell_at(model, info->unit);
    require(model, first != NULL);
    require(model, info->heap == first->heap);
    require(model, info->tag == first->id);
    uint64_t stamp = 0;
    for (uint32_t i = 0; i < info->units; i++) {
        const cell_t *cell = cell_at(model, info->unit + i);
        require(model, cell != NULL);
        require(model, cell->heap == first->heap && cell->id == first->id);
        stamp = cell->stamp > stamp ? cell->stamp : stamp;
    }
    require(model, info->stamp == stamp);
    comparison->seen_units += info->units;
    return true;
}

static void compare_heap(model_t *model, shadow_heap_t *heap)
{
    bool with_oldest = draw(model, 8) == 0; /* makes the last merge final */
    if (with_oldest) {
        settle(model, heap);
    }
    uint64_t units = 0, oldest = UINT64_MAX;
    uint32_t blocks = 0, largest = 0;
    for (int r = 0; r < MAX_REGIONS; r++) {
        const shadow_region_t *region = &model->regions[r];
        for (uint32_t i = 0, end = 0; i < region->units; i = end) {
            end = run_end(region, i);
            if (region->cells[i].heap == heap->heap) {
                blocks++;
                units += end - i;
                largest = end - i > largest ? end - i : largest;
                uint64_t stamp = region->cells[i].stamp;
                oldest = stamp < oldest ? stamp : oldest;
            }
        }
    }
    require(model, rmm__suballoc_free_units(model->sa, heap->heap) == units);
    require(model, rmm__suballoc_free_blocks(model->sa, heap->heap) == blocks);
    require(model, rmm__suballoc_largest_free(model->sa, heap->heap) == largest);
    if (with_oldest) {
        require(model, rmm__suballoc_oldest_stamp(model->sa, heap->heap) == oldest);
    }
}

static void compare(model_t *model)
{
    comparison_t comparison = {.model = model};
    rmm__suballoc_walk(model->sa, compare_block, &comparison);
    uint64_t units = 0, live_units = 0;
    for (int r = 0; r < MAX_REGIONS; r++) {
        units += model->regions[r].units;
    }
    require(model, comparison.seen_units == units);
    for (uint32_t i = 0; i < model->live_count; i++) {
        live_units += model->live[i].units;
    }
    require(model, rmm__suballoc_total_free_units(model->sa) == units - live_units);
    require(model, rmm__suballoc_live_blocks(model->sa) == model->live_count);
    /* not every heap each time: asking for the largest block repairs what it caches */
    shadow_heap_t *heap = &model->heaps[draw(model, MAX_HEAPS)];
    if (heap->exists) {
        compare_heap(model, heap);
    }
}

/* ---- operations ------------------------------------------------------------------- */

static shadow_heap_t *some_heap(model_t *model)
{
    for (;;) {
        shadow_heap_t *heap = &model->heaps[draw(model, MAX_HEAPS)];
        if (heap->exists) {
            return heap;
        }
    }
}

/* Often the same stamp again, as for a batch. */
static uint64_t next_stamp(model_t *model, shadow_heap_t *heap)
{
    heap->last_stamp += draw(model, 3);
    return heap->last_stamp;
}

/* In the shadow: the block has left the heap. */
static void
play_alloc(model_t *model, shadow_heap_t *heap, rmm_block_t block, uint32_t units)
{
    uint32_t unit = rmm__suballoc_block_unit(model->sa, block);
    require(model, rmm__suballoc_block_units(model->sa, block) == units);
    require(model, rmm__suballoc_block_tag(model->sa, block) == 0);
    for (uint32_t i = 0; i < units; i++) {
        const cell_t *cell = cell_at(model, unit + i);
        require(model, cell != NULL && cell->heap == heap->heap);
    }
    uint32_t id = ++model->next_id;
    rmm__suballoc_block_set_tag(model->sa, block, id);
    set_cells(model, unit, units, &(cell_t){.heap = LIVE, .id = id});
    model->live[model->live_count++] = (shadow_block_t){unit, units, id};
}

/* An alloc that wants just the block that was freed last takes it: true. */
static bool play_taken_again(
    model_t *model, shadow_heap_t *heap, rmm_block_t block, uint32_t units,
    uint32_t align)
{
    if (units != heap->last.units || heap->last.unit % align != 0) {
        return false;
    }
    require(model, rmm__suballoc_block_unit(model->sa, block) == heap->last.unit);
    heap->last.units = 0;
    play_alloc(model, heap, block, units);
    return true;
}

static void do_alloc(model_t *model)
{
    if (model->live_count == MAX_LIVE) {
        return;
    }
    shadow_heap_t *heap = some_heap(model), *second = some_heap(model);
    uint32_t units = draw_units(model, MAX_REGION_UNITS);
    uint32_t align = 1u << (draw(model, 3) == 0 ? draw(model, 14) : 0);
    if (heap->last.units != 0 && draw(model, 3) == 0) { /* the same again */
        units = heap->last.units;
    }
    bool either = second != heap && draw(model, 2) == 0;
    rmm_block_t block = RMM_BLOCK_NONE;
    rmm_suballoc_result_t result =
        either ? rmm__suballoc_alloc_either(
                     model->sa, heap->heap, second->heap, units, align, &block)
               : rmm__suballoc_alloc(model->sa, heap->heap, units, align, &block);
    if (result == RMM_SUBALLOC_OK && block != RMM_BLOCK_NONE &&
        play_taken_again(model, heap, block, units, align)) {
        return;
    }
    settle(model, heap);
    if (either) {
        settle(model, second);
    }
    if (result == RMM_SUBALLOC_NO_FIT) {
        require(model, !fit_exists(model, heap->heap, units, align));
        require(model, !either || !fit_exists(model, second->heap, units, align));
        return;
    }
    require(model, result == RMM_SUBALLOC_OK && block != RMM_BLOCK_NONE);
    uint32_t unit = rmm__suballoc_block_unit(model->sa, block);
    require(model, unit % align == 0 && cell_at(model, unit) != NULL);
    play_alloc(
        model, cell_at(model, unit)->heap == heap->heap ? heap : second, block, units);
}

static void do_free(model_t *model)
{
    if (model->live_count == 0) {
        return;
    }
    shadow_heap_t *heap = some_heap(model);
    shadow_block_t *chosen = &model->live[draw(model, model->live_count)];
    rmm_block_t block = rmm__suballoc_find(model->sa, chosen->unit);
    require(model, block != RMM_BLOCK_NONE);
    require(model, rmm__suballoc_block_tag(model->sa, block) == chosen->id);
    uint64_t stamp = next_stamp(model, heap);
    settle(model, heap);
    rmm__suballoc_free(model->sa, block, heap->heap, stamp);
    require(model, rmm__suballoc_find(model->sa, chosen->unit) == RMM_BLOCK_NONE);
    cell_t freed = {.heap = heap->heap, .stamp = stamp};
    set_cells(model, chosen->unit, chosen->units, &freed);
    heap->last = *chosen;
    *chosen = model->live[--model->live_count];
}

static void stamp_moved(model_t *model, uint64_t stamp)
{
    for (int r = 0; r < MAX_REGIONS; r++) {
        const shadow_region_t *region = &model->regions[r];
        for (uint32_t i = 0; i < region->units; i++) {
            if (region->cells[i].stamp == MOVED) {
                spread_stamp(model, region->first_unit + i, stamp);
            }
        }
    }
}

static void do_transfer(model_t *model)
{
    shadow_heap_t *from = some_heap(model), *to = some_heap(model);
    if (from == to) {
        return;
    }
    uint64_t span = from->last_stamp + 2;
    uint64_t up_to = draw(model, 4) == 0 ? UINT64_MAX : draw(model, (uint32_t)span);
    uint64_t stamp = next_stamp(model, to);
    settle(model, from);
    settle(model, to);
    uint64_t expected = 0;
    for (int r = 0; r < MAX_REGIONS; r++) {
        shadow_region_t *region = &model->regions[r];
        for (uint32_t i = 0; i < region->units; i++) {
            cell_t *cell = &region->cells[i];
            if (cell->heap == from->heap && cell->stamp <= up_to) {
                *cell = (cell_t){.heap = to->heap, .stamp = MOVED};
                expected++;
            }
        }
    }
    stamp_moved(model, stamp);
    uint64_t moved =
        rmm__suballoc_transfer(model->sa, from->heap, to->heap, up_to, stamp);
    require(model, moved == expected);
}

/* Any units of any region: they move if all of them are free in the heap. */
static void do_move(model_t *model)
{
    shadow_heap_t *from = some_heap(model), *to = some_heap(model);
    const shadow_region_t *region = &model->regions[draw(model, MAX_REGIONS)];
    if (from == to || region->units == 0) {
        return;
    }
    uint32_t at = draw(model, region->units);
    if (draw(model, 4) != 0 && region->cells[at].heap != LIVE) {
        for (int i = 0; i < MAX_HEAPS; i++) { /* rather one that may succeed */
            bool is_it = model->heaps[i].exists &&
                         model->heaps[i].heap == region->cells[at].heap;
            from = is_it && &model->heaps[i] != to ? &model->heaps[i] : from;
        }
    }
    uint32_t units = draw_units(model, region->units - at);
    uint32_t unit = region->first_unit + at;
    uint64_t stamp = next_stamp(model, to);
    settle(model, from);
    settle(model, to);
    bool fits = true;
    for (uint32_t i = 0; i < units; i++) {
        fits = fits && region->cells[at + i].heap == from->heap;
    }
    rmm_suballoc_result_t result =
        rmm__suballoc_move(model->sa, from->heap, to->heap, unit, units, stamp);
    require(model, result == (fits ? RMM_SUBALLOC_OK : RMM_SUBALLOC_NO_FIT));
    if (fits) {
        set_cells(model, unit, units, &(cell_t){.heap = to->heap, .stamp = stamp});
        spread_stamp(model, unit, stamp);
    }
}

/* The least that filling one end of this run takes; UINT32_MAX: it does not do. */
static uint32_t least_to_fill(
    const shadow_region_t *region, uint32_t i, rmm_heap_t filled, uint32_t units,
    uint32_t granule)
{
    uint32_t end = run_end(region, i), before = 0, after = 0;
    while (before < i && region->cells[i - 1 - before].heap == filled) {
        before++;
    }
    while (end + after < region->units && region->cells[end + after].heap == filled) {
        after++;
    }
    for (uint32_t n = granule; n - granule < end - i; n += granule) {
        uint32_t taken = n < end - i ? n : end - i;
        bool whole = taken == end - i;
        if (before + taken + (whole ? after : 0) >= units ||
            after + taken + (whole ? before : 0) >= units) {
            return taken;
        }
    }
    return UINT32_MAX;
}

/* What would be free in one piece around a unit if these were filled. */
static uint32_t run_if_filled(
    model_t *model, const rmm_suballoc_gap_t *gap, rmm_heap_t gaps, rmm_heap_t filled)
{
    uint32_t units = gap->units;
    const cell_t *cell;
    for (uint32_t i = 0; i < gap->units; i++) {
        require(model, cell_at(model, gap->unit + i)->heap == gaps);
    }
    for (uint32_t i = 1; i <= gap->before; i++) {
        cell = cell_at(model, gap->unit - i);
        units += cell != NULL && cell->heap == filled;
    }
    for (uint32_t i = 0; i < gap->after; i++) {
        cell = cell_at(model, gap->unit + gap->units + i);
        units += cell != NULL && cell->heap == filled;
    }
    return units;
}

static void do_find_gap(model_t *model)
{
    shadow_heap_t *gaps = some_heap(model), *filled = some_heap(model);
    uint32_t units = 1 + draw_units(model, MAX_REGION_UNITS);
    uint32_t granule = 1 + draw(model, 40);
    rmm_suballoc_gap_t gap;
    if (gaps == filled ||
        rmm__suballoc_largest_free(model->sa, filled->heap) >= units) {
        return; /* nothing is missing */
    }
    settle(model, gaps);
    settle(model, filled);
    uint32_t least = UINT32_MAX;
    for (int r = 0; r < MAX_REGIONS; r++) {
        const shadow_region_t *region = &model->regions[r];
        for (uint32_t i = 0; i < region->units; i = run_end(region, i)) {
            uint32_t here = region->cells[i].heap == gaps->heap
                                ? least_to_fill(region, i, filled->heap, units, granule)
                                : UINT32_MAX;
            least = here < least ? here : least;
        }
    }
    bool found = rmm__suballoc_find_gap(
        model->sa, gaps->heap, filled->heap, units, granule, &gap);
    require(model, found == (least != UINT32_MAX));
    if (found) {
        require(model, gap.units == least && gap.room >= gap.units);
        require(model, run_if_filled(model, &gap, gaps->heap, filled->heap) >= units);
    }
}

static void do_add_region(model_t *model)
{
    shadow_region_t *region = &model->regions[draw(model, MAX_REGIONS)];
    if (region->units > 0) {
        return;
    }
    shadow_heap_t *heap = some_heap(model);
    uint64_t stamp = draw(model, 2) ? 0 : heap->last_stamp;
    uint32_t units = 1 + draw(model, MAX_REGION_UNITS);
    uint32_t phase = draw(model, RMM_SUBALLOC_PHASES), first = 0;
    require(
        model,
        rmm__suballoc_add_region(model->sa, heap->heap, units, phase, stamp, &first) ==
            RMM_SUBALLOC_OK);
    require(model, first % RMM_SUBALLOC_PHASES == phase);
    for (uint32_t i = 0; i < units; i++) {
        require(model, cell_at(model, first + i) == NULL);
    }
    region->first_unit = first;
    region->units = units;
    set_cells(model, first, units, &(cell_t){.heap = heap->heap, .stamp = stamp});
}

static void do_remove_region(model_t *model)
{
    shadow_region_t *region = &model->regions[draw(model, MAX_REGIONS)];
    if (region->units == 0) {
        return;
    }
    shadow_heap_t *heap = some_heap(model);
    for (int i = 0; i < MAX_HEAPS; i++) {
        if (model->heaps[i].exists && model->heaps[i].heap == region->cells[0].heap &&
            draw(model, 4) != 0) {
            heap = &model->heaps[i];
        }
    }
    settle(model, heap);
    bool whole =
        region->cells[0].heap == heap->heap && run_end(region, 0) == region->units;
    require(
        model, rmm__suballoc_remove_region(model->sa, heap->heap, region->first_unit) ==
                   whole);
    region->units = whole ? 0 : region->units;
}

static void do_heap(model_t *model)
{
    shadow_heap_t *heap = &model->heaps[1 + draw(model, MAX_HEAPS - 1)];
    if (!heap->exists) {
        require(
            model,
            rmm__suballoc_heap_create(model->sa, &heap->heap) == RMM_SUBALLOC_OK);
        heap->exists = true;
        heap->last_stamp = 0;
        heap->last.units = 0;
    } else if (rmm__suballoc_free_blocks(model->sa, heap->heap) == 0) {
        rmm__suballoc_heap_destroy(model->sa, heap->heap);
        heap->exists = false;
    }
}

static void do_step(model_t *model)
{
    /* phases of filling and of emptying */
    uint32_t allocs = model->step / 200 % 2 == 0 ? 55 : 30;
    uint32_t choice = draw(model, 100);
    if (choice < allocs) {
        do_alloc(model);
    } else if (choice < 79) {
        do_free(model);
    } else if (choice < 83) {
        do_move(model);
    } else if (choice < 85) {
        do_find_gap(model);
    } else if (choice < 91) {
        do_transfer(model);
    } else if (choice < 94) {
        do_add_region(model);
    } else if (choice < 97) {
        do_remove_region(model);
    } else {
        do_heap(model);
    }
}

static void run_seed(uint64_t seed)
{
    model_t *model = calloc(1, sizeof *model);
    assert_non_null(model);
    model->seed = seed;
    model->random = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    model->sa = test_suballoc_create(&model->storage);
    assert_non_null(model->sa);
    model->heaps[0].exists = true;
    require(
        model,
        rmm__suballoc_heap_create(model->sa, &model->heaps[0].heap) == RMM_SUBALLOC_OK);
    for (model->step = 0; model->step < STEPS; model->step++) {
        do_step(model);
        compare(model);
        if (model->step % 8 == 0) {
            assert_sound(model->sa);
        }
    }
    assert_sound(model->sa);
    rmm__suballoc_destroy(model->sa);
    assert_int_equal(model->storage.bytes_held, 0);
    free(model);
}

static void random_operations_agree_with_an_array_of_units(void **state)
{
    (void)state;
    const char *chosen = getenv("RMM_TEST_SEED");
    if (chosen != NULL) {
        print_message("seed %s\n", chosen);
        run_seed(strtoull(chosen, NULL, 10));
        return;
    }
    print_message("seeds 1 to %d; RMM_TEST_SEED chooses one\n", SEEDS);
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        run_seed(seed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_operations_agree_with_an_array_of_units)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
