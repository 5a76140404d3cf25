/* SPDX-License-Identifier: Apache-2.0 */
/* The thread sleeps on a condition, so that stopping does not wait for its next look. */
#include "bench/poll.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/own_segment.h"
#include "common/clock.h"

#define INTERVAL_NS 10000000 /* 100 Hz */

struct poll_thread {
    rmm_segment_t segment;
    pthread_t thread;
    pthread_mutex_t lock; /* protects stopping */
    pthread_cond_t wake;
    bool stopping;
};

static void read_all(const rmm_segment_t *segment)
{
    rmm_record_t record;
    uint32_t slots = rmm__segment_slot_count(segment);
    for (uint32_t i = 0; i < rmm__segment_location_count(segment); i++) {
        (void)rmm__segment_read_location(segment, i, &record);
    }
    for (uint32_t i = 0; i < slots; i++) {
        (void)rmm__segment_read_slot(segment, i, &record, NULL);
    }
}

static void *look(void *argument)
{
    poll_t *poll = argument;
    uint64_t next_ns = clock_ns();
    pthread_mutex_lock(&poll->lock);
    while (!poll->stopping) {
        pthread_mutex_unlock(&poll->lock);
        read_all(&poll->segment);
        next_ns += INTERVAL_NS;
        struct timespec moment = {
            .tv_sec = (time_t)(next_ns / 1000000000),
            .tv_nsec = (long)(next_ns % 1000000000)};
        pthread_mutex_lock(&poll->lock);
        if (!poll->stopping) {
            pthread_cond_clockwait(&poll->wake, &poll->lock, CLOCK_MONOTONIC, &moment);
        }
    }
    pthread_mutex_unlock(&poll->lock);
    return NULL;
}

bool poll_start(poll_t **out, char problem[TRIAL_PROBLEM_MAX])
{
    poll_t *poll = calloc(1, sizeof *poll);
    if (poll == NULL) {
        snprintf(problem, TRIAL_PROBLEM_MAX, "no host memory");
        return false;
    }
    if (!own_segment_open(&poll->segment)) {
        snprintf(
            problem, TRIAL_PROBLEM_MAX,
            "this process has no segment to read (is RMM_PUBLISH=0?)");
        free(poll);
        return false;
    }
    pthread_mutex_init(&poll->lock, NULL);
    pthread_cond_init(&poll->wake, NULL);
    if (pthread_create(&poll->thread, NULL, look, poll) != 0) {
        snprintf(problem, TRIAL_PROBLEM_MAX, "cannot start a thread");
        rmm__segment_close(&poll->segment);
        free(poll);
        return false;
    }
    *out = poll;
    return true;
}

void poll_stop(poll_t *poll)
{
    if (poll == NULL) {
        return;
    }
    pthread_mutex_lock(&poll->lock);
    poll->stopping = true;
    pthread_cond_signal(&poll->wake);
    pthread_mutex_unlock(&poll->lock);
    pthread_join(poll->thread, NULL);
    pthread_cond_destroy(&poll->wake);
    pthread_mutex_destroy(&poll->lock);
    rmm__segment_close(&poll->segment);
    free(poll);
}
