/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parked requests: who takes one answers it, and polls do not pile up.
 */
#include "harness/harness.h"

#include <stdlib.h>

#include "session/waiters.h"

static char streams[2], requests[4]; /* only their addresses are used */

static waiter_t waiter_of(int stream, int request, bool is_poll)
{
    return (waiter_t){
        .stream = (stream_t *)(void *)&streams[stream],
        .request = &requests[request],
        .is_poll = is_poll};
}

static size_t end_all(waiters_t *waiters)
{
    size_t count = 0;
    waiter_t *list = waiters_take_all(waiters, NULL, NULL);
    while (list != NULL) {
        waiter_t *next = list->next;
        free(list);
        list = next;
        count++;
    }
    waiters_fini(waiters);
    return count;
}

TEST_CASE(a_poll_replaces_the_one_before_of_its_stream)
{
    waiters_t waiters;
    void *replaced = &waiters;
    waiter_t read = waiter_of(0, 0, false), first = waiter_of(0, 1, true);
    waiter_t other = waiter_of(1, 2, true), again = waiter_of(0, 3, true);
    assert_true(waiters_init(&waiters));
    assert_true(waiters_add(&waiters, &read, NULL));
    assert_true(waiters_add_poll(&waiters, &first, &replaced));
    assert_null(replaced);
    assert_true(waiters_add_poll(&waiters, &other, &replaced));
    assert_null(replaced);
    assert_true(waiters_add_poll(&waiters, &again, &replaced));
    assert_ptr_equal(replaced, first.request);
    assert_false(waiters_take(&waiters, first.request));
    assert_true(waiters_take(&waiters, again.request));
    assert_int_equal(end_all(&waiters), 2);
}

static bool is_over(void *request)
{
    return request == &requests[1];
}

TEST_CASE(a_request_is_taken_once_and_an_interrupted_one_never_waits)
{
    waiters_t waiters;
    waiter_t read = waiter_of(0, 0, false), over = waiter_of(0, 1, false);
    assert_true(waiters_init(&waiters));
    assert_false(waiters_add(&waiters, &over, is_over));
    assert_false(waiters_any(&waiters));
    assert_true(waiters_add(&waiters, &read, is_over));
    assert_true(waiters_any(&waiters));
    assert_true(waiters_take(&waiters, read.request));
    assert_false(waiters_take(&waiters, read.request));
    assert_int_equal(end_all(&waiters), 0);
}
