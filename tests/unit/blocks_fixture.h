/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For the block manager's tests: storage that counts what it holds, checks the sizes that
 * it is told, moves an area at every growth and can fail the N-th growth; and a manager
 * with two heaps, of which the first has one run.
 */
#ifndef RMM_TESTS_UNIT_BLOCKS_FIXTURE_H
#define RMM_TESTS_UNIT_BLOCKS_FIXTURE_H

#include <stdlib.h>
#include <string.h>

#include "harness/harness.h"
#include "pool/blocks.h"
#include "pool/blocks_impl.h"

typedef struct test_storage {
    size_t bytes_held;
    uint64_t growths; /* asked for so far */
    uint64_t fail_at; /* this growth and no other fails, counted from 1; 0: none */
} test_storage_t;

/* The size of an area stands in front of it. */
#define TEST_STORAGE_HEADER 64

static inline void *
test_storage_resize(void *context, void *old, size_t old_bytes, size_t new_bytes)
{
    test_storage_t *storage = context;
    char *old_base = old == NULL ? NULL : (char *)old - TEST_STORAGE_HEADER;
    size_t known_bytes = 0;
    char *grown = NULL;

    if (old_base != NULL) {
        memcpy(&known_bytes, old_base, sizeof(known_bytes));
    }
    assert_int_equal(known_bytes, old_bytes);
    if (new_bytes > 0) {
        if (++storage->growths == storage->fail_at) {
            return NULL;
        }
        grown = calloc(1, TEST_STORAGE_HEADER + new_bytes);
        assert_non_null(grown);
        memcpy(grown, &new_bytes, sizeof(new_bytes));
        grown += TEST_STORAGE_HEADER;
    }
    if (old != NULL && grown != NULL) {
        memcpy(grown, old, old_bytes < new_bytes ? old_bytes : new_bytes);
    }
    free(old_base);
    storage->bytes_held += new_bytes;
    storage->bytes_held -= old_bytes;
    return grown;
}

/* Free blocks of the heap; the one that was freed last counts as merged. */
static inline uint32_t blocks_free_count(const rmm_blocks_t *blocks, rmm_heap_t heap)
{
    const rmm_heap_body_t *body = &blocks->heaps[heap];
    const rmm_block_node_t *node = &blocks->nodes[body->recent];
    uint64_t stamp;

    assert(heap_is_valid(blocks, heap));
    if (body->recent == 0) {
        return body->free_count;
    }
    stamp = blocks->ages[body->recent].stamp;
    return body->free_count + 1 - merges_with(blocks, node->prev, heap, stamp) -
           merges_with(blocks, node->next, heap, stamp);
}

static inline rmm_blocks_t *test_blocks_create(test_storage_t *storage)
{
    const rmm_blocks_storage_t ops = {test_storage_resize, storage};

    return rmm__blocks_create(&ops);
}

#define assert_sound(blocks)                                                           \
    do {                                                                               \
        const char *wrong_ = rmm__blocks_check(blocks);                                \
        if (wrong_ != NULL) {                                                          \
            fail_msg("the manager is not sound: %s", wrong_);                          \
        }                                                                              \
    } while (0)

/* Units from `first` on are free in `heap`. Addresses are those of a device. */
#define RUN_UNITS 1024u
#define RUN_FIRST (UINT64_C(0x7f0000000000) / RMM_BLOCKS_UNIT)

typedef struct fixture {
    test_storage_t storage;
    rmm_blocks_t *blocks;
    rmm_heap_t heap, other;
    uint64_t first;
} fixture_t;

static inline int fixture_setup(void **state)
{
    fixture_t *f = calloc(1, sizeof(*f));

    assert_non_null(f);
    f->blocks = test_blocks_create(&f->storage);
    f->first = RUN_FIRST;
    assert_non_null(f->blocks);
    assert_int_equal(rmm__blocks_heap_create(f->blocks, &f->heap), RMM_BLOCKS_OK);
    assert_int_equal(rmm__blocks_heap_create(f->blocks, &f->other), RMM_BLOCKS_OK);
    assert_int_equal(
        rmm__blocks_add(f->blocks, f->heap, f->first, RUN_UNITS, 0), RMM_BLOCKS_OK);
    *state = f;
    return 0;
}

static inline int fixture_teardown(void **state)
{
    fixture_t *f = *state;

    assert_sound(f->blocks);
    rmm__blocks_destroy(f->blocks);
    assert_int_equal(f->storage.bytes_held, 0);
    free(f);
    return 0;
}

