/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Long requests: no user has two turns while another waits, who gave up has none, and at the
 * end all are told.
 */
#include "harness/harness.h"

#include <semaphore.h>

#include "render.h"
#include "tree.h"
#include "turns.h"

#define TURNS 6

typedef struct numbered {
    turn_t turn;
    int number;
} numbered_t;

static sem_t begun, go_on;
static int order[TURNS], taken, ended;

static void answer(turn_t *turn, bool is_end)
{
    order[taken++] = ((numbered_t *)turn)->number;
    ended += is_end;
}

static void answer_long(turn_t *turn, bool is_end)
{
    (void)sem_post(&begun);
    (void)sem_wait(&go_on);
    answer(turn, is_end);
}

static turn_state_t add(turns_t *turns, numbered_t *numbered, uid_t uid)
{
    numbered->turn.uid = uid;
    return turns_add(turns, &numbered->turn, NULL);
}

/* The first is being answered, until go_on. */
static void begin(turns_t *turns, numbered_t *list)
{
    taken = ended = 0;
    assert_int_equal(sem_init(&begun, 0, 0), 0);
    assert_int_equal(sem_init(&go_on, 0, 0), 0);
    for (int i = 0; i < TURNS; i++) {
        list[i] = (numbered_t){
            .turn = {.request = &list[i], .answer = i == 0 ? answer_long : answer},
            .number = i};
    }
    assert_true(turns_start(turns));
    assert_int_equal(add(turns, &list[0], 1), TURN_ADDED);
    (void)sem_wait(&begun);
}

static void fini(void)
{
    (void)sem_destroy(&begun);
    (void)sem_destroy(&go_on);
}

/* Until `last`, which was added last of all, is answered, and then the end. */
static void finish(turns_t *turns)
{
    (void)sem_post(&go_on);
    (void)sem_wait(&begun);
    (void)sem_post(&go_on);
    turns_stop(turns);
    fini();
}

TEST_CASE(a_user_waits_for_one_turn_of_each_other)
{
    static const uid_t users[TURNS] = {1, 1, 1, 1, 2, 2};
    static const int expected[TURNS] = {0, 1, 4, 2, 5, 3};
    turns_t turns;
    numbered_t list[TURNS];
    begin(&turns, list);
    list[3].turn.answer = answer_long; /* the others are over when it begins */
    for (int i = 1; i < TURNS; i++) {
        assert_int_equal(add(&turns, &list[i], users[i]), TURN_ADDED);
    }
    finish(&turns);
    assert_int_equal(taken, TURNS);
    assert_memory_equal(order, expected, sizeof(order));
    assert_int_equal(ended, 0);
}

TEST_CASE(a_withdrawn_request_is_not_answered)
{
    turns_t turns;
    numbered_t list[TURNS];
    begin(&turns, list);
    assert_int_equal(add(&turns, &list[1], 1), TURN_ADDED);
    assert_int_equal(add(&turns, &list[2], 2), TURN_ADDED);
    list[3].turn.answer = answer_long;
    assert_int_equal(add(&turns, &list[3], 2), TURN_ADDED);
    assert_null(turns_take(&turns, &list[0])); /* it is being answered */
    assert_ptr_equal(turns_take(&turns, &list[1]), &list[1].turn);
    assert_null(turns_take(&turns, &list[1]));
    assert_ptr_equal(turns_take(&turns, &list[2]), &list[2].turn);
    finish(&turns);
    assert_int_equal(taken, 2);
    assert_int_equal(order[1], 3);
}

static bool is_over(const void *request)
{
    return ((const numbered_t *)request)->number == 1;
}

TEST_CASE(a_request_that_was_already_given_up_is_not_added)
{
    turns_t turns;
    numbered_t list[TURNS];
    begin(&turns, list);
    list[1].turn.uid = list[2].turn.uid = 1;
    list[2].turn.answer = answer_long;
    assert_int_equal(turns_add(&turns, &list[1].turn, is_over), TURN_GIVEN_UP);
    assert_int_equal(turns_add(&turns, &list[2].turn, is_over), TURN_ADDED);
    finish(&turns);
    assert_int_equal(taken, 2);
    assert_int_equal(order[1], 2);
}

TEST_CASE(a_stop_ends_the_requests_that_wait)
{
    turns_t turns;
    numbered_t list[TURNS];
    begin(&turns, list);
    assert_int_equal(add(&turns, &list[1], 1), TURN_ADDED);
    assert_int_equal(add(&turns, &list[2], 2), TURN_ADDED);
    pthread_mutex_lock(&turns.lock);
    turns.is_over = true; /* as turns_stop() does, while the first is answered */
    pthread_mutex_unlock(&turns.lock);
    (void)sem_post(&go_on);
    turns_stop(&turns);
    assert_int_equal(taken, 3);
    assert_int_equal(ended, 2);
    fini();
}

/* A figure never waits for a text; a text that takes long has a turn wherever it stands. */
TEST_CASE(files_that_take_long_are_no_values)
{
    int seen = 0;
    for (int file = 0; file < FILE_ID_COUNT; file++) {
        node_t node = {.dir = DIR_PROCESS, .file = (uint8_t)file};
        file_kind_t kind = tree_kind(node);
        assert_true(!tree_is_long(node) || kind == KIND_TEXT || kind == KIND_REPORT);
        seen += tree_is_long(node);
    }
    assert_true(seen > 0);
    for (int file = 0; file < FILE_ID_COUNT; file++) {
        node_t node = {.dir = DIR_ROOT, .file = (uint8_t)file};
        assert_true(!render_is_of_node(node) || tree_is_long(node));
    }
}
