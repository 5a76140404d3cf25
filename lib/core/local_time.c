/* SPDX-License-Identifier: Apache-2.0 */
#include "core/local_time.h"

#include <string.h>

#include "core/fork.h"

static rmm_mutex_t lock = RMM_MUTEX_INITIALIZER;

RMM_AT_LOAD static void join_forks(void)
{
    rmm__fork_join(RMM_FORK_LOCAL_TIME, &lock, NULL);
}

static void convert(
    struct tm *(*conversion)(const time_t *seconds, struct tm *out), time_t seconds,
    struct tm *out)
{
    memset(out, 0, sizeof(*out));
    rmm__mutex_lock(&lock);
    (void)conversion(&seconds, out);
    rmm__mutex_unlock(&lock);
}

void rmm__local_time(time_t seconds, struct tm *out)
{
    convert(localtime_r, seconds, out);
}

void rmm__utc_time(time_t seconds, struct tm *out)
{
    convert(gmtime_r, seconds, out);
}
