/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Long requests, one user after the other; see user_queue.h.
 */
#include "session/user_queue.h"

#include <stdlib.h>

/* Lock held. NULL: no memory. */
static queue_user_t *ensure_user(user_queue_t *queue, uid_t uid)
{
    queue_user_t *user;
    TAILQ_FOREACH(user, &queue->users, link)
    {
        if (user->uid == uid) {
            return user;
        }
    }
    user = calloc(1, sizeof(*user));
    if (user != NULL) {
        user->uid = uid;
        TAILQ_INIT(&user->items);
        TAILQ_INSERT_TAIL(&queue->users, user, link);
    }
    return user;
}

queue_state_t user_queue_add(
    user_queue_t *queue, queue_item_t *item, bool (*is_over)(const void *request))
{
    queue_state_t state = QUEUE_GIVEN_UP;
    pthread_mutex_lock(&queue->lock);
    if (is_over == NULL || !is_over(item->request)) {
        queue_user_t *user = ensure_user(queue, item->uid);
        state = user != NULL ? QUEUE_ADDED : QUEUE_NO_MEMORY;
        if (user != NULL) {
            TAILQ_INSERT_TAIL(&user->items, item, link);
            pthread_cond_signal(&queue->more);
        }
    }
    pthread_mutex_unlock(&queue->lock);
    return state;
}

/* Lock held. */
static void take_out(user_queue_t *queue, queue_user_t *user, queue_item_t *item)
{
    TAILQ_REMOVE(&user->items, item, link);
    if (TAILQ_EMPTY(&user->items)) {
        TAILQ_REMOVE(&queue->users, user, link);
        free(user);
    }
}

/* Lock held. */
static queue_item_t *
find(user_queue_t *queue, const void *request, queue_user_t **user_out)
{
    queue_user_t *user;
    TAILQ_FOREACH(user, &queue->users, link)
    {
        queue_item_t *item;
        TAILQ_FOREACH(item, &user->items, link)
        {
            if (item->request == request) {
                *user_out = user;
                return item;
            }
        }
    }
    return NULL;
}

queue_item_t *user_queue_take(user_queue_t *queue, const void *request)
{
    queue_user_t *user;
    pthread_mutex_lock(&queue->lock);
    queue_item_t *item = find(queue, request, &user);
    if (item != NULL) {
        take_out(queue, user, item);
    }
    pthread_mutex_unlock(&queue->lock);
    return item;
}

/* Lock held. The first request of the first user, which moves to the end of the list. */
static queue_item_t *take_next(user_queue_t *queue)
{
    queue_user_t *user = TAILQ_FIRST(&queue->users);
    queue_item_t *item = TAILQ_FIRST(&user->items);
    TAILQ_REMOVE(&queue->users, user, link);
    TAILQ_INSERT_TAIL(&queue->users, user, link);
    take_out(queue, user, item);
    return item;
}

static void *run(void *arg)
{
    user_queue_t *queue = arg;
    pthread_mutex_lock(&queue->lock);
    while (!queue->is_over || !TAILQ_EMPTY(&queue->users)) {
        if (TAILQ_EMPTY(&queue->users)) {
            pthread_cond_wait(&queue->more, &queue->lock);
            continue;
        }
        queue_item_t *item = take_next(queue);
        bool is_end = queue->is_over;
        pthread_mutex_unlock(&queue->lock);
        item->answer(item, is_end);
        pthread_mutex_lock(&queue->lock);
    }
    pthread_mutex_unlock(&queue->lock);
    return NULL;
}

bool user_queue_start(user_queue_t *queue)
{
    pthread_mutex_init(&queue->lock, NULL);
    pthread_cond_init(&queue->more, NULL);
    TAILQ_INIT(&queue->users);
    queue->is_over = false;
    if (pthread_create(&queue->thread, NULL, run, queue) == 0) {
        return true;
    }
    pthread_cond_destroy(&queue->more);
    pthread_mutex_destroy(&queue->lock);
    return false;
}

void user_queue_stop(user_queue_t *queue)
{
    pthread_mutex_lock(&queue->lock);
    queue->is_over = true;
    pthread_cond_signal(&queue->more);
    pthread_mutex_unlock(&queue->lock);
    (void)pthread_join(queue->thread, NULL);
    pthread_cond_destroy(&queue->more);
    pthread_mutex_destroy(&queue->lock);
}
