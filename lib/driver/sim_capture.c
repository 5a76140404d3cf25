/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stream capture.
 */
#include "driver/sim_internal.h"

int rmm__sim_capture_mode_exchange(int *mode)
{
    int previous = rmm__sim_thread.capture_mode;

    if (*mode < RMM_CAPTURE_MODE_GLOBAL || *mode > RMM_CAPTURE_MODE_RELAXED) {
        return RMM_DRIVER_INVALID_VALUE;
    }
    rmm__sim_thread.capture_mode = *mode;
    *mode = previous;
    return RMM_DRIVER_OK;
}

int rmm__sim_submit_locked(sim_stream_t *stream, sim_task_t *task, bool *capturing_out)
{
    *capturing_out = false;
    return rmm__sim_queue_locked(stream, task, NULL, NULL);
}
