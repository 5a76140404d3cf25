/* SPDX-License-Identifier: Apache-2.0 */
/*
 * localtime_r() and gmtime_r() for a library whose user may fork at any moment. The C
 * library has a lock around both, and no handler that frees it in a child: a thread of the
 * parent that was there at the fork would leave it taken for ever. So all calls of this
 * library are behind a lock of its own, which a fork waits for (core/fork.h).
 */
#ifndef RMM_CORE_LOCAL_TIME_H
#define RMM_CORE_LOCAL_TIME_H

#include <time.h>

/* `seconds` since 1970 in the time zone of the process, or in UTC; all zero where the year
 * does not fit. Not for signal handlers. */
void rmm__local_time(time_t seconds, struct tm *out);
void rmm__utc_time(time_t seconds, struct tm *out);

#endif /* RMM_CORE_LOCAL_TIME_H */
