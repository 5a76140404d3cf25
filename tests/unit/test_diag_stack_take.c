/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks of calls: what a thread remembers of them (stack_take.c), and the depot that keeps each
 * once.
 */
#include "harness/harness.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "diag/stack_depot.h"

/* --- the depot ----------------------------------------------------------------------------- */

TEST_CASE(keeps_each_stack_once_and_no_more_than_there_is_room_for)
{
    rmm_stack_depot_t depot;
    rmm_stack_raw_t stack = {.count = 2, .frames = {&depot}}, out;

    assert_true(rmm__stack_depot_init(&depot));
    assert_int_equal(rmm__stack_depot_put(&depot, &(rmm_stack_raw_t){.count = 0}), 0);
    for (uintptr_t i = 1; i <= RMM_STACK_DEPOT_COUNT; i++) {
        stack.frames[1] = (void *)i;
        stack.number = 0;
        assert_int_equal(rmm__stack_depot_put(&depot, &stack), i);
        assert_int_equal(rmm__stack_depot_put(&depot, &stack), i);
    }
    assert_true(rmm__stack_depot_get(&depot, 7, &out));
    assert_ptr_equal(out.frames[1], (void *)(uintptr_t)7);
    stack.frames[1] = NULL;
    stack.number = 0;
    assert_int_equal(rmm__stack_depot_put(&depot, &stack), 0);
    assert_false(rmm__stack_depot_get(&depot, 0, &out));
    assert_false(rmm__stack_depot_get(&depot, RMM_STACK_DEPOT_COUNT + 1, &out));
    rmm__stack_depot_fini(&depot);
}

/* Between two lines of Python no return address differs, from 3.11 on. */
TEST_CASE(stacks_with_different_lines_of_python_are_two)
{
    rmm_stack_depot_t depot;
    rmm_stack_raw_t stack = {.count = 1, .frames = {&depot}, .line_count = 2};

    assert_true(rmm__stack_depot_init(&depot));
    for (uint32_t i = 1; i <= 3; i++) {
        stack.lines[1] = i;
        stack.number = 0;
        assert_int_equal(rmm__stack_depot_put(&depot, &stack), i);
    }
    stack.line_count = 1;
    stack.number = 0;
    assert_int_equal(rmm__stack_depot_put(&depot, &stack), 4);
    stack.line_count = 2;
    stack.number = 0;
    assert_int_equal(rmm__stack_depot_put(&depot, &stack), 3);
    rmm__stack_depot_fini(&depot);
}

TEST_CASE(a_number_is_of_one_depot)
{
    rmm_stack_depot_t depots[2];
    rmm_stack_raw_t other = {.count = 1, .frames = {(void *)1}};
    rmm_stack_raw_t stack = {.count = 1, .frames = {(void *)2}};

    for (int i = 0; i < 2; i++) {
        assert_true(rmm__stack_depot_init(&depots[i]));
    }
    assert_int_equal(rmm__stack_depot_put(&depots[0], &stack), 1);
    assert_int_equal(rmm__stack_depot_put(&depots[1], &other), 1);
    assert_int_equal(rmm__stack_depot_put(&depots[1], &stack), 2);
    assert_int_equal(rmm__stack_depot_put(&depots[0], &stack), 1);
    for (int i = 0; i < 2; i++) {
        rmm__stack_depot_fini(&depots[i]);
    }
}

/* --- taking -------------------------------------------------------------------------------- */

__attribute__((noinline)) static void take_deeper(int depth, rmm_stack_raw_t *out)
{
    if (depth > 0) {
        take_deeper(depth - 1, out);
    } else {
        *out = *rmm__stack_take();
    }
    __asm__ volatile("" ::: "memory"); /* no tail call */
}

__attribute__((noinline)) static void take_here(rmm_stack_raw_t *out)
{
    *out = *rmm__stack_take();
    __asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) static void take_there(rmm_stack_raw_t *out)
{
    *out = *rmm__stack_take();
    __asm__ volatile("nop" ::: "memory");
}

static bool is_same(const rmm_stack_raw_t *a, const rmm_stack_raw_t *b)
{
    return a->count == b->count &&
           memcmp(a->frames, b->frames, a->count * sizeof(a->frames[0])) == 0;
}

/* What is remembered of a thread's stacks must never be given for another one. */
TEST_CASE(a_stack_that_is_taken_again_is_the_same_and_another_is_not)
{
    enum { DEPTHS = 12, TAKEN = 3 * DEPTHS };
    static rmm_stack_raw_t taken[TAKEN];
    rmm_stack_raw_t here[2], there[2];

    for (int i = 0; i < TAKEN; i++) { /* all from one call */
        take_deeper(i % DEPTHS, &taken[i]);
    }
    for (int i = 0; i < TAKEN; i++) {
        assert_true(taken[i].count > 0);
        assert_true(is_same(&taken[i], &taken[i % DEPTHS]));
    }
    assert_false(is_same(&taken[2], &taken[3]));
    for (int i = 0; i < 2; i++) { /* the same depth, another place */
        take_here(&here[i]);
        take_there(&there[i]);
    }
    assert_false(is_same(&here[0], &there[0]));
    assert_ptr_equal(here[0].frames[0], here[1].frames[0]);
    assert_ptr_equal(there[0].frames[0], there[1].frames[0]);
}

