/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns: one thread at a time as a rule, and never a deadlock. No test depends on how long
 * a wait is, only on that it ends.
 */
#include "harness/harness.h"

#include "core/turn.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 6, TURNS = 3000 };

static rmm_turn_t turns[2];

/* As if no stay remembered how it began. */
static bool enter(rmm_turn_t *turn)
{
    return rmm__turn_enter(turn).has_turn;
}

static bool try_to_enter(rmm_turn_t *turn)
{
    return rmm__turn_try(turn).turn != NULL;
}

static void leave(rmm_turn_t *turn, bool has_turn)
{
    const rmm_turn_stay_t stay = {turn, has_turn, PTHREAD_CANCEL_ENABLE};

    rmm__turn_leave(&stay);
}

static int open_turns(void **state)
{
    rmm__turn_init(&turns[0]);
    rmm__turn_init(&turns[1]);
    return 0;
}

static int close_turns(void **state)
{
    rmm__turn_fini(&turns[0]);
    rmm__turn_fini(&turns[1]);
    return 0;
}

static uint64_t now_ns(void)
{
    struct timespec at;

    clock_gettime(CLOCK_MONOTONIC, &at);
    return (uint64_t)at.tv_sec * 1000000000 + (uint64_t)at.tv_nsec;
}

/* --- one thread ---------------------------------------------------------------------- */

TEST_CASE_WITH(a_nested_turn_that_is_free_is_taken, open_turns, close_turns)
{
    assert_true(enter(&turns[0]));
    assert_true(enter(&turns[1]));
    leave(&turns[1], true);
    leave(&turns[0], true);
}

TEST_CASE_WITH(is_seen_to_be_free, open_turns, close_turns)
{
    assert_true(rmm__turn_is_free(&turns[0]));
    assert_true(try_to_enter(&turns[0]));
    assert_false(rmm__turn_is_free(&turns[0]));
    assert_true(rmm__turn_is_free(&turns[1]));
    leave(&turns[0], true);
    assert_true(rmm__turn_is_free(&turns[0]));
}

TEST_CASE_WITH(a_thread_never_waits_for_its_own_turn, open_turns, close_turns)
{
    uint64_t began = now_ns();

    assert_true(enter(&turns[0]));
    for (int i = 0; i < 1000; i++) { /* minutes, if each waited */
        assert_false(enter(&turns[0]));
        leave(&turns[0], false);
    }
    leave(&turns[0], true);
    assert_true(now_ns() - began < 1000 * (uint64_t)RMM_TURN_WAIT_NS / 2);
}

/* --- another thread ------------------------------------------------------------------ */

static void *take_first(void *argument)
{
    bool *has_turn = argument;

    *has_turn = enter(&turns[0]);
    leave(&turns[0], *has_turn);
    return NULL;
}

