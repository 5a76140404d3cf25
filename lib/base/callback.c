/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See callback.h. The counts cannot use the initial-exec model: all of the library's
 * thread-local memory would have to fit into the loader's reserve for dlopen(), and Python could
 * not load the library.
 */
#include "base/callback.h"

#include "core/assert.h"

static _Thread_local uint32_t depth;
static _Thread_local uint64_t taken;

atomic_bool rmm__callback_any;

void rmm__callback_enter(void)
{
    atomic_store_explicit(&rmm__callback_any, true, memory_order_relaxed);
    depth++;
}

void rmm__callback_leave(void)
{
    depth--;
}

RMM_COLD bool rmm__callback_is_entered_here(void)
{
    return depth != 0;
}

uint64_t rmm__callback_taken(void)
{
    return taken;
}

void rmm__callback_count(void)
{
    taken++;
}
