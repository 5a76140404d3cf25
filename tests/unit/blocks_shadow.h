/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shadow of the block manager that test_blocks_model.c plays its operations on: windows
 * of cells, one a unit, that say who holds it. It is too simple to be wrong, and too slow
 * for anything but a test.
 */
#ifndef RMM_TESTS_UNIT_BLOCKS_SHADOW_H
#define RMM_TESTS_UNIT_BLOCKS_SHADOW_H

#include "unit/blocks_fixture.h"

#define WINDOWS 5
#define WINDOW_UNITS 1000
#define MAX_HEAPS 5
#define MAX_LIVE 600
#define LIVE RMM_HEAP_NONE
#define GONE HEAP_UNUSED

typedef struct cell {
    rmm_heap_t heap; /* LIVE, GONE (not known to the manager), or where it is free */
    uint32_t id;     /* of a live block; 0 in a free one */
    uint32_t run;    /* added together */
    uint64_t stamp;  /* of a free one; 0 in a live one */
    bool is_late;    /* stamped after the merge boundary */
} cell_t;

typedef struct window {
    uint64_t first;
    cell_t cells[WINDOW_UNITS];
} window_t;

typedef struct shadow_block {
    uint64_t unit;
    uint32_t units, id;
} shadow_block_t;

/*
 * `last` is the block that was freed last here. It has merged, but if the next take takes
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
    rmm_blocks_t *blocks;
    uint64_t random;
    uint64_t seed, step;
    uint64_t frontier;
    uint64_t merge_boundary; /* 0: not */
    uint32_t next_id, next_run, live_count;
    shadow_block_t live[MAX_LIVE];
    shadow_heap_t heaps[MAX_HEAPS];
    window_t windows[WINDOWS]; /* in the order of addresses */
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
static inline uint32_t draw(model_t *model, uint32_t below)
{
    model->random ^= model->random << 13;
    model->random ^= model->random >> 7;
    model->random ^= model->random << 17;
    return (uint32_t)((model->random >> 32) * below >> 32);
}

/* Small sizes are frequent, large ones occur. */
static inline uint32_t draw_units(model_t *model, uint32_t most)
{
    uint32_t units = 1 + draw(model, 1u << draw(model, 11));

    return units > most ? most : units;
}

static inline window_t *window_of(model_t *model, uint64_t unit)
{
    for (int i = 0; i < WINDOWS; i++) {
        if (unit - model->windows[i].first < WINDOW_UNITS) {
            return &model->windows[i];
        }
    }
    return NULL;
}

/* NULL: outside of all windows, or gone. */
static inline cell_t *cell_at(model_t *model, uint64_t unit)
{
    window_t *window = window_of(model, unit);
    cell_t *cell = window != NULL ? &window->cells[unit - window->first] : NULL;

    return cell != NULL && cell->heap != GONE ? cell : NULL;
}

#define FOR_EACH_CELL(model, cell)                                                     \
    for (window_t *window_ = (model)->windows; window_ < &(model)->windows[WINDOWS];   \
         window_++)                                                                    \
        for (cell_t *cell = window_->cells; cell < &window_->cells[WINDOW_UNITS];      \
             cell++)

static inline bool is_late(const model_t *model, uint64_t stamp)
{
    return model->merge_boundary != 0 && stamp > model->merge_boundary;
}

/* Units that are known get another holder, and stay in their run. */
static inline void
set_cells(model_t *model, uint64_t unit, uint32_t units, const cell_t *value)
{
    for (uint32_t i = 0; i < units; i++) {
        cell_t *cell = cell_at(model, unit + i);
        uint32_t run;

        require(model, cell != NULL);
        run = cell->run;
        *cell = *value;
        cell->run = run;
        cell->is_late = is_late(model, value->stamp);
    }
}

static inline bool is_same_block(const cell_t *a, const cell_t *b)
{
    return a->heap == b->heap && a->id == b->id && a->run == b->run &&
           a->is_late == b->is_late;
}

/* The end of the block that cell i is in. */
static inline uint32_t block_end(const window_t *window, uint32_t i)
{
    uint32_t end = i + 1;

    while (end < WINDOW_UNITS &&
           is_same_block(&window->cells[end], &window->cells[i])) {
        end++;
    }
    return end;
}

