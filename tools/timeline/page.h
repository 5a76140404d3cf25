/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A history as one HTML page that needs nothing else: the map of addresses over time, the line of
 * live bytes with its peak and what held it, and the launches beside it.
 *
 * Its size has a bound, whatever the history's (about 6 MB): PAGE_BLOCKS_MAX blocks are drawn
 * one by one, those with the most bytes x time, and the others together, as shades of a grid;
 * launches beyond PAGE_CALLS_MAX as one of each short stretch of time.
 */
#ifndef RMM_TOOLS_TIMELINE_PAGE_H
#define RMM_TOOLS_TIMELINE_PAGE_H

#include <stdbool.h>
#include <stdio.h>

#include "timeline/history.h"

/* The history is finished. False: no memory. Errors of writing are left in `out`. */
bool page_write(const history_t *history, FILE *out);

#endif /* RMM_TOOLS_TIMELINE_PAGE_H */
