/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses who verifies: the simulated GPU's kernels, or a real one's where they were
 * built (that needs nvcc).
 */
#include "replay/verify.h"

#include <stddef.h>
#include <string.h>

#include <rmm/device.h>

#include "replay/simulated.h"

const verify_backend_t *verify_backend_select(void)
{
    if (simulated() != NULL) {
        return &verify_sim_backend;
    }
#ifdef RMM_REPLAY_CUDA
    if (strcmp(rmm_driver_name(), "cuda") == 0) {
        return &verify_cuda_backend;
    }
#endif
    return NULL;
}
