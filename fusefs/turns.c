/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Long requests, one user after the other; see turns.h.
 */
#include "turns.h"

#include <stdlib.h>

/* Lock held. NULL: no memory. */
static turn_user_t *ensure_user(turns_t *turns, uid_t uid)
{
    turn_user_t *user;
    TAILQ_FOREACH(user, &turns->users, link)
    {
        if (user->uid == uid) {
            return user;
        }
    }
    user = calloc(1, sizeof(*user));
    if (user != NULL) {
        user->uid = uid;
        TAILQ_INIT(&user->turns);
        TAILQ_INSERT_TAIL(&turns->users, user, link);
    }
    return user;
}

turn_state_t
turns_add(turns_t *turns, turn_t *turn, bool (*is_over)(const void *request))
{
    turn_state_t state = TURN_GIVEN_UP;
    pthread_mutex_lock(&turns->lock);
    if (is_over == NULL || !is_over(turn->request)) {
        turn_user_t *user = ensure_user(turns, turn->uid);
        state = user != NULL ? TURN_ADDED : TURN_NO_MEMORY;
        if (user != NULL) {
            TAILQ_INSERT_TAIL(&user->turns, turn, link);
            pthread_cond_signal(&turns->more);
        }
    }
    pthread_mutex_unlock(&turns->lock);
    return state;
}

/* Lock held. */
static void take_out(turns_t *turns, turn_user_t *user, turn_t *turn)
{
    TAILQ_REMOVE(&user->turns, turn, link);
    if (TAILQ_EMPTY(&user->turns)) {
        TAILQ_REMOVE(&turns->users, user, link);
        free(user);
    }
}

/* Lock held. */
static turn_t *find(turns_t *turns, const void *request, turn_user_t **user_out)
{
    turn_user_t *user;
    TAILQ_FOREACH(user, &turns->users, link)
    {
        turn_t *turn;
        TAILQ_FOREACH(turn, &user->turns, link)
        {
            if (turn->request == request) {
                *user_out = user;
                return turn;
            }
        }
    }
    return NULL;
}

turn_t *turns_take(turns_t *turns, const void *request)
{
    turn_user_t *user;
    pthread_mutex_lock(&turns->lock);
    turn_t *turn = find(turns, request, &user);
    if (turn != NULL) {
        take_out(turns, user, turn);
    }
    pthread_mutex_unlock(&turns->lock);
    return turn;
}

/* Lock held. The first request of the first user, which moves to the end of the list. */
static turn_t *take_next(turns_t *turns)
{
    turn_user_t *user = TAILQ_FIRST(&turns->users);
    turn_t *turn = TAILQ_FIRST(&user->turns);
    TAILQ_REMOVE(&turns->users, user, link);
    TAILQ_INSERT_TAIL(&turns->users, user, link);
    take_out(turns, user, turn);
    return turn;
}

static void *run(void *arg)
{
    turns_t *turns = arg;
    pthread_mutex_lock(&turns->lock);
    while (!turns->is_over || !TAILQ_EMPTY(&turns->users)) {
        if (TAILQ_EMPTY(&turns->users)) {
            pthread_cond_wait(&turns->more, &turns->lock);
            continue;
        }
        turn_t *turn = take_next(turns);
        bool is_end = turns->is_over;
        pthread_mutex_unlock(&turns->lock);
        turn->answer(turn, is_end);
        pthread_mutex_lock(&turns->lock);
    }
    pthread_mutex_unlock(&turns->lock);
    return NULL;
}

bool turns_start(turns_t *turns)
{
    pthread_mutex_init(&turns->lock, NULL);
    pthread_cond_init(&turns->more, NULL);
    TAILQ_INIT(&turns->users);
    turns->is_over = false;
    if (pthread_create(&turns->thread, NULL, run, turns) == 0) {
        return true;
    }
    pthread_cond_destroy(&turns->more);
    pthread_mutex_destroy(&turns->lock);
    return false;
}

void turns_stop(turns_t *turns)
{
    pthread_mutex_lock(&turns->lock);
    turns->is_over = true;
    pthread_cond_signal(&turns->more);
    pthread_mutex_unlock(&turns->lock);
    (void)pthread_join(turns->thread, NULL);
    pthread_cond_destroy(&turns->more);
    pthread_mutex_destroy(&turns->lock);
}
