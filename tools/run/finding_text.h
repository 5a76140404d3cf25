/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A finding as a paragraph for people: what was done, to which block, and what would be right.
 */
#ifndef RMM_TOOLS_RUN_FINDING_TEXT_H
#define RMM_TOOLS_RUN_FINDING_TEXT_H

#include <stdint.h>
#include <stdio.h>

#include "diag/diag_reader.h"

/* From the block's first byte; negative: before it. */
static inline int64_t run_finding_offset(const rmm_diag_finding_info_t *finding)
{
    return (int64_t)(finding->address - finding->block_address);
}

void run_finding_print(const rmm_diag_finding_info_t *finding, FILE *out);

#endif /* RMM_TOOLS_RUN_FINDING_TEXT_H */
