/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library's log in a program that makes allocations fail on purpose, or reports each
 * failure itself: on stderr the library does not log them again. RMM_LOG_LEVEL and
 * RMM_DEBUG_LOG_FILE bring the whole log back.
 */
#ifndef RMM_TOOLS_COMMON_LIBRARY_LOG_H
#define RMM_TOOLS_COMMON_LIBRARY_LOG_H

#include <stdlib.h>
#include <string.h>

#include <rmm/log.h>

#include "common/error.h"

static inline void
library_log_print(rmm_log_level_t level, const char *message, void *arg)
{
    (void)arg;
    if (level >= RMM_LEVEL_WARN &&
        strstr(message, " failed: RMM_ERR_OUT_OF_MEMORY: ") == NULL) {
        tool_error("%s", message);
    }
}

/* Before the first allocation. False: no host memory; said so. */
static inline bool library_log_open(void)
{
    if (getenv("RMM_LOG_LEVEL") == NULL && getenv("RMM_DEBUG_LOG_FILE") == NULL &&
        rmm_log_to_callback(library_log_print, NULL) != RMM_OK) {
        tool_error("no host memory for the log");
        return false;
    }
    return true;
}

#endif /* RMM_TOOLS_COMMON_LIBRARY_LOG_H */
