/* SPDX-License-Identifier: Apache-2.0 */
/* An adaptor, or a resource over another one, holds nothing from the driver itself. */
#include "replay/held.h"

bool held_stats(const rmm_resource_t *resource, rmm_stats_t *out)
{
    rmm_stats_t stats = RMM_STATS_INIT, below = RMM_STATS_INIT;
    if (rmm_resource_get_stats(resource, &stats) != RMM_OK) {
        return false;
    }
    while ((resource = rmm_resource_upstream(resource)) != NULL) {
        if (rmm_resource_get_stats(resource, &below) != RMM_OK) {
            return false;
        }
        if (below.reserved_bytes > stats.reserved_bytes) {
            stats.reserved_bytes = below.reserved_bytes;
        }
    }
    *out = stats;
    return true;
}
