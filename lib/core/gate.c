/* SPDX-License-Identifier: Apache-2.0 */
#include "core/gate.h"

#include <errno.h>
#include <stdbool.h>
#include <time.h>

void rmm__gate_init(rmm_gate_t *gate)
{
    pthread_condattr_t monotonic;

    pthread_mutex_init(&gate->mutex, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&gate->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

void rmm__gate_fini(rmm_gate_t *gate)
{
    pthread_cond_destroy(&gate->changed);
    pthread_mutex_destroy(&gate->mutex);
}

int rmm__gate_wait(
    rmm_gate_t *gate, int (*look)(void *context), void *context, unsigned most_seconds)
{
    struct timespec until;
    bool is_over = false;
    int seen;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += most_seconds;
    pthread_mutex_lock(&gate->mutex);
    seen = look(context);
    while (seen == RMM_GATE_WAIT && !is_over) {
        is_over =
            (most_seconds == 0
                 ? pthread_cond_wait(&gate->changed, &gate->mutex)
                 : pthread_cond_timedwait(&gate->changed, &gate->mutex, &until)) ==
            ETIMEDOUT;
        seen = look(context);
    }
    pthread_mutex_unlock(&gate->mutex);
    return seen;
}

void rmm__gate_tell(rmm_gate_t *gate)
{
    pthread_mutex_lock(&gate->mutex);
    pthread_cond_broadcast(&gate->changed);
    pthread_mutex_unlock(&gate->mutex);
}
