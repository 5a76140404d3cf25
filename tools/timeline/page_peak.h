/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of the page (page.h) that has the lines of live bytes, and what held their peaks:
 * "locations".
 */
#ifndef RMM_TOOLS_TIMELINE_PAGE_PEAK_H
#define RMM_TOOLS_TIMELINE_PAGE_PEAK_H

#include <stdbool.h>
#include <stdio.h>

#include "timeline/history.h"

#define PAGE_BINS 1000      /* of a line */
#define PAGE_HOLDERS_MAX 40 /* of a peak; the others are summed up */

/* Members of an object, behind others. False: no memory. */
bool page_put_peaks(const history_t *history, FILE *out);

#endif /* RMM_TOOLS_TIMELINE_PAGE_PEAK_H */
