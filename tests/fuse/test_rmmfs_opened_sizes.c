/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sizes of texts that were opened a moment ago. They are kept for a second only, and a busy
 * machine may take longer: what must succeed is tried many times.
 */
#include "harness/harness.h"

#include "session/opened_sizes.h"

#define TRIES 1000

static bool has(opened_sizes_t *sizes, opened_by_t by, size_t wanted)
{
    size_t bytes;
    return opened_sizes_find(sizes, &by, &bytes) && bytes == wanted;
}

TEST_CASE(only_the_thread_that_opened_a_file_gets_its_size)
{
    bool found = false;
    for (int i = 0; i < TRIES && !found; i++) {
        opened_sizes_t sizes;
        opened_sizes_init(&sizes);
        opened_sizes_note(&sizes, &(opened_by_t){1, 1000, 10}, 6);
        opened_sizes_note(&sizes, &(opened_by_t){1, 1000, 10}, 7);
        found = has(&sizes, (opened_by_t){1, 1000, 10}, 7);
        assert_false(has(&sizes, (opened_by_t){1, 1000, 11}, 7));
        assert_false(has(&sizes, (opened_by_t){1, 1001, 10}, 7));
        assert_false(has(&sizes, (opened_by_t){2, 1000, 10}, 7));
        opened_sizes_fini(&sizes);
    }
    assert_true(found);
}

/* True: the first one went, and the others are still known. */
static bool displaces_the_oldest(opened_sizes_t *sizes)
{
    size_t known = 0;
    for (uint64_t i = 0; i <= OPENED_SIZES_MAX; i++) {
        opened_sizes_note(sizes, &(opened_by_t){100 + i, 0, 10}, i);
    }
    assert_false(has(sizes, (opened_by_t){100, 0, 10}, 0));
    for (uint64_t i = 1; i <= OPENED_SIZES_MAX; i++) {
        known += has(sizes, (opened_by_t){100 + i, 0, 10}, i);
    }
    return known == OPENED_SIZES_MAX;
}

TEST_CASE(one_more_than_there_is_room_for_displaces_the_oldest)
{
    bool is_right = false;
    for (int i = 0; i < TRIES && !is_right; i++) {
        opened_sizes_t sizes;
        opened_sizes_init(&sizes);
        is_right = displaces_the_oldest(&sizes);
        opened_sizes_fini(&sizes);
    }
    assert_true(is_right);
}
