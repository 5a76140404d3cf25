/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA's table takes the ids of streams from driver/stream_ids.h. The simulated GPU, which knows
 * the true ids, compares them at each stream_key(): a difference is a violation.
 */
#include "driver/sim/control.h"
#include "driver/stream_ids.h"

/* An id that is not the simulated GPU's own says nothing: it runs behind HIP's table then. */
static bool is_known_wrongly(rmm_stream_t handle, const rmm_stream_key_t *key)
{
    uint64_t known = rmm__stream_id_find(handle);

    return key->capture_id != 0
               ? (known & RMM_STREAM_ID_NEVER_CAPTURES) != 0
               : known != 0 && (known & RMM_STREAM_ID_MADE_UP) == 0 &&
                     (known & ~RMM_STREAM_ID_NEVER_CAPTURES) != key->stream_id;
}

__attribute__((constructor)) static void compare_ids(void)
{
    rmm__sim_is_known_wrongly = is_known_wrongly;
}
