/* SPDX-License-Identifier: Apache-2.0 */
/* The parts that the tests of the debug log share. */
#ifndef RMM_TESTS_SIM_PUBLISH_LOG_CASE_H
#define RMM_TESTS_SIM_PUBLISH_LOG_CASE_H

#include "harness/runtime.h"

#include "log/log.h"

static runtime_t *runtime;

static inline void log_one_of_each(void)
{
    rmm__log_trace("a trace");
    rmm__log_debug("a debug message");
    rmm__log_info("an info");
    rmm__log_warn("a warning");
    rmm__log_error("an error");
    RMM_LOG_AT(RMM_LEVEL_CRITICAL, "a critical one");
}

/* The environment chooses nothing, unless a case sets it. */
static inline int log_setup(void **state)
{
    unsetenv("RMM_LOG_LEVEL");
    unsetenv("RMM_DEBUG_LOG_FILE");
    runtime_setup(state);
    runtime = *state;
    return 0;
}

#endif /* RMM_TESTS_SIM_PUBLISH_LOG_CASE_H */
