/* SPDX-License-Identifier: Apache-2.0 */
/* Ids of streams; see stream_names.h. */
#include "diag/stream_names.h"

#include "core/hash.h"
#include "diag/stream_key.h"

static uint32_t place_of(uint64_t key)
{
    return (uint32_t)(rmm__hash(key) >> 32) % RMM_STREAM_NAMES;
}

void rmm__stream_names_put(rmm_stream_names_t *names, rmm_stream_t stream, uint64_t id)
{
    uint64_t key = rmm__stream_key(stream);
    uint32_t place = place_of(key);

    if (id != UINT64_MAX) {
        names->at[place].key = key;
        names->at[place].id = id;
    } else if (names->at[place].key == key) {
        names->at[place].key = 0;
    }
}

uint64_t rmm__stream_names_find(const rmm_stream_names_t *names, rmm_stream_t stream)
{
    uint64_t key = rmm__stream_key(stream);
    uint32_t place = place_of(key);

    if (key == RMM_STREAM_KEY_LEGACY) {
        return 0;
    }
    if (names->at[place].key == key) {
        return names->at[place].id;
    }
    return rmm_stream_is_per_thread_default(stream) ? UINT64_MAX
                                                    : (uint64_t)(uintptr_t)stream;
}
