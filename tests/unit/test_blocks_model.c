/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random operations against a shadow that is too simple to be wrong (blocks_shadow.h); it
 * also says which block a take must choose. After every operation the manager's walk is
 * compared with the shadow; every few operations the manager checks itself.
 *
 * Each seed is printed when it fails; RMM_TEST_SEED=<number> runs that seed alone. Seeds
 * differ in kind: in some every growth of the storage fails once, in some takes may seldom
 * extend, in some there are few heaps.
 */
#include "unit/blocks_shadow.h"

#define SEEDS 48
#define STEPS 1500
#define MOVED UINT64_MAX /* a stamp while a transfer is played */

/* --- comparing ----------------------------------------------------------------------- */

typedef struct comparison {
    model_t *model;
    uint64_t seen_units;
} comparison_t;

static bool compare_block(void *context, const rmm_block_info_t *info)
{
    comparison_t *comparison = context;
    model_t *model = comparison->model;
    shadow_block_t block = block_around(model, info->unit);
    const cell_t *first = cell_at(model, info->unit);
    uint64_t stamp = 0;

    require(model, block.unit == info->unit && block.units == info->units);
    require(model, info->units != 0 && info->heap == first->heap);
    require(model, info->tag == first->id);
    for (uint32_t i = 0; i < info->units; i++) {
        stamp = first[i].stamp > stamp ? first[i].stamp : stamp;
    }
    require(model, info->stamp == stamp);
    comparison->seen_units += info->units;
    return true;
}

typedef struct visit {
    model_t *model;
    uint64_t next; /* from here on */
    uint64_t units, count;
} visit_t;

static bool visit_free(void *context, const rmm_index_entry_t *found)
{
    visit_t *visit = context;
    shadow_block_t block = block_around(visit->model, found->unit);

    require(visit->model, found->unit >= visit->next);
    require(visit->model, block.unit == found->unit && block.units == found->units);
    visit->next = found->unit + found->units;
    visit->units += found->units;
    visit->count++;
    return true;
}

static void compare_settled(model_t *model, shadow_heap_t *heap, uint64_t oldest)
{
    uint32_t least = 1 + draw(model, 40);
    uint64_t units = 0, count = 0, newest = 0;
    visit_t visit = {.model = model};

    FOR_EACH_BLOCK(model, window, i, end)
    {
        uint64_t stamp = window->cells[i].stamp;

        if (window->cells[i].heap == heap->heap && end - i >= least) {
            units += end - i;
            count++;
        }
        if (window->cells[i].heap == heap->heap && stamp > newest) {
            newest = stamp;
        }
    }
    require(model, rmm__blocks_oldest_stamp(model->blocks, heap->heap) == oldest);
    require(model, rmm__blocks_newest_stamp(model->blocks, heap->heap) == newest);
    rmm__blocks_walk_free(model->blocks, heap->heap, least, visit_free, &visit);
    require(model, visit.units == units && visit.count == count);
}

static void compare_heap(model_t *model, shadow_heap_t *heap)
{
    bool settles = draw(model, 8) == 0;
    uint64_t units = 0, oldest = UINT64_MAX;
    uint32_t count = 0, largest = 0;

    if (settles) {
        settle(model, heap);
    }
    FOR_EACH_BLOCK(model, window, i, end)
    {
        if (window->cells[i].heap == heap->heap) {
            uint64_t stamp = window->cells[i].stamp;

            count++;
            units += end - i;
            largest = end - i > largest ? end - i : largest;
            oldest = stamp < oldest ? stamp : oldest;
        }
    }
    require(model, rmm__blocks_free_units(model->blocks, heap->heap) == units);
    require(model, blocks_free_count(model->blocks, heap->heap) == count);
    require(model, rmm__blocks_largest_free(model->blocks, heap->heap) == largest);
    if (settles) {
        compare_settled(model, heap, oldest);
    }
}

