/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The index of free blocks by itself, against an array of cells in the order of addresses.
 * Each cell has a range of units of its own, so that an entry which begins somewhere else
 * in its range stays between its neighbours.
 *
 * Random operations print their seed when they fail; RMM_TEST_SEED=<number> runs one.
 */
#include "harness/harness.h"
#include "pool/index.h"

#include <stdlib.h>
#include <string.h>

#define CELL_UNITS 64u /* of its range; an entry begins in the first half */
#define FIRST_UNIT (UINT64_C(1) << 40)
#define SEEDS 12
#define MOST_FITS 6u

typedef struct cell {
    uint64_t unit;
    uint32_t units; /* 0: no entry */
} cell_t;

typedef struct bed {
    rmm_index_nodes_t all;
    rmm_index_t tree;
    cell_t *cells;
    uint32_t cell_count, entries;
    uint64_t random, seed, step;
} bed_t;

#define require(bed, condition)                                                        \
    do {                                                                               \
        if (!(condition)) {                                                            \
            fail_msg(                                                                  \
                "RMM_TEST_SEED=%llu, %u cells, step %llu: %s",                         \
                (unsigned long long)(bed)->seed, (bed)->cell_count,                    \
                (unsigned long long)(bed)->step, #condition);                          \
        }                                                                              \
    } while (0)

/* xorshift64 */
static uint32_t draw(bed_t *bed, uint32_t below)
{
    bed->random ^= bed->random << 13;
    bed->random ^= bed->random >> 7;
    bed->random ^= bed->random << 17;
    return (uint32_t)((bed->random >> 32) * below >> 32);
}

static void bed_open(bed_t *bed, uint32_t cell_count, uint64_t seed)
{
    memset(bed, 0, sizeof(*bed));
    bed->seed = seed;
    bed->random = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    bed->cell_count = cell_count;
    bed->cells = calloc(cell_count, sizeof(*bed->cells));
    bed->all.capacity = (uint32_t)rmm__index_nodes_for(cell_count, 1);
    bed->all.nodes = calloc(bed->all.capacity, sizeof(*bed->all.nodes));
    assert_non_null(bed->cells);
    assert_non_null(bed->all.nodes);
}

static void bed_close(bed_t *bed)
{
    free(bed->cells);
    free(bed->all.nodes);
}

static uint64_t cell_unit(uint32_t at)
{
    return FIRST_UNIT + (uint64_t)at * CELL_UNITS;
}

/* Most entries are small, a few large: searches skip nodes. */
static void fill_cell(bed_t *bed, uint32_t at)
{
    uint32_t log2 = 1 + draw(bed, draw(bed, 8) == 0 ? 20 : 6);

    bed->cells[at].unit = cell_unit(at) + draw(bed, CELL_UNITS / 2);
    bed->cells[at].units = 1 + draw(bed, 1u << log2);
}

static rmm_index_entry_t entry_at(const bed_t *bed, uint32_t at)
{
    return (rmm_index_entry_t){bed->cells[at].unit, bed->cells[at].units, at + 1};
}

static void put_in(bed_t *bed, uint32_t at)
{
    rmm_index_entry_t entry;

    fill_cell(bed, at);
    entry = entry_at(bed, at);
    rmm__index_insert(&bed->all, &bed->tree, &entry);
    bed->entries++;
}

static void take_out(bed_t *bed, uint32_t at)
{
    rmm__index_remove(&bed->all, &bed->tree, bed->cells[at].unit);
    bed->cells[at].units = 0;
    bed->entries--;
}

/* Both ends, the front alone, the back alone. */
static void change(bed_t *bed, uint32_t at)
{
    cell_t before = bed->cells[at];
    rmm_index_entry_t entry;

    fill_cell(bed, at);
    switch (draw(bed, 3)) {
    case 0:
        bed->cells[at].unit = before.unit;
        break;
    case 1:
        bed->cells[at].units = before.units;
        break;
    default:
        break;
    }
    entry = entry_at(bed, at);
    rmm__index_change(&bed->all, &bed->tree, before.unit, &entry);
}

/* --- looks --------------------------------------------------------------------------- */

/* Those that were in a tree and are not now, are on a list. */
static uint32_t nodes_in_use(const bed_t *bed)
{
    uint32_t count = bed->all.used == 0 ? 0 : bed->all.used - 1;

    for (uint32_t index = bed->all.unused; index != 0;
         index = bed->all.nodes[index].next_unused) {
        assert_true(count > 0);
        count--;
    }
    return count;
}

static void check_tree(bed_t *bed)
{
    const char *wrong = rmm__index_check(&bed->all, &bed->tree);

    if (wrong != NULL) {
        fail_msg(
            "RMM_TEST_SEED=%llu, %u cells, step %llu: %s",
            (unsigned long long)bed->seed, bed->cell_count,
            (unsigned long long)bed->step, wrong);
    }
    require(bed, nodes_in_use(bed) < rmm__index_nodes_for(bed->entries, 1));
    require(bed, (bed->tree.root == 0) == (bed->entries == 0));
    require(bed, bed->entries != 0 || nodes_in_use(bed) == 0);
}

static bool fits(const cell_t *cell, uint32_t units, uint32_t align_units)
{
    uint64_t end = cell->unit + cell->units;
    uint64_t begin = (cell->unit + align_units - 1) / align_units * align_units;

    return cell->units != 0 && begin + units <= end;
}

static void compare_fits(bed_t *bed, uint32_t units, uint32_t align_units)
{
    rmm_index_entry_t found[MOST_FITS + 1];
    uint32_t most = 1 + draw(bed, MOST_FITS);
    uint32_t at = 0, count;

    found[most].units = 77; /* must stay */
    count =
        rmm__index_first_fits(&bed->all, &bed->tree, units, align_units, found, most);
    for (uint32_t i = 0; i < count; i++) {
        while (!fits(&bed->cells[at], units, align_units)) {
            require(bed, ++at < bed->cell_count);
        }
        require(bed, found[i].unit == bed->cells[at].unit);
        require(bed, found[i].units == bed->cells[at].units);
        require(bed, found[i].block == at + 1);
        require(bed, found[i].units != units || i + 1 == count); /* exact: the last */
        at++;
    }
    require(bed, count <= most && found[most].units == 77);
    if (count != 0 && found[count - 1].units == units) {
        return; /* exact: a search ends with it */
    }
    while (count < most && at < bed->cell_count) {
        require(bed, !fits(&bed->cells[at], units, align_units));
        at++;
    }
}

/* The front of a block that a search has found is cut off. */
static void cut_found(bed_t *bed, uint32_t units)
{
    rmm_index_entry_t found[MOST_FITS];
    uint32_t count =
        rmm__index_first_fits(&bed->all, &bed->tree, units + 1, 1, found, MOST_FITS);

    if (count != 0) {
        rmm_index_entry_t entry = found[draw(bed, count)];
        cell_t *cell = &bed->cells[entry.block - 1];
        uint64_t unit = cell->unit;

        if (unit + units < cell_unit(entry.block)) {
            cell->unit += units;
            cell->units -= units;
            entry.unit += units;
            entry.units -= units;
            rmm__index_change(&bed->all, &bed->tree, unit, &entry);
        }
    }
}

static void compare_at(bed_t *bed, uint64_t unit)
{
    rmm_index_entry_t entry;
    bool found = rmm__index_at(&bed->all, &bed->tree, unit, &entry);
    uint32_t last = bed->cell_count;

    if (unit >= FIRST_UNIT) {
        uint64_t at = (unit - FIRST_UNIT) / CELL_UNITS;

        last = at < bed->cell_count ? (uint32_t)at : bed->cell_count - 1;
        while (last != UINT32_MAX &&
               (bed->cells[last].units == 0 || bed->cells[last].unit > unit)) {
            last--;
        }
    } else {
        last = UINT32_MAX;
    }
    require(bed, found == (last != UINT32_MAX));
    if (found) {
        require(bed, entry.block == last + 1);
        require(bed, entry.unit == bed->cells[last].unit);
        require(bed, entry.units == bed->cells[last].units);
    }
}

typedef struct visit {
    bed_t *bed;
    uint32_t at, units, left;
} visit_t;

static bool visit(void *context, const rmm_index_entry_t *entry)
{
    visit_t *visit = context;
    bed_t *bed = visit->bed;

    while (bed->cells[visit->at].units < visit->units ||
           bed->cells[visit->at].units == 0) {
        require(bed, ++visit->at < bed->cell_count);
    }
    require(bed, entry->block == visit->at + 1);
    require(bed, entry->unit == bed->cells[visit->at].unit);
    require(bed, entry->units == bed->cells[visit->at].units);
    require(bed, visit->left > 0);
    visit->at++;
    return --visit->left > 0;
}

static void compare_walk(bed_t *bed, uint32_t units, uint32_t most)
{
    uint32_t expected = 0;
    visit_t context = {bed, 0, units, 0};

    for (uint32_t at = 0; at < bed->cell_count; at++) {
        expected += bed->cells[at].units != 0 && bed->cells[at].units >= units;
    }
    context.left = expected < most ? expected : most;
    rmm__index_walk(&bed->all, &bed->tree, units, visit, &context);
    require(bed, context.left == 0);
}

static void compare_largest(bed_t *bed)
{
    uint32_t largest = 0;

    for (uint32_t at = 0; at < bed->cell_count; at++) {
        largest = bed->cells[at].units > largest ? bed->cells[at].units : largest;
    }
    require(bed, bed->tree.largest == largest);
}

static void compare(bed_t *bed)
{
    uint32_t span = bed->cell_count * CELL_UNITS;

    check_tree(bed);
    compare_largest(bed);
    compare_fits(bed, 1 + draw(bed, 1u << draw(bed, 20)), 1u << draw(bed, 9));
    compare_fits(bed, 1 + draw(bed, 64), 1);
    compare_at(bed, FIRST_UNIT - 10 + draw(bed, span + 40));
    compare_at(bed, bed->cells[draw(bed, bed->cell_count)].unit);
    compare_walk(bed, 1 + draw(bed, 1u << draw(bed, 16)), UINT32_MAX);
    compare_walk(bed, draw(bed, 8), 1 + draw(bed, 20));
}

/* --- cases --------------------------------------------------------------------------- */

/* `most_in_100`: how full the cells become before entries leave again. */
static void random_step(bed_t *bed, uint32_t most_in_100)
{
    uint32_t at = draw(bed, bed->cell_count);
    bool fills = bed->step / (2 * (uint64_t)bed->cell_count) % 2 == 0;

    if (draw(bed, 4) == 0) {
        cut_found(bed, 1 + draw(bed, CELL_UNITS / 2));
    } else if (bed->cells[at].units == 0) {
        if (draw(bed, 100) < (fills ? most_in_100 : 5)) {
            put_in(bed, at);
        }
    } else if (draw(bed, 2) == 0) {
        change(bed, at);
    } else if (draw(bed, 100) < (fills ? 20 : 90)) {
        take_out(bed, at);
    }
}

static void run_seed(uint64_t seed, uint32_t cell_count, uint32_t steps, uint32_t every)
{
    bed_t bed;

    bed_open(&bed, cell_count, seed);
    for (bed.step = 0; bed.step < steps; bed.step++) {
        random_step(&bed, 100);
        if (bed.step % every == 0) {
            compare(&bed);
        }
    }
    for (uint32_t at = 0; at < cell_count; at++) {
        if (bed.cells[at].units != 0) {
            take_out(&bed, at);
        }
    }
    check_tree(&bed);
    bed_close(&bed);
}

TEST_CASE(random_changes_agree_with_an_array)
{
    const char *chosen = getenv("RMM_TEST_SEED");
    uint64_t first = chosen != NULL ? strtoull(chosen, NULL, 10) : 1;
    uint64_t last = chosen != NULL ? first : SEEDS;

    print_message(
        "seeds %llu to %llu; RMM_TEST_SEED chooses one\n", (unsigned long long)first,
        (unsigned long long)last);
    for (uint64_t seed = first; seed <= last; seed++) {
        run_seed(seed, 20, 1000, 1);
        run_seed(seed, 300, 4000, 1);
        run_seed(seed, 3000, 30000, 60);
    }
}

/* i-th of count cells, in one of four orders. */
static uint32_t in_order(uint32_t order, uint32_t i, uint32_t count)
{
    switch (order) {
    case 0:
        return i;
    case 1:
        return count - 1 - i;
    case 2:
        return (uint32_t)((uint64_t)i * 7919 % count); /* a prime: each once */
    default:
        return i % 2 == 0 ? i / 2 : count - 1 - i / 2; /* from both ends */
    }
}

TEST_CASE(a_hundred_thousand_come_and_go_in_every_order)
{
    enum { COUNT = 100000, EVERY = 9973 };

    for (uint32_t order = 0; order < 16; order++) {
        bed_t bed;

        bed_open(&bed, COUNT, order + 1);
        for (bed.step = 0; bed.step < COUNT; bed.step++) {
            put_in(&bed, in_order(order / 4, (uint32_t)bed.step, COUNT));
            if (bed.step % EVERY == 0) {
                compare(&bed);
            }
        }
        assert_true(bed.tree.height <= 5);
        for (; bed.step < 2 * COUNT; bed.step++) {
            take_out(&bed, in_order(order % 4, (uint32_t)bed.step - COUNT, COUNT));
            if (bed.step % EVERY == 0) {
                compare(&bed);
            }
        }
        check_tree(&bed);
        bed_close(&bed);
    }
}

/* Ascending inserts leave leaves that are half full; one in two goes from each. */
TEST_CASE(the_emptiest_tree_needs_no_more_nodes_than_reserved)
{
    enum { COUNT = 50000 };
    bed_t bed;

    bed_open(&bed, COUNT, 1);
    for (uint32_t at = 0; at < COUNT; at++) {
        put_in(&bed, at);
    }
    for (uint32_t left = 2; left <= 16; left *= 2) {
        for (uint32_t at = 0; at < COUNT; at++) {
            if (at % left != 0 && bed.cells[at].units != 0) {
                take_out(&bed, at);
            }
        }
        check_tree(&bed);
    }
    bed_close(&bed);
}

TEST_CASE(trees_share_their_nodes)
{
    enum { TREES = 40, EACH = 200 };
    rmm_index_t trees[TREES] = {{.root = 0}};
    rmm_index_nodes_t all = {.capacity = 0};
    uint32_t used;

    all.capacity = (uint32_t)rmm__index_nodes_for(TREES * EACH, TREES);
    all.nodes = calloc(all.capacity, sizeof(*all.nodes));
    assert_non_null(all.nodes);
    for (uint32_t round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < TREES * EACH; i++) {
            rmm_index_entry_t entry = {1000 + 2 * i, 1 + i % 5, i};

            rmm__index_insert(&all, &trees[i % TREES], &entry);
        }
        used = all.used;
        for (uint32_t i = 0; i < TREES; i++) {
            assert_null(rmm__index_check(&all, &trees[i]));
        }
        for (uint32_t i = 0; i < TREES * EACH; i++) {
            rmm__index_remove(&all, &trees[i % TREES], 1000 + 2 * i);
        }
        assert_int_equal(all.used, used); /* the second round takes them again */
    }
    free(all.nodes);
}

