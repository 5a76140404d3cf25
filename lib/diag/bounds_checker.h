/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies, fills and prefetches whose range leaves its block (bounds.h).
 */
#ifndef RMM_DIAG_BOUNDS_CHECKER_H
#define RMM_DIAG_BOUNDS_CHECKER_H

#include "diag/checker.h"

/* The range of the call is an error of this kind of its culprit. */
void rmm__bounds_add_finding(rmm_diag_call_t *call, rmm_diag_finding_kind_t kind);

#endif /* RMM_DIAG_BOUNDS_CHECKER_H */