static void compare(model_t *model)
{
    comparison_t comparison = {.model = model};
    shadow_heap_t *heap = &model->heaps[draw(model, MAX_HEAPS)];
    uint64_t units = 0, live_units = 0;

    rmm__blocks_walk(model->blocks, compare_block, &comparison);
    FOR_EACH_BLOCK(model, window, i, end)
    {
        units += window->cells[i].heap != GONE ? end - i : 0;
        live_units += window->cells[i].heap == LIVE ? end - i : 0;
    }
    require(model, comparison.seen_units == units);
    require(model, rmm__blocks_total_free_units(model->blocks) == units - live_units);
    require(model, rmm__blocks_live_count(model->blocks) == model->live_count);
    if (heap->exists) {
        compare_heap(model, heap);
    }
}

/* --- take ---------------------------------------------------------------------------- */

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

/* In the shadow: the block is live. */
static void play_take(model_t *model, rmm_block_t block, uint64_t unit, uint32_t units)
{
    rmm_block_node_t *node = rmm__blocks_look_at(model->blocks, block);
    uint32_t id = ++model->next_id;

    require(model, node->unit == unit && node->units == units && node->tag == 0);
    require(model, rmm__blocks_find(model->blocks, unit) == block);
    node->tag = id;
    set_cells(model, unit, units, &(cell_t){.heap = LIVE, .id = id});
    model->live[model->live_count++] = (shadow_block_t){unit, units, id};
    if (unit + units > model->frontier) {
        model->frontier = unit + units;
    }
}

static rmm_blocks_request_t draw_request(model_t *model, const shadow_heap_t *heap)
{
    rmm_blocks_request_t request = {
        .units = draw_units(model, WINDOW_UNITS),
        .align_units = 1u << (draw(model, 3) == 0 ? draw(model, 14) : 0)};

    if (heap->last.units != 0 && draw(model, 3) == 0) { /* the same again */
        request.units = heap->last.units;
    }
    return request;
}

/* Repeats what storage has refused: a growth fails once. */
static rmm_blocks_result_t take_or_retry(
    model_t *model, const shadow_heap_t *own, const shadow_heap_t *shared,
    const rmm_blocks_request_t *request, rmm_block_t *block_out)
{
    rmm_blocks_result_t result =
        rmm__blocks_take(model->blocks, own->heap, shared->heap, request, block_out);

    if (result == RMM_BLOCKS_NO_STORAGE) {
        require(model, model->storage.growths == model->storage.fail_at);
        compare(model);
        result = rmm__blocks_take(
            model->blocks, own->heap, shared->heap, request, block_out);
    }
    return result;
}

static void do_take(model_t *model)
{
    shadow_heap_t *own = some_heap(model);
    shadow_heap_t *shared = draw(model, 2) == 0 ? own : some_heap(model);
    rmm_blocks_request_t request = draw_request(model, own);
    rmm_block_t block = RMM_BLOCK_NONE;
    rmm_blocks_result_t result;
    uint64_t unit;

    if (model->live_count == MAX_LIVE) {
        return;
    }
    if (own->last.units == request.units && own->last.unit % request.align_units == 0) {
        unit = own->last.unit; /* taken as it is */
        own->last.units = 0;
        result =
            rmm__blocks_take(model->blocks, own->heap, shared->heap, &request, &block);
        require(model, result == RMM_BLOCKS_OK);
        play_take(model, block, unit, request.units);
        return;
    }
    result = take_or_retry(model, own, shared, &request, &block);
    settle(model, own);
    settle(model, shared);
    unit = best_fit(model, own->heap, shared->heap, &request);
    if (unit != 0) {
        require(model, result == RMM_BLOCKS_OK && block != RMM_BLOCK_NONE);
        play_take(model, block, unit, request.units);
        return;
    }
    require(model, result == RMM_BLOCKS_NO_FIT && block == RMM_BLOCK_NONE);
}

/* --- free ---------------------------------------------------------------------------- */

/* What the look for an owner says of the block that was freed just now. */
static void compare_look(model_t *model, rmm_block_t block)
{
    shadow_block_t merged =
        block_around(model, rmm__blocks_look_at(model->blocks, block)->unit);

    require(model, rmm__blocks_look_merged(model->blocks, block) == merged.units);
}

