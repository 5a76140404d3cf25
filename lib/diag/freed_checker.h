/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Uses of blocks that were freed (freed.h), in mode bounds.
 */
#ifndef RMM_DIAG_FREED_CHECKER_H
#define RMM_DIAG_FREED_CHECKER_H

#include "diag/checker.h"

/* The freed block that began at this address, if it is remembered; else NULL. */
const rmm_freed_block_t *
rmm__freed_begins_at(rmm_diag_engine_t *engine, uint64_t address);

#endif /* RMM_DIAG_FREED_CHECKER_H */
