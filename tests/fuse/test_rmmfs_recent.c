/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texts that are kept between a stat and an open. They are kept for some ms only, and a busy
 * machine may take longer: what must succeed is tried many times.
 */
#include "harness/harness.h"

#include <string.h>
#include <unistd.h>

#include "recent.h"

#define TRIES 1000
#define KEPT 64 /* texts of all threads */

static void keep(recent_t *recent, uint64_t inode, pid_t thread, const char *string)
{
    text_t text;
    text_init(&text);
    text_puts(&text, string);
    recent_keep(recent, inode, thread, &text);
}

/* The text is `string`, and it is there once. */
static bool takes(recent_t *recent, uint64_t inode, pid_t thread, const char *string)
{
    text_t text;
    text_init(&text);
    bool taken = recent_take(recent, inode, thread, &text);
    if (taken) {
        assert_int_equal(text.length, strlen(string));
        assert_memory_equal(text.data, string, strlen(string));
    }
    text_fini(&text);
    return taken;
}

TEST_CASE(a_text_is_taken_once_by_the_thread_that_got_its_size)
{
    recent_t *recent = recent_open();
    bool taken = false;
    for (int i = 0; i < TRIES && !taken; i++) {
        keep(recent, 1, 10, "text");
        assert_false(takes(recent, 1, 11, "text"));
        assert_false(takes(recent, 2, 10, "text"));
        taken = takes(recent, 1, 10, "text");
        assert_false(takes(recent, 1, 10, "text"));
    }
    assert_true(taken);
    recent_close(recent);
}

TEST_CASE(a_text_that_is_young_does_not_expire)
{
    recent_t *recent = recent_open();
    bool taken = false;
    for (int i = 0; i < TRIES && !taken; i++) {
        keep(recent, 1, 10, "text");
        recent_expire(recent);
        taken = takes(recent, 1, 10, "text");
    }
    assert_true(taken);
    keep(recent, 1, 10, "text");
    usleep(RECENT_TAKEN_NS / 1000);
    assert_false(takes(recent, 1, 10, "text"));
    recent_expire(recent);
    recent_close(recent);
}

/* True: the first one went, and the others are still known. */
static bool displaces_the_oldest(recent_t *recent)
{
    size_t bytes, known = 0;
    for (uint64_t i = 0; i <= KEPT; i++) {
        recent_note(recent, 100 + i, 10, i);
    }
    assert_false(recent_bytes(recent, 100, 10, &bytes));
    for (uint64_t i = 1; i <= KEPT; i++) {
        known += recent_bytes(recent, 100 + i, 10, &bytes) && bytes == i;
    }
    return known == KEPT;
}

TEST_CASE(one_more_than_there_is_room_for_displaces_the_oldest)
{
    bool is_right = false;
    for (int i = 0; i < TRIES && !is_right; i++) {
        recent_t *recent = recent_open();
        is_right = displaces_the_oldest(recent);
        recent_close(recent);
    }
    assert_true(is_right);
}