/* Every block and every gap between runs, by address: `window`, cells i..end. */
#define FOR_EACH_BLOCK(model, window, i, end)                                          \
    for (window_t *window = (model)->windows; window < &(model)->windows[WINDOWS];     \
         window++)                                                                     \
        for (uint32_t i = 0, end; i < WINDOW_UNITS && (end = block_end(window, i));    \
             i = end)

/* The block that this unit is in; units 0: none. */
static inline shadow_block_t block_around(model_t *model, uint64_t unit)
{
    const window_t *window = window_of(model, unit);
    uint32_t at, begin;

    if (cell_at(model, unit) == NULL) {
        return (shadow_block_t){0, 0, 0};
    }
    at = (uint32_t)(unit - window->first);
    begin = at;
    while (begin > 0 && is_same_block(&window->cells[begin - 1], &window->cells[at])) {
        begin--;
    }
    return (shadow_block_t){
        window->first + begin, block_end(window, at) - begin, window->cells[at].id};
}

/* The free block of all cells around this unit takes the stamp. */
static inline void spread_stamp(model_t *model, uint64_t unit, uint64_t stamp)
{
    shadow_block_t block = block_around(model, unit);

    for (uint32_t i = 0; i < block.units; i++) {
        cell_at(model, block.unit + i)->stamp = stamp;
    }
}

/* The merge of the block that was freed last is final. */
static inline void settle(model_t *model, shadow_heap_t *heap)
{
    if (heap->last.units != 0) {
        spread_stamp(model, heap->last.unit, cell_at(model, heap->last.unit)->stamp);
        heap->last.units = 0;
    }
}

/* Are these units all in one free block of the heap? */
static inline bool
is_free_in(model_t *model, const shadow_heap_t *heap, uint64_t unit, uint32_t units)
{
    shadow_block_t block = block_around(model, unit);

    return block.units != 0 && cell_at(model, unit)->heap == heap->heap &&
           unit + units <= block.unit + block.units;
}

/* --- what the manager must find ------------------------------------------------------ */

/* Where a search must take the units; 0: nowhere. */
static inline uint64_t best_fit(
    model_t *model, rmm_heap_t own, rmm_heap_t shared,
    const rmm_blocks_request_t *request)
{
    uint64_t best = 0, best_looseness = 0;
    uint32_t seen = 0;

    FOR_EACH_BLOCK(model, window, i, end)
    {
        rmm_heap_t heap = window->cells[i].heap;
        uint64_t block_begin = window->first + i, block_stop = window->first + end;
        uint64_t begin = (block_begin + request->align_units - 1) /
                         request->align_units * request->align_units;
        uint64_t loose = block_stop > model->frontier ? UINT64_MAX : end - i;

        if ((heap == own || heap == shared) && begin + request->units <= block_stop &&
            seen++ < RMM_BLOCKS_FEW && (best == 0 || loose < best_looseness)) {
            best = begin;
            best_looseness = loose;
        }
    }
    return best;
}

/* Units of the block at this unit if it is free in the heap and of the run. */
static inline uint32_t
beside(model_t *model, uint64_t unit, rmm_heap_t heap, uint32_t run)
{
    const cell_t *cell = cell_at(model, unit);

    return cell != NULL && cell->heap == heap && cell->run == run
               ? block_around(model, unit).units
               : 0;
}

/* The least that filling one end of this block takes; UINT32_MAX: it does not do. From the back no
 * more than the block needs is filled, and only if that is aligned. */
static inline uint32_t least_to_fill(
    model_t *model, uint64_t unit, uint32_t room, uint32_t run, rmm_heap_t filled,
    const rmm_blocks_request_t *request, uint32_t granule)
{
    uint32_t units = request->units;
    uint32_t before = beside(model, unit - 1, filled, run);
    uint32_t after = beside(model, unit + room, filled, run);
    uint32_t pad = rmm__index_pad(unit - before, request->align_units);

    for (uint32_t n = granule; n - granule < room; n += granule) {
        uint32_t taken = n < room ? n : room;
        bool whole = taken == room;

        if (before + taken + (whole ? after : 0) >= units + pad ||
            (taken == n && after + taken >= units && after + taken < units + granule &&
             rmm__index_pad(unit + room - taken, request->align_units) == 0)) {
            return taken;
        }
    }
    return UINT32_MAX;
}

#endif /* RMM_TESTS_UNIT_BLOCKS_SHADOW_H */