static void play_free(
    model_t *model, shadow_heap_t *heap, const shadow_block_t *freed, uint64_t stamp)
{
    require(model, rmm__blocks_find(model->blocks, freed->unit) == RMM_BLOCK_NONE);
    set_cells(
        model, freed->unit, freed->units,
        &(cell_t){.heap = heap->heap, .stamp = stamp});
    heap->last = *freed;
}

static void do_free(model_t *model)
{
    shadow_heap_t *heap = some_heap(model);
    shadow_block_t *chosen = &model->live[draw(model, MAX_LIVE)];
    rmm_block_t block;
    uint64_t stamp;

    if (model->live_count == 0) {
        return;
    }
    chosen = &model->live[draw(model, model->live_count)];
    block = rmm__blocks_find(model->blocks, chosen->unit);
    require(model, block != RMM_BLOCK_NONE);
    require(model, rmm__blocks_look_at(model->blocks, block)->tag == chosen->id);
    stamp = next_stamp(model, heap);
    settle(model, heap);
    rmm__blocks_free(model->blocks, block, heap->heap, stamp);
    play_free(model, heap, chosen, stamp);
    compare_look(model, block);
    *chosen = model->live[--model->live_count];
}

static void do_free_part(model_t *model)
{
    shadow_heap_t *heap = some_heap(model);
    shadow_block_t *chosen;
    shadow_block_t front, middle, back;
    rmm_block_t block;
    uint64_t stamp;

    if (model->live_count == 0 || model->live_count + 2 > MAX_LIVE) {
        return;
    }
    chosen = &model->live[draw(model, model->live_count)];
    front = middle = back = *chosen;
    front.units = draw(model, chosen->units);
    middle.unit += front.units;
    middle.units = 1 + draw(model, chosen->units - front.units);
    back.unit = middle.unit + middle.units;
    back.units = chosen->units - front.units - middle.units;
    block = rmm__blocks_find(model->blocks, chosen->unit);
    stamp = next_stamp(model, heap);
    if (!rmm__blocks_free_part(
            model->blocks, block, middle.unit, middle.units, heap->heap, stamp)) {
        require(model, model->storage.growths == model->storage.fail_at);
        compare(model);
        require(
            model,
            rmm__blocks_free_part(
                model->blocks, block, middle.unit, middle.units, heap->heap, stamp));
    }
    settle(model, heap);
    play_free(model, heap, &middle, stamp);
    *chosen = model->live[--model->live_count];
    if (front.units != 0) {
        require(model, rmm__blocks_find(model->blocks, front.unit) == block);
        model->live[model->live_count++] = front;
    }
    if (back.units != 0) {
        require(model, rmm__blocks_find(model->blocks, back.unit) != RMM_BLOCK_NONE);
        model->live[model->live_count++] = back;
    }
}

/* --- between heaps ------------------------------------------------------------------- */

static void do_transfer(model_t *model)
{
    shadow_heap_t *from = some_heap(model), *to = some_heap(model);
    uint64_t up_to =
        draw(model, 4) == 0 ? UINT64_MAX : draw(model, (uint32_t)from->last_stamp + 2);
    uint64_t stamp, expected = 0;

    if (from == to) {
        return;
    }
    stamp = next_stamp(model, to);
    settle(model, from);
    settle(model, to);
    FOR_EACH_BLOCK(model, window, i, end)
    {
        if (window->cells[i].heap == from->heap && window->cells[i].stamp <= up_to) {
            expected += end - i;
            for (uint32_t k = i; k < end; k++) {
                window->cells[k].heap = to->heap;
                window->cells[k].stamp = MOVED;
                window->cells[k].is_late = is_late(model, stamp);
            }
        }
    }
    FOR_EACH_BLOCK(model, window, i, end)
    {
        for (uint32_t k = i; k < end; k++) {
            if (window->cells[k].stamp == MOVED) {
                spread_stamp(model, window->first + i, stamp);
            }
        }
    }
    require(
        model, rmm__blocks_transfer(
                   model->blocks, from->heap, to->heap, up_to, stamp) == expected);
}

