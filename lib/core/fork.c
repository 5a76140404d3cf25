/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fork handlers of the library; see fork.h.
 *
 * Locking: `forking` serialises forks, and comes before all that they take. A part that
 * joins while another thread forks (a library loaded by dlopen()) may or may not be part of
 * that fork: the handlers record which locks they have taken.
 */
#include "core/fork.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

typedef struct part {
    _Atomic(bool) joined; /* the rest is written before */
    rmm_mutex_t *held;
    void (*in_child)(void);
} part_t;

static part_t parts[RMM_FORK_PART_COUNT];
static rmm_mutex_t forking = RMM_MUTEX_INITIALIZER;
static bool taken[RMM_FORK_PART_COUNT]; /* protected by forking */
static bool is_watched;                 /* written when the library is loaded */

static void before_fork(void)
{
    rmm__mutex_lock(&forking);
    for (int i = 0; i < RMM_FORK_PART_COUNT; i++) {
        /* acquire: pairs with rmm__fork_join() */
        taken[i] = atomic_load_explicit(&parts[i].joined, memory_order_acquire);
        if (taken[i] && parts[i].held != NULL) {
            rmm__mutex_lock(parts[i].held);
        }
    }
}

static void give_back(void)
{
    for (int i = RMM_FORK_PART_COUNT - 1; i >= 0; i--) {
        if (taken[i] && parts[i].held != NULL) {
            rmm__mutex_unlock(parts[i].held);
        }
    }
    rmm__mutex_unlock(&forking);
}

static void after_fork_in_child(void)
{
    for (int i = RMM_FORK_PART_COUNT - 1; i >= 0; i--) {
        if (taken[i] && parts[i].in_child != NULL) {
            parts[i].in_child();
        }
    }
    give_back();
}

RMM_AT_LOAD static void install_handlers(void)
{
    is_watched = pthread_atfork(before_fork, give_back, after_fork_in_child) == 0;
}

void rmm__fork_join(rmm_fork_part_t part, rmm_mutex_t *held, void (*in_child)(void))
{
    parts[part].held = held;
    parts[part].in_child = in_child;
    /* release: pairs with before_fork() */
    atomic_store_explicit(&parts[part].joined, true, memory_order_release);
}

bool rmm__fork_is_watched(void)
{
    return is_watched;
}