#define CASE(name) TEST_CASE_WITH(name, fixture_setup, fixture_teardown)

static inline uint64_t unit_of(const fixture_t *f, rmm_block_t block)
{
    return rmm__blocks_look_at(f->blocks, block)->unit;
}

static inline uint32_t tag_of(const fixture_t *f, rmm_block_t block)
{
    return rmm__blocks_look_at(f->blocks, block)->tag;
}

static inline rmm_block_t take_either(
    fixture_t *f, rmm_heap_t own, rmm_heap_t shared, uint32_t units,
    uint32_t align_units)
{
    const rmm_blocks_request_t request = {units, align_units};
    rmm_block_t block = RMM_BLOCK_NONE;

    assert_int_equal(
        rmm__blocks_take(f->blocks, own, shared, &request, &block), RMM_BLOCKS_OK);
    assert_int_not_equal(block, RMM_BLOCK_NONE);
    assert_int_equal(rmm__blocks_look_at(f->blocks, block)->units, units);
    assert_int_equal(unit_of(f, block) % align_units, 0);
    assert_sound(f->blocks);
    return block;
}

static inline rmm_block_t
take_aligned(fixture_t *f, rmm_heap_t heap, uint32_t units, uint32_t align_units)
{
    return take_either(f, heap, heap, units, align_units);
}

static inline rmm_block_t take(fixture_t *f, uint32_t units)
{
    return take_aligned(f, f->heap, units, 1);
}

static inline void
assert_no_fit(fixture_t *f, rmm_heap_t heap, uint32_t units, uint32_t align_units)
{
    const rmm_blocks_request_t request = {units, align_units};
    rmm_block_t block = 77;

    assert_int_equal(
        rmm__blocks_take(f->blocks, heap, heap, &request, &block), RMM_BLOCKS_NO_FIT);
    assert_int_equal(block, 77);
}

static inline void
give(fixture_t *f, rmm_block_t block, rmm_heap_t heap, uint64_t stamp)
{
    rmm__blocks_free(f->blocks, block, heap, stamp);
    assert_sound(f->blocks);
}

/* Which of several blocks is given back, and how. */
typedef struct test_free {
    uint32_t index;
    rmm_heap_t heap;
    uint64_t stamp;
} test_free_t;

static inline void give_all(
    fixture_t *f, const rmm_block_t *blocks, const test_free_t *frees, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        give(f, blocks[frees[i].index], frees[i].heap, frees[i].stamp);
    }
}

/* Give blocks back in this order: GIVE_ALL(f, blocks, {index, heap, stamp}, ...). */
#define GIVE_ALL(f, blocks, ...)                                                       \
    give_all(                                                                          \
        f, blocks, (const test_free_t[]){__VA_ARGS__},                                 \
        sizeof((const test_free_t[]){__VA_ARGS__}) / sizeof(test_free_t))

/* The block that the walk finds at a unit. */
static inline bool keep_block_at(void *context, const rmm_block_info_t *info)
{
    rmm_block_info_t *found = context;

    if (info->unit != found->unit) {
        return true;
    }
    *found = *info;
    return false;
}

static inline rmm_block_info_t block_at(const fixture_t *f, uint64_t unit)
{
    rmm_block_info_t found = {.unit = unit, .units = 0};

    rmm__blocks_walk(f->blocks, keep_block_at, &found);
    assert_true(found.units > 0);
    return found;
}

/* Fill the run with blocks of `units` units, in the order of memory. */
static inline void
fill(fixture_t *f, rmm_block_t *blocks, uint32_t count, uint32_t units)
{
    for (uint32_t i = 0; i < count; i++) {
        blocks[i] = take(f, units);
        assert_int_equal(unit_of(f, blocks[i]), f->first + (uint64_t)i * units);
    }
}

/* A free run of one block, beyond all runs that a test adds at RUN_FIRST. */
static inline uint64_t
add_run(fixture_t *f, rmm_heap_t heap, uint64_t unit, uint32_t units, uint64_t stamp)
{
    assert_int_equal(
        rmm__blocks_add(f->blocks, heap, unit, units, stamp), RMM_BLOCKS_OK);
    assert_sound(f->blocks);
    return unit;
}

#endif /* RMM_TESTS_UNIT_BLOCKS_FIXTURE_H */
