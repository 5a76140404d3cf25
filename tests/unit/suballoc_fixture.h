/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Storage for the block manager's tests: counts what it holds, checks the sizes that it is
 * told, moves an area at every growth, and can fail the N-th growth.
 */
#ifndef RMM_TESTS_UNIT_SUBALLOC_FIXTURE_H
#define RMM_TESTS_UNIT_SUBALLOC_FIXTURE_H

#include <stdlib.h>
#include <string.h>

#include "harness/harness.h"
#include "suballoc/suballoc.h"

typedef struct test_storage {
    size_t bytes_held;
    uint64_t growths; /* asked for so far */
    uint64_t fail_at; /* this growth and no other fails, counted from 1; 0: none */
} test_storage_t;

/* The size of an area stands in front of it. */
#define TEST_STORAGE_HEADER 64

static void *test_storage_resize(
    void *context, char what, void *old, size_t old_bytes, size_t new_bytes)
{
    test_storage_t *storage = context;
    assert_non_null(strchr("mnathr", what));
    char *old_base = old == NULL ? NULL : (char *)old - TEST_STORAGE_HEADER;
    size_t known_bytes = 0;
    if (old_base != NULL) {
        memcpy(&known_bytes, old_base, sizeof known_bytes);
    }
    assert_int_equal(known_bytes, old_bytes);
    char *grown = NULL;
    if (new_bytes > 0) {
        if (++storage->growths == storage->fail_at) {
            return NULL;
        }
        grown = calloc(1, TEST_STORAGE_HEADER + new_bytes);
        assert_non_null(grown);
        memcpy(grown, &new_bytes, sizeof new_bytes);
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

static inline rmm_suballoc_t *test_suballoc_create(test_storage_t *storage)
{
    const rmm_suballoc_storage_t ops = {test_storage_resize, storage};
    return rmm__suballoc_create(&ops);
}

#define assert_sound(sa)                                                               \
    do {                                                                               \
        const char *wrong_ = rmm__suballoc_check(sa);                                  \
        if (wrong_ != NULL) {                                                          \
            fail_msg("the manager is not sound: %s", wrong_);                          \
        }                                                                              \
    } while (0)

#endif /* RMM_TESTS_UNIT_SUBALLOC_FIXTURE_H */
