/* SPDX-License-Identifier: Apache-2.0 */
/*
 * <rmm/sim.h>: the calls that a test makes as its program would call CUDA, and those with
 * which it looks at the simulator and steers it. They do not count for the fault plan,
 * which is for the library's calls.
 */
#include <rmm/sim.h>

#include <stdlib.h>
#include <string.h>

#include "driver/sim/internal.h"

static bool is_wanted(void)
{
    const char *name = getenv("RMM_DRIVER");

    return name != NULL && strcmp(name, "sim") == 0;
}

/* Each function begins so: 801 where the simulated GPU is not in use. The first call opens it, if
 * librmm-c has not. In a forked child, where librmm-c refuses the driver, a test may still look at
 * it. So may one whose driver is HIP's over the simulated GPU (tests/hip). */
static int ready(void)
{
    rmm_status_t status;

    if (!rmm__sim_is_open() && is_wanted()) {
        (void)rmm__sim_open(&status);
    }
    return rmm__sim_is_open() ? RMM_DRIVER_OK : RMM_DRIVER_NOT_SUPPORTED;
}

bool rmm_sim_active(void)
{
    return ready() == RMM_DRIVER_OK;
}

/* ---- work ---- */

int rmm_sim_launch(
    const char *name, rmm_sim_kernel_fn fn, rmm_stream_t stream,
    const void *const *params, const size_t *param_bytes, size_t param_count)
{
    int error = ready();

    return error != RMM_DRIVER_OK
               ? error
               : rmm__sim_launch(name, fn, stream, params, param_bytes, param_count);
}

int rmm_sim_memcpy_async(void *dst, const void *src, size_t bytes, rmm_stream_t stream)
{
    int error = ready();

    return error != RMM_DRIVER_OK ? error
                                  : rmm__sim_memcpy_direct(dst, src, bytes, stream);
}

int rmm_sim_memset_async(void *dst, int value, size_t bytes, rmm_stream_t stream)
{
    int error = ready();

    return error != RMM_DRIVER_OK ? error
                                  : rmm__sim_memset_async(dst, value, bytes, stream);
}

/* ---- order ---- */

/* A simulated event is the driver's event. */
static rmm_driver_event_t driver_event(rmm_sim_event_t event)
{
    return (rmm_driver_event_t)(void *)event;
}

int rmm_sim_event_create(rmm_sim_event_t *out)
{
    int error = ready();
    rmm_driver_event_t event;

    if (error == RMM_DRIVER_OK && out == NULL) {
        error = RMM_DRIVER_INVALID_VALUE;
    }
    if (error == RMM_DRIVER_OK) {
        error = rmm__sim_event_create(&event);
    }
    if (error == RMM_DRIVER_OK) {
        *out = (rmm_sim_event_t)(void *)event;
    }
    return error;
}

int rmm_sim_event_destroy(rmm_sim_event_t event)
{
    int error = ready();

    return error != RMM_DRIVER_OK ? error : rmm__sim_event_destroy(driver_event(event));
}

int rmm_sim_event_record(rmm_sim_event_t event, rmm_stream_t stream)
{
    int error = ready();

    return error != RMM_DRIVER_OK ? error
                                  : rmm__sim_event_record(driver_event(event), stream);
}

int rmm_sim_stream_wait_event(rmm_stream_t stream, rmm_sim_event_t event)
{
    int error = ready();

    return error != RMM_DRIVER_OK
               ? error
               : rmm__sim_stream_wait_event(stream, driver_event(event));
}

int rmm_sim_device_synchronize(void)
{
    int error = ready();

    return error != RMM_DRIVER_OK ? error : rmm__sim_device_synchronize();
}

/* ---- capture ---- */

int rmm_sim_begin_capture(rmm_stream_t stream, int mode)
{
    int error = ready();

    return error != RMM_DRIVER_OK ? error : rmm__sim_begin_capture(stream, mode);
}

int rmm_sim_end_capture(rmm_stream_t stream, rmm_sim_graph_t *graph_out)
{
    int error = ready();

    if (error == RMM_DRIVER_OK && graph_out == NULL) {
        error = RMM_DRIVER_INVALID_VALUE;
    }
    return error != RMM_DRIVER_OK ? error : rmm__sim_end_capture(stream, graph_out);
}

int rmm_sim_graph_launch(rmm_sim_graph_t graph, rmm_stream_t stream)
{
    int error = ready();

    return error != RMM_DRIVER_OK ? error : rmm__sim_graph_launch(graph, stream);
}

int rmm_sim_graph_destroy(rmm_sim_graph_t graph)
{
    int error = ready();

    return error != RMM_DRIVER_OK ? error : rmm__sim_graph_destroy(graph);
}

/* ---- for tests ---- */

void rmm_sim_run_promptly(void)
{
    if (rmm_sim_active()) {
        rmm__mutex_lock(&rmm__sim_lock);
        rmm__sim_run_promptly_locked();
        rmm__mutex_unlock(&rmm__sim_lock);
    }
}

bool rmm_sim_fail(const char *plan)
{
    const char *wrong;

    return rmm_sim_active() && rmm__sim_fault_set(plan, &wrong);
}

uint64_t rmm_sim_violations(void)
{
    return rmm__sim_violation_count();
}

uint64_t rmm_sim_allocated_bytes(int device)
{
    uint64_t bytes;

    if (!rmm_sim_active() || device < 0 || device >= rmm__sim_device_count()) {
        return 0;
    }
    rmm__mutex_lock(&rmm__sim_lock);
    bytes = rmm__sim_memory_allocated_locked(device);
    rmm__mutex_unlock(&rmm__sim_lock);
    return bytes;
}