/* More ways than a thread remembers, at few depths, and none that is told is another's. */
__attribute__((noinline)) static void
take_by(uint32_t way, int level, rmm_stack_raw_t *out)
{
    if (level == 0) {
        *out = *rmm__stack_take();
    } else if ((way & 1) != 0) {
        take_by(way >> 1, level - 1, out);
        __asm__ volatile("nop" ::: "memory");
    } else {
        take_by(way >> 1, level - 1, out);
    }
    __asm__ volatile("" ::: "memory");
}

enum { LEVELS = 12, WAYS = 1 << LEVELS };

/* Twice in turn, then in leaps. */
__attribute__((noinline)) static uint32_t way_at(uint32_t i)
{
    return i < 2 * WAYS ? i % WAYS : i * 2654435761u % WAYS;
}

TEST_CASE(repeated_call_paths_keep_distinct_stacks)
{
    static rmm_stack_raw_t taken[4 * WAYS];

    for (uint32_t i = 0; i < 4 * WAYS; i++) { /* all from one call */
        take_by(way_at(i), LEVELS, &taken[i]);
    }
    for (uint32_t i = 0; i < 4 * WAYS; i++) {
        assert_true(taken[i].count > LEVELS);
        assert_true(is_same(&taken[i], &taken[way_at(i)]));
        assert_true(i == 0 || !is_same(&taken[i], &taken[i - 1]));
    }
}

static void *take_in_thread(void *out)
{
    take_deeper(3, out);
    return NULL;
}

static long mapped_pages(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    long pages = 0;

    assert_non_null(file);
    assert_int_equal(fscanf(file, "%ld", &pages), 1);
    (void)fclose(file);
    return pages;
}

TEST_CASE(what_a_thread_remembers_ends_with_it)
{
    enum { THREADS = 200 };
    static rmm_stack_raw_t taken;
    long before = 0;

    for (int i = 0; i < THREADS; i++) {
        pthread_t thread;

        assert_int_equal(pthread_create(&thread, NULL, take_in_thread, &taken), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_true(taken.count > 3);
        before = i == 0 ? mapped_pages() : before;
    }
    assert_true(mapped_pages() - before < THREADS * 100000L / 4096);
}

/* --- many threads ------------------------------------------------------------------ */

/* More than the 130 that would have, each for itself, what all together may have. */
#ifdef __SANITIZE_THREAD__ /* under which each takes twenty times as long */
enum { CREW = 150, OF_EACH = 2048 };
#else
enum { CREW = 250, OF_EACH = 2048 };
#endif

static pthread_barrier_t barrier;

static void *take_many(void *argument)
{
    const uint32_t *count = argument;
    rmm_stack_raw_t taken;

    for (uint32_t i = 0; i < *count; i++) {
        take_by(i, LEVELS, &taken);
        assert_true(taken.count > LEVELS);
    }
    (void)pthread_barrier_wait(&barrier);
    (void)pthread_barrier_wait(&barrier);
    return argument;
}

static long resident_kib(void)
{
    char line[256];
    long kib = -1;
    FILE *file = fopen("/proc/self/smaps_rollup", "r");

    assert_non_null(file);
    while (kib < 0 && fgets(line, sizeof(line), file) != NULL) {
        (void)sscanf(line, "Rss: %ld", &kib);
    }
    (void)fclose(file);
    assert_true(kib > 0);
    return kib;
}

/* What their memory grows by while each knows so many stacks. */
static long grown_by_threads(uint32_t count, uint32_t of_each)
{
    static pthread_t threads[CREW];
    pthread_attr_t small;
    long before = resident_kib(), grown = 0;

    assert_int_equal(pthread_attr_init(&small), 0);
    assert_int_equal(pthread_attr_setstacksize(&small, 256 << 10), 0);
    assert_int_equal(pthread_barrier_init(&barrier, NULL, count + 1), 0);
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(pthread_create(&threads[i], &small, take_many, &of_each), 0);
    }
    (void)pthread_barrier_wait(&barrier);
    grown = resident_kib() - before;
    (void)pthread_barrier_wait(&barrier);
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    (void)pthread_barrier_destroy(&barrier);
    (void)pthread_attr_destroy(&small);
    return grown;
}

/* Each alone would have 650 KiB. A thread that comes after them has as much again. */
TEST_CASE(the_memory_for_the_stacks_of_all_threads_is_bounded)
{
    long most = (long)CREW * 650 * 3 / 4;

#ifdef __SANITIZE_THREAD__ /* whose own memory is among that */
    most *= 100;
#else
#ifdef __SANITIZE_ADDRESS__ /* takes up to 50 MB for the threads, and uses it again */
    (void)grown_by_threads(CREW, 1);
#endif
    assert_true(grown_by_threads(CREW, OF_EACH) < most);
#endif
    assert_true(grown_by_threads(CREW, OF_EACH) < most);
    assert_true(grown_by_threads(1, OF_EACH) > 600);
}