TEST_CASE_WITH(
    a_thread_goes_on_without_a_turn_that_does_not_come, open_turns, close_turns)
{
    uint64_t began = now_ns();
    bool has_turn = true;
    pthread_t thread;

    assert_true(enter(&turns[0]));
    assert_int_equal(pthread_create(&thread, NULL, take_first, &has_turn), 0);
    assert_int_equal(
        pthread_join(thread, NULL), 0); /* this thread waits for that one */
    assert_false(has_turn);
    assert_true(now_ns() - began >= (uint64_t)RMM_TURN_WAIT_NS);
    leave(&turns[0], true);
    assert_int_equal(pthread_create(&thread, NULL, take_first, &has_turn), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(has_turn);
}

/* Proceeds without the first turn, as one whose request leads to a callback, which asks for
 * turns again and again. Returns how long that took. */
static uint64_t ask_again_inside(void)
{
    bool has_first = enter(&turns[0]);
    uint64_t began = now_ns();

    for (int i = 0; i < 1000; i++) { /* minutes, if each waited */
        leave(&turns[1], enter(&turns[1]));
    }
    leave(&turns[0], has_first);
    return has_first ? UINT64_MAX : now_ns() - began;
}

static void *go_on_inside(void *argument)
{
    uint64_t *spent_ns = argument;

    spent_ns[0] = ask_again_inside();
    spent_ns[1] = now_ns();
    leave(&turns[1], enter(&turns[1]));
    spent_ns[1] = now_ns() - spent_ns[1]; /* outside again, it waits */
    return NULL;
}

TEST_CASE_WITH(
    a_thread_that_goes_on_without_a_turn_waits_for_no_other, open_turns, close_turns)
{
    uint64_t spent_ns[2];
    pthread_t thread;

    assert_true(enter(&turns[0]));
    assert_true(enter(&turns[1]));
    assert_int_equal(pthread_create(&thread, NULL, go_on_inside, spent_ns), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(spent_ns[0] < 1000 * (uint64_t)RMM_TURN_WAIT_NS / 2);
    assert_true(spent_ns[1] >= (uint64_t)RMM_TURN_WAIT_NS);
    leave(&turns[1], true);
    leave(&turns[0], true);
}

/* Each has one turn and wants the other's. */
static void *take_crosswise(void *argument)
{
    uintptr_t first = (uintptr_t)argument;

    for (int i = 0; i < TURNS; i++) {
        bool has_first = enter(&turns[first]);
        bool has_second = enter(&turns[1 - first]);

        (void)sched_yield();
        leave(&turns[1 - first], has_second);
        leave(&turns[first], has_first);
    }
    return NULL;
}

TEST_CASE_WITH(turns_that_cross_do_not_deadlock, open_turns, close_turns)
{
    pthread_t threads[2];

    for (uintptr_t i = 0; i < 2; i++) {
        assert_int_equal(
            pthread_create(&threads[i], NULL, take_crosswise, (void *)i), 0);
    }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
}

static atomic_int inside;
static atomic_int overlaps;
static atomic_int had;

static void *take_in_turn(void *argument)
{
    for (int i = 0; i < TURNS; i++) {
        bool has_turn = enter(&turns[0]);

        if (has_turn) {
            atomic_fetch_add(&overlaps, atomic_fetch_add(&inside, 1) != 0);
            atomic_fetch_add(&had, 1);
            atomic_fetch_sub(&inside, 1);
        }
        leave(&turns[0], has_turn);
    }
    return NULL;
}

TEST_CASE_WITH(one_thread_at_a_time_has_the_turn, open_turns, close_turns)
{
    pthread_t threads[THREADS];

    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, take_in_turn, NULL), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    assert_int_equal(atomic_load(&overlaps), 0);
    assert_true(atomic_load(&had) > 0);
}

/* --- patience ------------------------------------------------------------------------ */

enum { PATIENT = 2, TRIES = 20 };

typedef struct holder {
    pthread_t thread;
    bool has_turn;
    uint64_t held_ns;
} holder_t;

static uint64_t hold_for_a_while(void)
{
    const struct timespec while_ns = {.tv_nsec = RMM_TURN_WAIT_NS * 6 / 10};
    uint64_t began = now_ns();

    nanosleep(&while_ns, NULL);
    return now_ns() - began;
}

static void *take_and_hold(void *argument)
{
    holder_t *holder = argument;

    holder->has_turn = enter(&turns[0]);
    if (holder->has_turn) {
        holder->held_ns = hold_for_a_while();
    }
    leave(&turns[0], holder->has_turn);
    return NULL;
}

static unsigned count_waiting(void)
{
    unsigned count;

    pthread_mutex_lock(&turns[0].mutex);
    count = (unsigned)turns[0].waiting;
    pthread_mutex_unlock(&turns[0].mutex);
    return count;
}

/* False: this machine was too busy for a wait to prove anything. */
static bool wait_behind_two(holder_t holders[PATIENT])
{
    uint64_t began = now_ns();
    uint64_t most;

    assert_true(enter(&turns[0]));
    for (int i = 0; i < PATIENT; i++) {
        holders[i] = (holder_t){.has_turn = false};
        assert_int_equal(
            pthread_create(&holders[i].thread, NULL, take_and_hold, &holders[i]), 0);
    }
    while (count_waiting() < PATIENT && now_ns() - began < (uint64_t)RMM_TURN_WAIT_NS) {
        (void)sched_yield();
    }
    (void)hold_for_a_while();
    leave(&turns[0], true);
    most = now_ns() - began;
    for (int i = 0; i < PATIENT; i++) {
        assert_int_equal(pthread_join(holders[i].thread, NULL), 0);
        most = holders[i].held_ns > most ? holders[i].held_ns : most;
    }
    return most < (uint64_t)RMM_TURN_WAIT_NS * 9 / 10;
}

/* Longer than for one owner, if the turn has another one meanwhile. */
TEST_CASE_WITH(a_thread_waits_for_each_owner_anew, open_turns, close_turns)
{
    holder_t holders[PATIENT];

    for (int i = 0; i < TRIES; i++) {
        if (wait_behind_two(holders)) {
            assert_true(holders[0].has_turn);
            assert_true(holders[1].has_turn);
            return;
        }
    }
    skip(); /* never quiet enough */
}

static atomic_bool comes;
static atomic_bool has_come;

static void *come_once(void *argument)
{
    bool has_turn;

    atomic_store(&comes, true);
    has_turn = enter(&turns[0]);
    atomic_store(&has_come, has_turn);
    leave(&turns[0], has_turn);
    return NULL;
}

/* This thread always has it, or is about to. */
TEST_CASE_WITH(
    a_thread_that_comes_back_at_once_lets_others_have_a_turn, open_turns, close_turns)
{
    uint64_t turns_had = 0;
    pthread_t thread;

    assert_true(enter(&turns[0]));
    assert_int_equal(pthread_create(&thread, NULL, come_once, NULL), 0);
    while (!atomic_load(&comes)) {
        (void)sched_yield();
    }
    while (!atomic_load(&has_come) && turns_had < 100000000) {
        leave(&turns[0], true);
        turns_had++;
        assert_true(enter(&turns[0]));
    }
    leave(&turns[0], true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(atomic_load(&has_come));
}

static bool is_waited_for(void)
{
    bool is_waiting;

    pthread_mutex_lock(&turns[0].mutex);
    is_waiting = turns[0].waiting != 0;
    pthread_mutex_unlock(&turns[0].mutex);
    return is_waiting;
}

/* Gives the turn back as soon as the process goes on. */
static int stop_while_another_waits(void)
{
    bool has_turn = false;
    pthread_t thread;

    if (!enter(&turns[0]) ||
        pthread_create(&thread, NULL, take_first, &has_turn) != 0) {
        return 2;
    }
    while (!is_waited_for()) {
        (void)sched_yield();
    }
    (void)raise(SIGSTOP);
    leave(&turns[0], true);
    (void)pthread_join(thread, NULL);
    return has_turn ? 0 : 1;
}

TEST_CASE_WITH(a_process_that_was_stopped_still_waits, open_turns, close_turns)
{
    const struct timespec pause = {.tv_nsec = 2 * RMM_TURN_WAIT_NS};
    int status = -1;
    pid_t pid;

    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        _exit(stop_while_another_waits());
    }
    assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
    assert_true(WIFSTOPPED(status));
    (void)nanosleep(&pause, NULL);
    assert_int_equal(kill(pid, SIGCONT), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}