/* Any units of any window; mostly some that are all in one free block, of which `heap`
 * says the heap. */
static shadow_block_t draw_part(model_t *model, shadow_heap_t **heap)
{
    window_t *window = &model->windows[draw(model, WINDOWS)];
    uint32_t at = draw(model, WINDOW_UNITS), end = block_end(window, at);
    shadow_block_t part = {window->first + at, draw_units(model, WINDOW_UNITS - at), 0};

    for (int i = 0; i < MAX_HEAPS && draw(model, 4) != 0; i++) {
        if (model->heaps[i].exists && model->heaps[i].heap == window->cells[at].heap) {
            *heap = &model->heaps[i];
            if (draw(model, 3) == 0) { /* a whole block */
                part = block_around(model, part.unit);
            } else if (draw(model, 2) == 0) { /* the end of one */
                part.units = end - at;
            } else {
                part.units = 1 + draw(model, end - at);
            }
        }
    }
    return part;
}

static void do_move(model_t *model)
{
    shadow_heap_t *from = some_heap(model), *to = some_heap(model);
    shadow_block_t part = draw_part(model, &from);
    rmm_blocks_result_t result;
    uint64_t stamp;
    bool fits;

    if (from == to) {
        return;
    }
    stamp = next_stamp(model, to);
    result = rmm__blocks_move(
        model->blocks, from->heap, to->heap, part.unit, part.units, stamp);
    if (result == RMM_BLOCKS_NO_STORAGE) {
        require(model, model->storage.growths == model->storage.fail_at);
        compare(model);
        result = rmm__blocks_move(
            model->blocks, from->heap, to->heap, part.unit, part.units, stamp);
    }
    settle(model, from);
    settle(model, to);
    fits = is_free_in(model, from, part.unit, part.units);
    require(model, result == (fits ? RMM_BLOCKS_OK : RMM_BLOCKS_NO_FIT));
    if (fits) {
        set_cells(
            model, part.unit, part.units, &(cell_t){.heap = to->heap, .stamp = stamp});
        spread_stamp(model, part.unit, stamp);
    }
}

/* --- gaps ---------------------------------------------------------------------------- */

/* Lowest and least, of which the manager knows only one that fills from the front. */
static void compare_gap(
    model_t *model, const rmm_blocks_gap_t *gap, rmm_heap_t gaps, rmm_heap_t filled,
    const rmm_blocks_request_t *request)
{
    shadow_block_t block = block_around(model, gap->unit);
    uint32_t run = cell_at(model, gap->unit)->run;
    uint32_t before = beside(model, block.unit - 1, filled, run);
    uint32_t after = beside(model, block.unit + block.units, filled, run);
    bool is_back = gap->unit != block.unit;

    require(model, cell_at(model, gap->unit)->heap == gaps);
    require(model, gap->unit + gap->room == block.unit + block.units);
    require(model, gap->units <= gap->room);
    require(model, gap->before == (is_back ? 0 : before));
    require(model, gap->after == (gap->units == gap->room ? after : 0));
    require(
        model, gap->units + gap->before + gap->after >=
                   request->units +
                       rmm__index_pad(gap->unit - gap->before, request->align_units));
}

static void do_find_gap(model_t *model)
{
    shadow_heap_t *gaps = some_heap(model), *filled = some_heap(model);
    const rmm_blocks_request_t request = {
        1 + draw_units(model, WINDOW_UNITS), 1u << draw(model, 7)};
    uint32_t granule = 1 + draw(model, 40);
    uint32_t least = UINT32_MAX;
    rmm_blocks_gap_t gap;
    bool found;

    if (gaps == filled ||
        rmm__blocks_largest_free(model->blocks, filled->heap) >= request.units) {
        return; /* nothing is missing, or only the alignment */
    }
    settle(model, gaps);
    settle(model, filled);
    FOR_EACH_BLOCK(model, window, i, end)
    {
        if (window->cells[i].heap == gaps->heap) {
            uint32_t here = least_to_fill(
                model, window->first + i, end - i, window->cells[i].run, filled->heap,
                &request, granule);

            least = here < least ? here : least;
        }
    }
    found = rmm__blocks_find_gap(
        model->blocks, gaps->heap, filled->heap, &request, granule, &gap);
    require(model, found == (least != UINT32_MAX));
    if (found) {
        require(model, gap.units == least);
        compare_gap(model, &gap, gaps->heap, filled->heap, &request);
    }
}