TEST_CASE(an_empty_tree_has_nothing)
{
    rmm_index_nodes_t all = {.capacity = 0};
    rmm_index_t tree = {.root = 0};
    rmm_index_entry_t entry;
    rmm_index_entry_t fit;

    assert_false(rmm__index_at(&all, &tree, 5, &entry));
    assert_int_equal(rmm__index_first_fits(&all, &tree, 1, 1, &fit, 1), 0);
    assert_int_equal(tree.largest, 0);
    assert_null(rmm__index_check(&all, &tree));
}

/* Each of these must be seen, or the other cases prove little. */
TEST_CASE(a_damaged_tree_is_reported)
{
    enum { COUNT = 1000 };
    bed_t bed;
    rmm_index_node_t *root, *leaf;
    rmm_index_node_t root_before, leaf_before;

    bed_open(&bed, COUNT, 1);
    for (uint32_t at = 0; at < COUNT; at++) {
        put_in(&bed, at);
    }
    root = &bed.all.nodes[bed.tree.root];
    leaf = root;
    for (uint32_t level = 1; level < bed.tree.height; level++) {
        leaf = &bed.all.nodes[leaf->child[1]];
    }
    root_before = *root;
    leaf_before = *leaf;
    for (uint32_t damage = 0; damage < 9; damage++) {
        assert_null(rmm__index_check(&bed.all, &bed.tree));
        switch (damage) {
        case 0:
            leaf->count = INDEX_LEAST - 1;
            break;
        case 1:
            leaf->unit[3] = leaf->unit[4];
            break;
        case 2:
            leaf->units[leaf->count] = 1;
            break;
        case 3:
            leaf->units[2] += UINT32_C(1) << 30;
            break;
        case 4:
            leaf->unit[0] = cell_unit(0); /* belongs into the leaf before */
            break;
        case 5:
            root->unit[1] += CELL_UNITS * 20;
            break;
        case 6:
            root->units[0]++;
            break;
        case 7:
            root->child[1] = bed.all.used;
            break;
        default:
            root->count = 1;
            break;
        }
        assert_non_null(rmm__index_check(&bed.all, &bed.tree));
        *root = root_before;
        *leaf = leaf_before;
    }
    bed_close(&bed);
}
