/* SPDX-License-Identifier: Apache-2.0 */
/* For programs that publish nothing, and write the daemon's requests to locations themselves. */
#ifndef RMM_TESTS_SIM_LOCATION_REQUESTS_H
#define RMM_TESTS_SIM_LOCATION_REQUESTS_H

#include "sim/pool/pool_harness.h"

#include "publish/accounting.h"

static rmm_control_location_t requests[RMM_SEGMENT_LOCATIONS];

/* A group's set-up. The first resource decides that nothing is published; then the requests
 * are this program's. */
static inline int request_from_here(void **state)
{
    rmm_resource_release(make_cuda());
    rmm__location_requests = requests;
    return 0;
}

#endif /* RMM_TESTS_SIM_LOCATION_REQUESTS_H */