/* --- runs and heaps ------------------------------------------------------------------ */

/* Units that are not known, anywhere in a window, become a run. */
static void do_add(model_t *model)
{
    window_t *window = &model->windows[draw(model, WINDOWS)];
    uint32_t at = draw(model, 2) == 0 ? 0 : draw(model, WINDOW_UNITS);
    shadow_heap_t *heap = some_heap(model);
    uint64_t stamp = draw(model, 2) ? 0 : heap->last_stamp;
    rmm_blocks_result_t result;
    uint32_t end;

    if (window->cells[at].heap != GONE) {
        return;
    }
    end = block_end(window, at);
    end = at + 1 + draw(model, end - at);
    result =
        rmm__blocks_add(model->blocks, heap->heap, window->first + at, end - at, stamp);
    if (result == RMM_BLOCKS_NO_STORAGE) {
        require(model, model->storage.growths == model->storage.fail_at);
        compare(model);
        result = rmm__blocks_add(
            model->blocks, heap->heap, window->first + at, end - at, stamp);
    }
    require(model, result == RMM_BLOCKS_OK);
    settle(model, heap);
    model->next_run++;
    for (; at < end; at++) {
        window->cells[at] = (cell_t){
            .heap = heap->heap,
            .stamp = stamp,
            .run = model->next_run,
            .is_late = is_late(model, stamp)};
    }
}

static void do_cut(model_t *model)
{
    shadow_heap_t *heap = some_heap(model);
    shadow_block_t part = draw_part(model, &heap);
    bool fits, is_cut;

    settle(model, heap);
    fits = is_free_in(model, heap, part.unit, part.units);
    is_cut = rmm__blocks_cut(model->blocks, heap->heap, part.unit, part.units);
    if (!is_cut && fits) {
        require(model, model->storage.growths == model->storage.fail_at);
        compare(model);
        is_cut = rmm__blocks_cut(model->blocks, heap->heap, part.unit, part.units);
    }
    require(model, is_cut == fits);
    for (uint32_t i = 0; i < part.units && is_cut; i++) {
        *cell_at(model, part.unit + i) = (cell_t){.heap = GONE};
    }
}

static void do_heap(model_t *model)
{
    shadow_heap_t *heap =
        &model->heaps[1 + draw(model, model->seed % 3 == 0 ? 1 : MAX_HEAPS - 1)];

    if (!heap->exists) {
        rmm_blocks_result_t result =
            rmm__blocks_heap_create(model->blocks, &heap->heap);

        if (result == RMM_BLOCKS_NO_STORAGE) {
            result = rmm__blocks_heap_create(model->blocks, &heap->heap);
        }
        require(model, result == RMM_BLOCKS_OK);
        heap->exists = true;
        heap->last_stamp = 0;
        heap->last.units = 0;
    } else if (blocks_free_count(model->blocks, heap->heap) == 0) {
        rmm__blocks_heap_destroy(model->blocks, heap->heap);
        heap->exists = false;
    }
}

static void do_find(model_t *model)
{
    window_t *window = &model->windows[draw(model, WINDOWS)];
    uint64_t unit = window->first - 3 + draw(model, WINDOW_UNITS + 6);
    shadow_heap_t *heap = some_heap(model);
    shadow_block_t block = block_around(model, unit);
    bool is_live = block.id != 0 && block.unit == unit;
    bool is_free = is_free_in(model, heap, unit, 1);
    uint32_t units = 0;

    require(
        model, (rmm__blocks_find(model->blocks, unit) != RMM_BLOCK_NONE) == is_live);
    settle(model, heap);
    require(
        model, is_free == rmm__blocks_free_around(
                              model->blocks, heap->heap, unit, &unit, &units));
    require(model, !is_free || (unit == block.unit && units == block.units));
}

