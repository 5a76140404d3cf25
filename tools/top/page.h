/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a snapshot as the page of lib/page/node_page.h. */
#ifndef RMM_TOP_PAGE_H
#define RMM_TOP_PAGE_H

#include <stdio.h>
#include <time.h>

#include "node/sampler.h"

/* The snapshot that the sampler took last, with the blocks that its programs have reported; NULL:
 * one of a recording, without blocks. False: no memory. Errors of the file stay there. */
bool page_write(FILE *file, const sampler_t *sampler, const node_t *node, time_t now);

/* Of the programs that hold the most. */
void page_ask_for_blocks(const sampler_t *sampler, const node_t *node);

#endif /* RMM_TOP_PAGE_H */
