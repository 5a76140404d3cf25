/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The signals are blocked and waited for, not handled: nothing runs at an odd moment,
 * and one that comes just before the wait is not lost.
 */
#include "replay/hold.h"

#include <errno.h>
#include <signal.h>
#include <time.h>

static void ending_signals(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGTERM);
    sigaddset(set, SIGINT);
}

void hold_prepare(void)
{
    sigset_t set;
    ending_signals(&set);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
}

void hold_for(double seconds)
{
    sigset_t set;
    ending_signals(&set);
    struct timespec end;
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += (time_t)seconds;
    end.tv_nsec += (long)((seconds - (double)(time_t)seconds) * 1e9);

    for (;;) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        struct timespec left = {end.tv_sec - now.tv_sec, end.tv_nsec - now.tv_nsec};
        if (left.tv_nsec < 0) {
            left.tv_nsec += 1000000000;
            left.tv_sec--;
        }
        if (left.tv_nsec >= 1000000000) {
            left.tv_nsec -= 1000000000;
            left.tv_sec++;
        }
        if (left.tv_sec < 0 || sigtimedwait(&set, NULL, &left) >= 0 || errno != EINTR) {
            return;
        }
    }
}
