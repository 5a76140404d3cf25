/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of the page (page.h) that has the blocks on their addresses: "regions" (first address
 * and bytes of each stretch of addresses in use), "blocks" and, for those that are not drawn one by
 * one, "grid".
 */
#ifndef RMM_TOOLS_TIMELINE_PAGE_MAP_H
#define RMM_TOOLS_TIMELINE_PAGE_MAP_H

#include <stdbool.h>
#include <stdio.h>

#include "timeline/history.h"

#define PAGE_BLOCKS_MAX 20000 /* drawn one by one */
#define PAGE_REGIONS_MAX 1000
#define PAGE_GRID_COLUMNS 1024
#define PAGE_GRID_ROWS 128

/* Members of an object, behind others. False: no memory. */
bool page_put_map(const history_t *history, FILE *out);

#endif /* RMM_TOOLS_TIMELINE_PAGE_MAP_H */
