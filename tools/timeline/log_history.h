/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The history in an allocation log: blocks and streams, without kernels.
 */
#ifndef RMM_TOOLS_TIMELINE_LOG_HISTORY_H
#define RMM_TOOLS_TIMELINE_LOG_HISTORY_H

#include <stdbool.h>

#include "timeline/history.h"

/* history is initialised, and finished here. Rows that cannot be read are said on stderr; with
 * `strict` the first one ends it. False: said. */
bool log_history_read(history_t *history, const char *path, bool strict);

#endif /* RMM_TOOLS_TIMELINE_LOG_HISTORY_H */
