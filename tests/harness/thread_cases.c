/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts the threads that a case starts. The program's own pthread_create() is found before that
 * of libc, also by libraries; threads of a library, as of a CUDA driver, do not count. The count
 * is shared with forked children.
 */
#include "harness/thread_cases.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PATTERNS_MOST 32

typedef struct watched {
    struct CMUnitTest test;
    bool is_threaded;
} watched_t;

static atomic_uint *started;     /* NULL: nothing is watched */
static watched_t *cases;         /* of this group, in the order in which they run */
static const watched_t *current; /* NULL before the first */

char **thread_cases_patterns(void)
{
    static char *patterns[PATTERNS_MOST + 1];
    static char *text;
    const char *value = getenv("RMM_TEST_THREADS");
    size_t count = 0;

    if (value == NULL) {
        return NULL;
    }
    free(text);
    text = strdup(value);
    for (char *one = strtok(text, "|"); one != NULL; one = strtok(NULL, "|")) {
        if (count == PATTERNS_MOST) {
            abort();
        }
        patterns[count++] = one;
    }
    patterns[count] = NULL;
    return patterns;
}

/* cmocka calls it before each case, and nothing else in between. */
static int begin_case(void **state)
{
    current = current == NULL ? cases : current + 1;
    atomic_store_explicit(started, 0, memory_order_relaxed);
    return current->test.setup_func == NULL ? 0 : current->test.setup_func(state);
}

static void run_case(void **state)
{
    current->test.test_func(state);
    if (!current->is_threaded &&
        atomic_load_explicit(started, memory_order_relaxed) != 0) {
        fail_msg("it starts threads, and RMM_TEST_THREADS does not name it: the thread "
                 "sanitizer would not see it");
    }
}

void thread_cases_watch(struct CMUnitTest *tests, size_t count, const bool *is_threaded)
{
    free(cases);
    cases = calloc(count, sizeof(*cases));
    current = NULL;
    if (started == NULL) {
        started = mmap(
            NULL, sizeof(*started), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
            -1, 0);
    }
    if (cases == NULL || started == MAP_FAILED) {
        abort();
    }
    for (size_t i = 0; i < count; i++) {
        cases[i] = (watched_t){tests[i], is_threaded[i]};
        tests[i].setup_func = begin_case;
        tests[i].test_func = run_case;
    }
}

#ifndef __SANITIZE_THREAD__
static bool is_of_this_program(void *(*body)(void *))
{
    extern const char __executable_start[], etext[]; /* of the linker */

    return (uintptr_t)body >= (uintptr_t)__executable_start &&
           (uintptr_t)body < (uintptr_t)etext;
}

typedef int (*create_fn)(
    pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

__attribute__((visibility("default"))) int pthread_create(
    pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *),
    void *argument)
{
    static _Atomic(create_fn) next;
    create_fn create = atomic_load_explicit(&next, memory_order_relaxed);

    if (create == NULL) {
        *(void **)&create = dlsym(RTLD_NEXT, "pthread_create");
        if (create == NULL) {
            abort();
        }
        atomic_store_explicit(&next, create, memory_order_relaxed);
    }
    if (started != NULL && is_of_this_program(body)) {
        atomic_fetch_add_explicit(started, 1, memory_order_relaxed);
    }
    return create(thread, attributes, body, argument);
}
#endif
