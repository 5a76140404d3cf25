/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parked requests; see waiters.h.
 */
#include "session/waiters.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

bool waiters_init(waiters_t *waiters)
{
    pthread_mutex_init(&waiters->lock, NULL);
    waiters->first = NULL;
    waiters->news_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return waiters->news_fd >= 0;
}

void waiters_fini(waiters_t *waiters)
{
    pthread_mutex_destroy(&waiters->lock);
    if (waiters->news_fd >= 0) {
        (void)close(waiters->news_fd);
    }
}

void waiters_wake(const waiters_t *waiters)
{
    const uint64_t one = 1;
    (void)!write(waiters->news_fd, &one, sizeof(one));
}

bool waiters_add(
    waiters_t *waiters, const waiter_t *waiter, bool (*is_over)(void *request))
{
    waiter_t *parked = malloc(sizeof(*parked));
    if (parked == NULL) {
        return false;
    }
    *parked = *waiter;
    pthread_mutex_lock(&waiters->lock);
    bool over = is_over != NULL && is_over(waiter->request);
    if (!over) {
        parked->next = waiters->first;
        waiters->first = parked;
    }
    pthread_mutex_unlock(&waiters->lock);
    if (over) {
        free(parked);
        return false;
    }
    waiters_wake(waiters);
    return true;
}

static bool is_of_the_same(const waiter_t *left, const waiter_t *right)
{
    return left->stream == right->stream && left->file == right->file;
}

/* Under one lock: of two readers that poll at once neither may drop the other's handle and lose
 * its own. */
static bool swap_poll(waiters_t *waiters, const waiter_t *waiter, void **replaced_out)
{
    pthread_mutex_lock(&waiters->lock);
    waiter_t *old = waiters->first;
    while (old != NULL && !(old->is_poll && is_of_the_same(old, waiter))) {
        old = old->next;
    }
    if (old != NULL) {
        *replaced_out = old->request;
        old->request = waiter->request;
    }
    pthread_mutex_unlock(&waiters->lock);
    return old != NULL;
}

bool waiters_add_poll(waiters_t *waiters, const waiter_t *waiter, void **replaced_out)
{
    *replaced_out = NULL;
    return swap_poll(waiters, waiter, replaced_out) ||
           waiters_add(waiters, waiter, NULL);
}

typedef struct choice {
    const stream_t *stream;
    const void *file;
    const void *request;
} choice_t;

static bool is_request(const waiter_t *waiter, void *arg)
{
    const choice_t *choice = arg;
    return waiter->request == choice->request;
}

static bool is_of_stream(const waiter_t *waiter, void *arg)
{
    const choice_t *choice = arg;
    return (choice->stream == NULL && choice->file == NULL) ||
           (waiter->stream == choice->stream && waiter->file == choice->file);
}

waiter_t *waiters_take_ready(
    waiters_t *waiters, bool (*wanted)(const waiter_t *waiter, void *arg), void *arg)
{
    waiter_t *taken = NULL;
    pthread_mutex_lock(&waiters->lock);
    waiter_t **link = &waiters->first;
    while (*link != NULL) {
        waiter_t *waiter = *link;
        if (wanted(waiter, arg)) {
            *link = waiter->next;
            waiter->next = taken;
            taken = waiter;
        } else {
            link = &waiter->next;
        }
    }
    pthread_mutex_unlock(&waiters->lock);
    return taken;
}

waiter_t *waiters_take_all(waiters_t *waiters, const stream_t *stream, const void *file)
{
    choice_t choice = {.stream = stream, .file = file};
    return waiters_take_ready(waiters, is_of_stream, &choice);
}

bool waiters_take(waiters_t *waiters, const void *request)
{
    choice_t choice = {.request = request};
    waiter_t *taken = waiters_take_ready(waiters, is_request, &choice);
    free(taken); /* a request waits once */
    return taken != NULL;
}

bool waiters_any(waiters_t *waiters)
{
    pthread_mutex_lock(&waiters->lock);
    bool any = waiters->first != NULL;
    pthread_mutex_unlock(&waiters->lock);
    return any;
}

bool waiters_any_urgent(waiters_t *waiters)
{
    bool any = false;
    pthread_mutex_lock(&waiters->lock);
    for (const waiter_t *waiter = waiters->first; waiter != NULL && !any;
         waiter = waiter->next) {
        any = waiter->stream != NULL && stream_is_urgent(waiter->stream);
    }
    pthread_mutex_unlock(&waiters->lock);
    return any;
}
