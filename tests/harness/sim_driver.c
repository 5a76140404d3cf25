/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated GPU of a test program, for the stand-in of HIP's library (tests/hip), which
 * the program loads at run time: both then see the same devices, and what a test does by
 * <rmm/sim.h> is seen by a library that runs over HIP.
 */
#include "driver/driver.h"

const rmm_driver_t *rmm_test_sim_driver(rmm_status_t *status_out);

__attribute__((visibility("default"))) const rmm_driver_t *
rmm_test_sim_driver(rmm_status_t *status_out)
{
    return rmm__driver_sim_open(status_out);
}
