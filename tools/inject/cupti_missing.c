/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces cupti_source.c in a build without CUPTI's headers. */
#include <stdio.h>

#include "inject/source.h"

bool inject_cupti_start(
    rmm_diag_engine_t *engine, uint32_t modes, char text[INJECT_TEXT_BYTES])
{
    (void)engine;
    (void)modes;
    snprintf(text, INJECT_TEXT_BYTES, "error:built without CUPTI");
    return false;
}

uint32_t inject_cupti_set_modes(uint32_t modes)
{
    (void)modes;
    return 0;
}

void inject_cupti_follow_driver(const inject_library_t *library)
{
    (void)library;
}

void inject_cupti_leave_driver(void)
{
}

bool inject_cupti_follows_driver(void)
{
    return false;
}

rmm_guard_queue_fn inject_cupti_guards(void)
{
    return NULL;
}

void inject_cupti_stop(void)
{
}
