/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Begins and ends a call of the table.
 */
#include "driver/sim/internal.h"

int rmm__sim_enter(const char *call)
{
    if (rmm__sim_thread.in_kernel) { /* this thread holds the lock */
        rmm__sim_violation_locked("%s: called from inside a kernel", call);
        return SIM_ERROR_NOT_PERMITTED;
    }
    rmm__mutex_lock(&rmm__sim_lock);
    return RMM_DRIVER_OK;
}

void rmm__sim_leave(void)
{
    rmm__sim_pump_locked();
    rmm__mutex_unlock(&rmm__sim_lock);
}

void *rmm__sim_enter_object(
    const sim_table_t *table, const void *handle, const char *call, int *error)
{
    void *object;

    *error = rmm__sim_enter(call);
    if (*error != RMM_DRIVER_OK) {
        return NULL;
    }
    object = rmm__sim_find_locked(table, handle, call, error);
    if (object == NULL) {
        rmm__sim_leave();
    }
    return object;
}
