/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two output files of a history, as requested by options: opened before the
 * work starts, so that a path that cannot be written is an early error. Failures are printed on
 * stderr, one line each.
 */
#ifndef RMM_TOOLS_TIMELINE_PICTURES_H
#define RMM_TOOLS_TIMELINE_PICTURES_H

#include <stdbool.h>

#include "common/output.h"
#include "timeline/history.h"

typedef struct pictures {
    output_t page, trace;
} pictures_t;

/* NULL: that one is not wanted. False: said, and nothing is left behind. */
bool pictures_open(pictures_t *pictures, const char *page_path, const char *trace_path);

/* Also closes them. False: said; what could not be written is not there. */
bool pictures_write(pictures_t *pictures, const history_t *history);

/* Nothing is left behind. */
void pictures_discard(pictures_t *pictures);

#endif /* RMM_TOOLS_TIMELINE_PICTURES_H */
