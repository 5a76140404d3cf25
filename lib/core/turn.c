/* SPDX-License-Identifier: Apache-2.0 */
#include "core/turn.h"

#include <errno.h>
#include <time.h>

#include "core/assert.h"

#define SECOND_NS 1000000000L
/* A wait consists of short ones. If the process is stopped meanwhile, as by a debugger or a
 * busy machine, only one of them times out. */
#define WAITS 20

/* How many turns this thread has, or proceeds without. */
static _Thread_local unsigned entered;

void rmm__turn_init(rmm_turn_t *turn)
{
    pthread_condattr_t monotonic;

    pthread_mutex_init(&turn->mutex, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&turn->given_back, &monotonic);
    pthread_condattr_destroy(&monotonic);
    turn->waiting = 0;
    turn->given = 0;
    turn->is_taken = turn->is_handed_on = false;
}

void rmm__turn_fini(rmm_turn_t *turn)
{
    RMM_ASSERT(!turn->is_taken);
    pthread_cond_destroy(&turn->given_back);
    pthread_mutex_destroy(&turn->mutex);
}

static struct timespec deadline(void)
{
    struct timespec at;

    clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_nsec += RMM_TURN_WAIT_NS / WAITS;
    at.tv_sec += at.tv_nsec / SECOND_NS;
    at.tv_nsec %= SECOND_NS;
    return at;
}

/* True: the turn was handed on to this thread. */
static bool wait_locked(rmm_turn_t *turn)
{
    uint64_t given = turn->given;
    int waits = 0;
    bool is_mine;

    turn->waiting++;
    while (!turn->is_handed_on && waits < WAITS) {
        const struct timespec at = deadline();

        if (pthread_cond_timedwait(&turn->given_back, &turn->mutex, &at) == ETIMEDOUT) {
            waits++;
        }
        if (turn->given != given) { /* it has another owner now */
            given = turn->given;
            waits = 0;
        }
    }
    is_mine = turn->is_handed_on;
    turn->is_handed_on = false;
    turn->waiting--;
    return is_mine;
}

static bool take_if_free_locked(rmm_turn_t *turn)
{
    bool is_mine = !turn->is_taken;

    turn->is_taken = true;
    return is_mine;
}

rmm_turn_stay_t rmm__turn_enter(rmm_turn_t *turn)
{
    rmm_turn_stay_t stay = {.turn = turn, .cancel_state = rmm__cancel_off()};

    pthread_mutex_lock(&turn->mutex);
    stay.has_turn = take_if_free_locked(turn);
    if (!stay.has_turn && entered == 0) {
        stay.has_turn = wait_locked(turn);
    }
    pthread_mutex_unlock(&turn->mutex);
    entered++; /* without its turn as well */
    return stay;
}

rmm_turn_stay_t rmm__turn_try(rmm_turn_t *turn)
{
    rmm_turn_stay_t stay = {.turn = NULL};
    bool is_mine;

    pthread_mutex_lock(&turn->mutex);
    is_mine = take_if_free_locked(turn);
    pthread_mutex_unlock(&turn->mutex);
    if (is_mine) {
        stay = (rmm_turn_stay_t){turn, true, rmm__cancel_off()};
        entered++;
    }
    return stay;
}

static void give_back(rmm_turn_t *turn)
{
    pthread_mutex_lock(&turn->mutex);
    turn->given++;
    turn->is_taken = turn->is_handed_on = turn->waiting != 0;
    pthread_cond_signal(&turn->given_back);
    pthread_mutex_unlock(&turn->mutex);
}

void rmm__turn_leave(const rmm_turn_stay_t *stay)
{
    if (stay->turn == NULL) {
        return;
    }
    entered--;
    if (stay->has_turn) {
        give_back(stay->turn);
    }
    rmm__cancel_restore(&stay->cancel_state);
}
