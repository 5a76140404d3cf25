/* SPDX-License-Identifier: Apache-2.0 */
/* The stand-in tool of this process, as NVTX_INJECTION64_PATH names it. */
#ifndef RMM_TESTS_SIM_NVTX_NVTX_HARNESS_H
#define RMM_TESTS_SIM_NVTX_NVTX_HARNESS_H

#include "sim/pool/pool_harness.h"

#include <dlfcn.h>
#include <string.h>

#include "sim/nvtx/nvtx_tool.h"

static inline void *tool_symbol(const char *name)
{
    void *tool = dlopen(getenv("NVTX_INJECTION64_PATH"), RTLD_LAZY);
    void *symbol = tool != NULL ? dlsym(tool, name) : NULL;

    assert_non_null(symbol); /* stays open: the library may not have loaded it */
    return symbol;
}

static inline nvtx_tool_state_t tool_state(void)
{
    void *symbol = tool_symbol(NVTX_TOOL_STATE);
    nvtx_tool_state_fn function;
    nvtx_tool_state_t state;

    memcpy(&function, &symbol, sizeof(function));
    function(&state);
    return state;
}

static inline bool tool_allows(const void *ptr, size_t bytes)
{
    void *symbol = tool_symbol(NVTX_TOOL_ALLOWS);
    nvtx_tool_allows_fn function;

    memcpy(&function, &symbol, sizeof(function));
    return function(ptr, bytes);
}

/* All that was begun has ended, and made sense. */
static inline void expect_clean_tool(void)
{
    nvtx_tool_state_t state = tool_state();

    assert_int_equal(state.heaps, 0);
    assert_int_equal(state.regions, 0);
    assert_int_equal(state.violations, 0);
    assert_true(state.has_domain);
}

#endif /* RMM_TESTS_SIM_NVTX_NVTX_HARNESS_H */
