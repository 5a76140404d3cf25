/* SPDX-License-Identifier: Apache-2.0 */
/* Group setup and teardown of tests of programs: the simulated GPU, a runtime directory. */
#ifndef RMM_TESTS_SIM_PROGRAMS_LOCATION_H
#define RMM_TESTS_SIM_PROGRAMS_LOCATION_H

#include "harness/runtime.h"

static runtime_t runtime;

static inline int make_location(void **state)
{
    (void)state;
    setenv("RMM_DRIVER", "sim", 1);
    runtime_open(&runtime);
    return 0;
}

static inline int leave_location(void **state)
{
    (void)state;
    runtime_close(&runtime);
    return 0;
}

#endif /* RMM_TESTS_SIM_PROGRAMS_LOCATION_H */
