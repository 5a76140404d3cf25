/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Long requests: no user is answered twice while another waits, who gave up is not, and at the
 * end all are told.
 */
#include "harness/harness.h"

#include <semaphore.h>

#include "model/tree.h"
#include "render/render.h"
#include "session/user_queue.h"

#define TURNS 6

typedef struct numbered {
    queue_item_t item;
    int number;
} numbered_t;

static sem_t begun, go_on;
static int order[TURNS], taken, ended;

static void answer(queue_item_t *item, bool is_end)
{
    order[taken++] = ((numbered_t *)item)->number;
    ended += is_end;
}

static void answer_long(queue_item_t *item, bool is_end)
{
    (void)sem_post(&begun);
    (void)sem_wait(&go_on);
    answer(item, is_end);
}

static queue_state_t add(user_queue_t *queue, numbered_t *numbered, uid_t uid)
{
    numbered->item.uid = uid;
    return user_queue_add(queue, &numbered->item, NULL);
}

/* The first is being answered, until go_on. */
static void begin(user_queue_t *queue, numbered_t *list)
{
    taken = ended = 0;
    assert_int_equal(sem_init(&begun, 0, 0), 0);
    assert_int_equal(sem_init(&go_on, 0, 0), 0);
    for (int i = 0; i < TURNS; i++) {
        list[i] = (numbered_t){
            .item = {.request = &list[i], .answer = i == 0 ? answer_long : answer},
            .number = i};
    }
    assert_true(user_queue_start(queue));
    assert_int_equal(add(queue, &list[0], 1), QUEUE_ADDED);
    (void)sem_wait(&begun);
}

static void fini(void)
{
    (void)sem_destroy(&begun);
    (void)sem_destroy(&go_on);
}

/* Until `last`, which was added last of all, is answered, and then the end. */
static void finish(user_queue_t *queue)
{
    (void)sem_post(&go_on);
    (void)sem_wait(&begun);
    (void)sem_post(&go_on);
    user_queue_stop(queue);
    fini();
}

TEST_CASE(a_user_waits_for_one_request_of_each_other)
{
    static const uid_t users[TURNS] = {1, 1, 1, 1, 2, 2};
    static const int expected[TURNS] = {0, 1, 4, 2, 5, 3};
    user_queue_t queue;
    numbered_t list[TURNS];
    begin(&queue, list);
    list[3].item.answer = answer_long; /* the others are over when it begins */
    for (int i = 1; i < TURNS; i++) {
        assert_int_equal(add(&queue, &list[i], users[i]), QUEUE_ADDED);
    }
    finish(&queue);
    assert_int_equal(taken, TURNS);
    assert_memory_equal(order, expected, sizeof(order));
    assert_int_equal(ended, 0);
}

TEST_CASE(a_withdrawn_request_is_not_answered)
{
    user_queue_t queue;
    numbered_t list[TURNS];
    begin(&queue, list);
    assert_int_equal(add(&queue, &list[1], 1), QUEUE_ADDED);
    assert_int_equal(add(&queue, &list[2], 2), QUEUE_ADDED);
    list[3].item.answer = answer_long;
    assert_int_equal(add(&queue, &list[3], 2), QUEUE_ADDED);
    assert_null(user_queue_take(&queue, &list[0])); /* it is being answered */
    assert_ptr_equal(user_queue_take(&queue, &list[1]), &list[1].item);
    assert_null(user_queue_take(&queue, &list[1]));
    assert_ptr_equal(user_queue_take(&queue, &list[2]), &list[2].item);
    finish(&queue);
    assert_int_equal(taken, 2);
    assert_int_equal(order[1], 3);
}

static bool is_over(const void *request)
{
    return ((const numbered_t *)request)->number == 1;
}

TEST_CASE(a_request_that_was_already_given_up_is_not_added)
{
    user_queue_t queue;
    numbered_t list[TURNS];
    begin(&queue, list);
    list[1].item.uid = list[2].item.uid = 1;
    list[2].item.answer = answer_long;
    assert_int_equal(user_queue_add(&queue, &list[1].item, is_over), QUEUE_GIVEN_UP);
    assert_int_equal(user_queue_add(&queue, &list[2].item, is_over), QUEUE_ADDED);
    finish(&queue);
    assert_int_equal(taken, 2);
    assert_int_equal(order[1], 2);
}

TEST_CASE(a_stop_ends_the_requests_that_wait)
{
    user_queue_t queue;
    numbered_t list[TURNS];
    begin(&queue, list);
    assert_int_equal(add(&queue, &list[1], 1), QUEUE_ADDED);
    assert_int_equal(add(&queue, &list[2], 2), QUEUE_ADDED);
    pthread_mutex_lock(&queue.lock);
    queue.is_over = true; /* as user_queue_stop() does, while the first is answered */
    pthread_mutex_unlock(&queue.lock);
    (void)sem_post(&go_on);
    user_queue_stop(&queue);
    assert_int_equal(taken, 3);
    assert_int_equal(ended, 2);
    fini();
}

/* A figure never waits for a text; a text that takes long is queued wherever it stands. */
TEST_CASE(files_that_take_long_are_no_values)
{
    int seen = 0;
    for (int file = 0; file < FILE_ID_COUNT; file++) {
        node_t node = {.dir = DIR_PROCESS, .file = (uint8_t)file};
        assert_true(!tree_is_long(node) || tree_is_text(node));
        seen += tree_is_long(node);
    }
    assert_true(seen > 0);
    for (int file = 0; file < FILE_ID_COUNT; file++) {
        node_t node = {.dir = DIR_ROOT, .file = (uint8_t)file};
        assert_true(!render_is_of_node(node) || tree_is_long(node));
    }
}
