/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of the page (page.h) that has the launches, copies and fills: "calls", lists of time,
 * stream, name and how many it stands for.
 */
#ifndef RMM_TOOLS_TIMELINE_PAGE_CALLS_H
#define RMM_TOOLS_TIMELINE_PAGE_CALLS_H

#include <stdbool.h>
#include <stdio.h>

#include "timeline/history.h"

#define PAGE_CALLS_MAX 40000 /* beyond it, one for each stretch of time */

/* Members of an object, behind others. False: no memory. */
bool page_put_calls(const history_t *history, FILE *out);

#endif /* RMM_TOOLS_TIMELINE_PAGE_CALLS_H */
