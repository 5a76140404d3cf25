/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of the numbers in the side file, for its readers: the daemon and rmm-run print the same
 * words. A number that a newer writer knows is "unknown".
 */
#ifndef RMM_DIAG_DIAG_NAMES_H
#define RMM_DIAG_DIAG_NAMES_H

#include <stdint.h>

/* Of an rmm_diag_finding_kind_t. */
const char *rmm_diag_finding_name(uint32_t kind);

/* Of RMM_DIAG_READS and so on. */
const char *rmm_diag_access_name(uint32_t access);

/* Of an rmm_diag_confidence_level_t. */
const char *rmm_diag_confidence_name(uint32_t confidence);

/* Of an rmm_diag_verdict_t. */
const char *rmm_diag_verdict_name(uint32_t verdict);

#endif /* RMM_DIAG_DIAG_NAMES_H */
