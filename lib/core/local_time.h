/* SPDX-License-Identifier: Apache-2.0 */
/*
 * localtime_r() and gmtime_r() for a library whose user may fork at any moment. The C
 * library protects both with a lock that it does not reset in a child: if another thread of the
 * parent held it at the fork, the child would wait for it for ever. So this library makes these
 * calls under a lock of its own, which a fork waits for (core/fork.h).
 */
#ifndef RMM_CORE_LOCAL_TIME_H
#define RMM_CORE_LOCAL_TIME_H

#include <time.h>

/* `seconds` since 1970 in the time zone of the process, or in UTC; all zero where the year
 * does not fit. Not for signal handlers. */
void rmm__local_time(time_t seconds, struct tm *out);
void rmm__utc_time(time_t seconds, struct tm *out);

#endif /* RMM_CORE_LOCAL_TIME_H */
