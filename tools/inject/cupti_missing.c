/* SPDX-License-Identifier: Apache-2.0 */
/* Stands for cupti_source.c where CUPTI's headers were not there at build time. */
#include <stdio.h>

#include "inject/source.h"

bool inject_cupti_start(rmm_diag_engine_t *engine, char text[INJECT_TEXT_BYTES])
{
    (void)engine;
    snprintf(text, INJECT_TEXT_BYTES, "error:built without CUPTI");
    return false;
}

void inject_cupti_stop(void)
{
}