/* Blocks that were kept apart merge, and have the latest stamp of all. */
static void play_boundary_clear(model_t *model)
{
    for (int i = 0; i < MAX_HEAPS; i++) {
        if (model->heaps[i].exists) {
            settle(model, &model->heaps[i]);
        }
    }
    model->merge_boundary = 0;
    FOR_EACH_CELL(model, cell)
    {
        cell->is_late = false;
    }
    FOR_EACH_BLOCK(model, window, i, end)
    {
        uint64_t latest = 0;

        for (uint32_t k = i; k < end; k++) {
            latest = window->cells[k].stamp > latest ? window->cells[k].stamp : latest;
        }
        if (window->cells[i].heap != GONE && window->cells[i].heap != LIVE) {
            spread_stamp(model, window->first + i, latest);
        }
    }
}

static void do_seal(model_t *model)
{
    if (model->merge_boundary != 0) {
        rmm__blocks_merge_boundary_clear(model->blocks, true);
        play_boundary_clear(model);
    } else {
        model->merge_boundary = 1 + some_heap(model)->last_stamp;
        rmm__blocks_merge_boundary_set(model->blocks, model->merge_boundary);
        FOR_EACH_CELL(model, cell)
        {
            cell->is_late = cell->heap != GONE && is_late(model, cell->stamp);
        }
    }
}

static void do_step(model_t *model)
{
    static const struct {
        uint32_t weight;
        void (*fn)(model_t *model);
    } others[] = {{4, do_free_part}, {5, do_move}, {3, do_find_gap},
                  {6, do_transfer},  {5, do_add},  {3, do_cut},
                  {3, do_heap},      {2, do_find}, {1, do_seal}};
    /* phases of filling and of emptying */
    uint32_t takes = model->step / 200 % 2 == 0 ? 42 : 22;
    uint32_t choice = draw(model, 100);

    if (choice < takes) {
        do_take(model);
        return;
    }
    choice -= takes;
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        if (choice < others[i].weight) {
            others[i].fn(model);
            return;
        }
        choice -= others[i].weight;
    }
    do_free(model);
}

static void open_model(model_t *model, uint64_t seed)
{
    model->seed = seed;
    model->random = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    model->blocks = test_blocks_create(&model->storage);
    assert_non_null(model->blocks);
    for (uint32_t i = 0; i < WINDOWS; i++) {
        window_t *window = &model->windows[i];

        window->first = RUN_FIRST + (uint64_t)i * 70001 + draw(model, 40000);
        for (uint32_t k = 0; k < WINDOW_UNITS; k++) {
            window->cells[k].heap = GONE;
        }
    }
    model->heaps[0].exists = true;
    require(
        model,
        rmm__blocks_heap_create(model->blocks, &model->heaps[0].heap) == RMM_BLOCKS_OK);
}

static void run_seed(uint64_t seed)
{
    model_t *model = calloc(1, sizeof(*model));

    assert_non_null(model);
    open_model(model, seed);
    for (model->step = 0; model->step < STEPS; model->step++) {
        if (seed % 4 == 0 && model->storage.growths >= model->storage.fail_at) {
            model->storage.fail_at = model->storage.growths + 1;
        }
        do_step(model);
        compare(model);
        if (model->step % 8 == 0) {
            assert_sound(model->blocks);
        }
    }
    assert_sound(model->blocks);
    rmm__blocks_destroy(model->blocks);
    assert_int_equal(model->storage.bytes_held, 0);
    free(model);
}

TEST_CASE(random_operations_agree_with_windows_of_cells)
{
    const char *chosen = getenv("RMM_TEST_SEED");
    unsigned seeds = getenv("RMM_TEST_QUICK") != NULL ? SEEDS / 4 : SEEDS;

    if (chosen != NULL) {
        print_message("seed %s\n", chosen);
        run_seed(strtoull(chosen, NULL, 10));
        return;
    }
    print_message("seeds 1 to %u; RMM_TEST_SEED chooses one\n", seeds);
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        run_seed(seed);
    }
}
