/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where events come from. The simulated GPU's source is a service of librmm-c
 * (rmm/sys/diag.h); a real GPU's is CUPTI, in cupti_source.c, or, built without its
 * headers, cupti_missing.c, which says so.
 */
#ifndef RMM_TOOLS_INJECT_SOURCE_H
#define RMM_TOOLS_INJECT_SOURCE_H

#include <stdbool.h>
#include <stddef.h>

#include "diag/engine.h"
#include "inject/library.h"

#define INJECT_TEXT_BYTES 96 /* what the side file has room for */

/*
 * Start sending events for these modes (diag/modes.h) to the engine: launches, copies, fills,
 * prefetches and the calls that order streams. `text` receives what readers of `cupti` see:
 * "active", "conflict:<who>" or "error:<why>". False: no events will come. Call once per
 * process, with no driver call in progress on this thread.
 */
bool inject_cupti_start(
    rmm_diag_engine_t *engine, uint32_t modes, char text[INJECT_TEXT_BYTES]);

/* Send what these modes need from now on, and no more; the modes for which that could be had. One
 * thread at a time, also from within a callback. */
uint32_t inject_cupti_set_modes(uint32_t modes);

/*
 * Tell this librmm-c from now on what the program takes from the driver. Once per process, before
 * inject_cupti_start(), from InitializeInjection(): the driver is being opened, and is not
 * called. Without CUPTI nothing is reported; inject_cupti_start() returns why.
 */
void inject_cupti_follow_driver(const inject_library_t *library);
bool inject_cupti_follows_driver(void);
/* The program has a librmm-c of its own that this library did not find: it counts by itself. */
void inject_cupti_leave_driver(void);

/* Queues the work on guards (diag/guards.h); NULL: it cannot. */
rmm_guard_queue_fn inject_cupti_guards(void);

/* In a forked child: send nothing more. */
void inject_cupti_stop(void);

#endif /* RMM_TOOLS_INJECT_SOURCE_H */
