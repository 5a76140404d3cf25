/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A baton: `turn` names the thread that works, or NOBODY while the caller has it. Each
 * thread has a condition of its own, so that a turn wakes one thread and not all.
 */
#include "replay/crew.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#define NOBODY SIZE_MAX
#define STACK_BYTES (256 * 1024)

typedef struct member {
    struct crew *crew;
    size_t index;
    pthread_t thread;
    pthread_cond_t wake;
} member_t;

struct crew {
    pthread_mutex_t lock; /* protects all below */
    pthread_cond_t done;
    size_t turn;
    bool ending;
    crew_work_fn work;
    void *context;
    size_t count; /* threads that run */
    member_t members[];
};

static void *serve(void *argument)
{
    member_t *member = argument;
    crew_t *crew = member->crew;
    pthread_mutex_lock(&crew->lock);
    for (;;) {
        while (crew->turn != member->index && !crew->ending) {
            pthread_cond_wait(&member->wake, &crew->lock);
        }
        if (crew->ending) {
            break;
        }
        crew_work_fn work = crew->work;
        void *context = crew->context;
        pthread_mutex_unlock(&crew->lock);
        work(context);
        pthread_mutex_lock(&crew->lock);
        crew->turn = NOBODY;
        pthread_cond_signal(&crew->done);
    }
    pthread_mutex_unlock(&crew->lock);
    return NULL;
}

static int start_members(crew_t *crew, size_t count)
{
    pthread_attr_t attributes;
    int error = pthread_attr_init(&attributes);
    if (error != 0) {
        return error;
    }
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    while (error == 0 && crew->count < count) {
        member_t *member = &crew->members[crew->count];
        member->crew = crew;
        member->index = crew->count;
        pthread_cond_init(&member->wake, NULL);
        error = pthread_create(&member->thread, &attributes, serve, member);
        if (error == 0) {
            crew->count++;
        } else {
            pthread_cond_destroy(&member->wake);
        }
    }
    pthread_attr_destroy(&attributes);
    return error;
}

crew_t *crew_create(size_t count)
{
    size_t members = count > 1 ? count : 0;
    crew_t *crew = calloc(1, sizeof *crew + members * sizeof *crew->members);
    if (crew == NULL) {
        return NULL;
    }
    pthread_mutex_init(&crew->lock, NULL);
    pthread_cond_init(&crew->done, NULL);
    crew->turn = NOBODY;
    int error = start_members(crew, members);
    if (error != 0) {
        crew_destroy(crew);
        errno = error;
        return NULL;
    }
    return crew;
}

void crew_call(crew_t *crew, size_t index, crew_work_fn work, void *context)
{
    if (crew->count == 0) {
        work(context);
        return;
    }
    pthread_mutex_lock(&crew->lock);
    crew->work = work;
    crew->context = context;
    crew->turn = index;
    pthread_cond_signal(&crew->members[index].wake);
    while (crew->turn != NOBODY) {
        pthread_cond_wait(&crew->done, &crew->lock);
    }
    pthread_mutex_unlock(&crew->lock);
}

void crew_destroy(crew_t *crew)
{
    if (crew == NULL) {
        return;
    }
    pthread_mutex_lock(&crew->lock);
    crew->ending = true;
    for (size_t i = 0; i < crew->count; i++) {
        pthread_cond_signal(&crew->members[i].wake);
    }
    pthread_mutex_unlock(&crew->lock);
    for (size_t i = 0; i < crew->count; i++) {
        pthread_join(crew->members[i].thread, NULL);
        pthread_cond_destroy(&crew->members[i].wake);
    }
    pthread_cond_destroy(&crew->done);
    pthread_mutex_destroy(&crew->lock);
    free(crew);
}
