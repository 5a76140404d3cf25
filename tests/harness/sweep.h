/* SPDX-License-Identifier: Apache-2.0 */
/* A sweep of a runtime directory from its begin to its end. */
#ifndef RMM_TESTS_HARNESS_SWEEP_H
#define RMM_TESTS_HARNESS_SWEEP_H

#include "segment/runtime_dir.h"

/* Returns the number of files removed. */
static inline int sweep_directory(int dirfd, long only_uid)
{
    rmm_sweep_t *sweep = rmm__sweep_begin(dirfd, only_uid);

    if (sweep == NULL) {
        return 0;
    }
    while (rmm__sweep_step(sweep, 64)) {
    }
    return rmm__sweep_end(sweep);
}

#endif /* RMM_TESTS_HARNESS_SWEEP_H */
