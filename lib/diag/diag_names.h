/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of the numbers in the side file, for its readers: the daemon and rmm-run print the same
 * words. A number that a newer writer knows is "unknown".
 */
#ifndef RMM_DIAG_DIAG_NAMES_H
#define RMM_DIAG_DIAG_NAMES_H

#include <stdint.h>

/* The event that the fields other_... of a finding describe. */
typedef enum rmm_diag_other {
    RMM_DIAG_OTHER_NONE = 0,
    RMM_DIAG_OTHER_USE =
        1, /* the use or allocation that the call is not ordered after */
    RMM_DIAG_OTHER_FREE = 2 /* the free that came before the call */
} rmm_diag_other_t;

typedef struct rmm_diag_finding_class {
    const char *name;
    rmm_diag_other_t other;
    const char *text; /* see finding_classes.def */
} rmm_diag_finding_class_t;

/* The class and the name of an rmm_diag_finding_kind_t; static. */
const rmm_diag_finding_class_t *rmm__diag_finding_class(uint32_t kind);
const char *rmm__diag_finding_name(uint32_t kind);

/* The name of RMM_DIAG_READS and so on. */
const char *rmm__diag_access_name(uint32_t access);

/* The name of an rmm_diag_confidence_level_t. */
const char *rmm__diag_confidence_name(uint32_t confidence);

/* The name of an rmm_diag_verdict_t. */
const char *rmm__diag_verdict_name(uint32_t verdict);

#endif /* RMM_DIAG_DIAG_NAMES_H */
