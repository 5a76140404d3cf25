/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The live page in a terminal: reads the node each interval, draws it, takes keys and the mouse.
 * SIGINT, SIGTERM and SIGHUP end it like the key q: the terminal is as it was before.
 */
#ifndef RMM_TOP_SCREEN_H
#define RMM_TOP_SCREEN_H

#include "top/options.h"
#include "top/source.h"

/* False: said why. */
bool screen_run(const options_t *options, source_t *source);

#endif /* RMM_TOP_SCREEN_H */
