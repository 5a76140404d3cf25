/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A signal is counted by a semaphore: whatever thread gets it, and if it comes just before the
 * wait, the wait ends.
 */
#include "replay/hold.h"

#include <errno.h>
#include <semaphore.h>
#include <signal.h>
#include <time.h>

static sem_t ended;

static void end(int number)
{
    int error = errno;
    (void)number;
    (void)sem_post(&ended);
    errno = error;
}

void hold_prepare(void)
{
    const struct sigaction action = {.sa_handler = end, .sa_flags = SA_RESTART};
    (void)sem_init(&ended, 0, 0);
    (void)sigaction(SIGTERM, &action, NULL);
    (void)sigaction(SIGINT, &action, NULL);
}

void hold_for(double seconds)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t)seconds;
    until.tv_nsec += (long)((seconds - (double)(time_t)seconds) * 1e9);
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    while (sem_clockwait(&ended, CLOCK_MONOTONIC, &until) != 0 && errno == EINTR) {
    }
}
