/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where launches come from. The simulated GPU's source is a service of librmm-c
 * (rmm/sys/diag.h); a real GPU's is CUPTI, in cupti_source.c, or, built without its
 * headers, cupti_missing.c, which says so.
 */
#ifndef RMM_TOOLS_INJECT_SOURCE_H
#define RMM_TOOLS_INJECT_SOURCE_H

#include <stdbool.h>
#include <stddef.h>

#include "diag/engine.h"

#define INJECT_TEXT_BYTES 96 /* what the side file has room for */

/*
 * Send every kernel launch of this process to the engine from now on. `text` receives
 * what readers shall see: "active", "conflict:<who>" or "error:<why>". False: nothing
 * will come. Once per process, with no driver call in progress on this thread.
 */
bool inject_cupti_start(rmm_diag_engine_t *engine, char text[INJECT_TEXT_BYTES]);

/* In a forked child: send nothing more. */
void inject_cupti_stop(void);

#endif /* RMM_TOOLS_INJECT_SOURCE_H */
