/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that wait, perhaps for long, until something is as they need it. Another thread tells
 * them after each change. Not on a fast path.
 */
#ifndef RMM_CORE_GATE_H
#define RMM_CORE_GATE_H

#include <pthread.h>

typedef struct rmm_gate {
    pthread_mutex_t mutex; /* held for a few instructions, and around look() */
    pthread_cond_t changed;
} rmm_gate_t;

#define RMM_GATE_WAIT 0

void rmm__gate_init(rmm_gate_t *gate);
void rmm__gate_fini(rmm_gate_t *gate);

/* Call look() now and after each tell(), until it returns another value than RMM_GATE_WAIT, which
 * is returned. RMM_GATE_WAIT: so many seconds are over; 0: never. look() may take a lock that no
 * caller of tell() holds. The caller cannot be cancelled (core/uncancelled.h). */
int rmm__gate_wait(
    rmm_gate_t *gate, int (*look)(void *context), void *context, unsigned most_seconds);

/* Something has changed. */
void rmm__gate_tell(rmm_gate_t *gate);

#endif /* RMM_CORE_GATE_H */
