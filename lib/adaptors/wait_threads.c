/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See wait_threads.h. A thread's records are made at its first request or free, and freed at its
 * end, or when it looks for another one and their adaptor has ended.
 */
#include "adaptors/wait_threads.h"

#include <pthread.h>

#include "core/assert.h"
#include "core/fork.h"
#include "core/host_memory.h"
#include "core/mutex.h"

static rmm_mutex_t threads = RMM_MUTEX_INITIALIZER;
static rmm_wait_thread_t *all;               /* protected by `threads` */
static _Thread_local rmm_wait_thread_t *own; /* the one used last first */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key; /* not NULL in a thread with records, for its end */
static bool has_key;

/* --- in a forked child: the adaptors of before refuse everything ------------------------- */

static void part_with_adaptors(void)
{
    for (rmm_wait_thread_t *thread = all; thread != NULL; thread = thread->next) {
        thread->roster = NULL;
    }
}

RMM_AT_LOAD static void join_forks(void)
{
    rmm__fork_join(RMM_FORK_WAIT_THREADS, &threads, part_with_adaptors);
}

/* --- the list of all ------------------------------------------------------------------- */

static void insert_locked(rmm_wait_thread_t *thread)
{
    thread->previous = NULL;
    thread->next = all;
    if (all != NULL) {
        all->previous = thread;
    }
    all = thread;
}

static void remove_locked(rmm_wait_thread_t *thread)
{
    if (thread->previous != NULL) {
        thread->previous->next = thread->next;
    } else {
        all = thread->next;
    }
    if (thread->next != NULL) {
        thread->next->previous = thread->previous;
    }
}

/* --- blocks without a thread ------------------------------------------------------------ */

/* They count as one thread while there are any. */
static void leave_blocks_locked(rmm_wait_roster_t *roster, int64_t blocks)
{
    const bool counted = roster->left_blocks > 0;

    RMM_ASSERT_LOCKED(&threads);
    roster->left_blocks += blocks;
    if (!counted && roster->left_blocks > 0) {
        rmm__wait_roster_join(roster);
    } else if (counted && roster->left_blocks <= 0) {
        rmm__wait_roster_leave(roster);
    }
}

RMM_COLD void rmm__wait_thread_freed_others(rmm_wait_thread_t *thread)
{
    rmm_wait_roster_t *roster = thread->roster;

    rmm__mutex_lock(&threads);
    if (roster->left_blocks > 0) {
        thread->blocks++;
        leave_blocks_locked(roster, -1);
    } else {
        thread->frees_others = true;
    }
    rmm__mutex_unlock(&threads);
    if (thread->frees_others && !thread->is_counted) {
        thread->is_counted = true;
        rmm__wait_roster_join(roster);
    }
}

/* --- the end of a thread ---------------------------------------------------------------- */

static void end_locked(rmm_wait_thread_t *thread)
{
    remove_locked(thread);
    if (thread->roster != NULL) {
        leave_blocks_locked(thread->roster, thread->blocks);
        if (thread->is_counted) {
            rmm__wait_roster_leave(thread->roster);
        }
    }
}

static void thread_ends(void *unused)
{
    rmm_wait_thread_t *ended = own, *next;

    (void)unused;
    own = NULL;
    rmm__mutex_lock(&threads);
    for (rmm_wait_thread_t *thread = ended; thread != NULL; thread = thread->next_own) {
        end_locked(thread);
    }
    rmm__mutex_unlock(&threads);
    for (; ended != NULL; ended = next) {
        next = ended->next_own;
        rmm__free(ended);
    }
}

static void make_key(void)
{
    has_key = pthread_key_create(&key, thread_ends) == 0;
}

static bool will_see_the_end(void)
{
    return pthread_once(&once, make_key) == 0 && has_key &&
           pthread_setspecific(key, &key) == 0;
}

/* --- records --------------------------------------------------------------------------- */

/* Takes those of ended adaptors out of the list; they are to be freed. */
static rmm_wait_thread_t *part_ended_locked(void)
{
    rmm_wait_thread_t **link = &own, *ended = NULL;

    while (*link != NULL) {
        rmm_wait_thread_t *thread = *link;

        if (thread->roster == NULL) {
            *link = thread->next_own;
            remove_locked(thread);
            thread->next_own = ended;
            ended = thread;
        } else {
            link = &thread->next_own;
        }
    }
    return ended;
}

static rmm_wait_thread_t *make(rmm_wait_roster_t *roster)
{
    rmm_wait_thread_t *made = will_see_the_end() ? rmm__calloc(1, sizeof(*made)) : NULL;
    rmm_wait_thread_t *ended, *next;

    if (made == NULL) {
        return NULL;
    }
    made->roster = roster;
    made->id = roster->id;
    rmm__mutex_lock(&threads);
    ended = part_ended_locked();
    insert_locked(made);
    rmm__mutex_unlock(&threads);
    made->next_own = own;
    own = made;
    for (; ended != NULL; ended = next) {
        next = ended->next_own;
        rmm__free(ended);
    }
    return made;
}

/* Not the first of the thread's: it becomes that. */
RMM_COLD static rmm_wait_thread_t *find_or_make(rmm_wait_roster_t *roster)
{
    for (rmm_wait_thread_t **link = &own; *link != NULL; link = &(*link)->next_own) {
        rmm_wait_thread_t *thread = *link;

        if (thread->id == roster->id) {
            *link = thread->next_own;
            thread->next_own = own;
            own = thread;
            return thread;
        }
    }
    return make(roster);
}

rmm_wait_thread_t *rmm__wait_thread_find(rmm_wait_roster_t *roster)
{
    return own != NULL && own->id == roster->id ? own : find_or_make(roster);
}

/* --- the adaptor ------------------------------------------------------------------------ */

void rmm__wait_roster_init(
    rmm_wait_roster_t *roster, uint32_t id, void (*none_works)(rmm_wait_roster_t *))
{
    roster->id = id;
    atomic_init(&roster->working, 0);
    roster->left_blocks = 0;
    roster->none_works = none_works;
}

void rmm__wait_roster_fini(rmm_wait_roster_t *roster)
{
    rmm__mutex_lock(&threads);
    for (rmm_wait_thread_t *thread = all; thread != NULL; thread = thread->next) {
        if (thread->roster == roster) {
            thread->roster = NULL;
        }
    }
    rmm__mutex_unlock(&threads);
}
