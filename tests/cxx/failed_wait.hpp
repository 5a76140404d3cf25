/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call that throws as it cannot wait for its stream. The plan of faults is asked whether it has
 * struck, for which the objects of the simulated GPU are in the program: apart from harness.hpp,
 * whose programs may have librmm-sim.so alone.
 */
#ifndef RMM_TESTS_CXX_FAILED_WAIT_HPP
#define RMM_TESTS_CXX_FAILED_WAIT_HPP

#include <cstddef>

#include <rmm/rmm.hpp>
#include <rmm/sim.h>

#include "driver/sim/control.h"

namespace test
{

inline void mark(const void *const *params)
{
    **static_cast<bool *const *>(params[0]) = true;
}

/* The call throws this as it cannot wait for the stream. True if it leaves no work there. */
template <class Exception, class Call>
bool cannot_wait(rmmc::stream_view stream, Call call)
{
    bool has_run = false, has_thrown = false;
    bool *const address = &has_run;
    const void *const params[] = {&address};
    const std::size_t param_bytes[] = {sizeof(address)};

    if (rmm_sim_launch("mark", mark, stream.value(), params, param_bytes, 1) != 0 ||
        !rmm_sim_fail("stream_synchronize:1")) {
        return false;
    }
    try {
        call();
    } catch (const Exception &) {
        has_thrown = true;
    }
    const bool leaves_nothing = has_run && has_thrown && rmm__sim_fault_has_struck();
    (void)rmm_sim_fail(nullptr);
    stream.synchronize(); /* the kernel writes to this stack */
    return leaves_nothing;
}

} /* namespace test */

#endif /* RMM_TESTS_CXX_FAILED_WAIT_HPP */
