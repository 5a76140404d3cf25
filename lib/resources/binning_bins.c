/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bins of a binning resource: which serves a request, and how one is added. The table is
 * never changed: a longer one is made and published; old tables stay until the end, because a
 * request may still read them.
 *
 * Locking: `add_lock` lets one thread at a time make a table. A search takes no lock.
 */
#include "resources/binning_impl.h"

#include <inttypes.h>
#include <stdio.h>

#include <rmm/fixed_size_resource.h>

#include "core/assert.h"
#include "core/host_memory.h"

#define CHUNK_BYTES ((uint64_t)128 * 1024 * 1024)
#define CHUNK_BLOCKS 128u

/* --- search ------------------------------------------------------------------------- */

/* Index of the first bin of at least `bytes`. */
static uint32_t place_in(const bin_table_t *table, uint64_t bytes)
{
    uint32_t low = 0;
    uint32_t high = table != NULL ? table->count : 0;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (table->bins[middle].bytes < bytes) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

rmm_resource_t *rmm__binning_choose(const binning_t *self, const rmm_request_t *request)
{
    const bin_table_t *table = rmm__binning_table(self);
    uint32_t index = place_in(table, request->bytes);

    return table != NULL && index < table->count && request->align <= RMM_ALIGN_DEFAULT
               ? table->bins[index].mr
               : self->base.upstream;
}

/* --- add ---------------------------------------------------------------------------- */

static rmm_status_t make_bin(binning_t *self, uint64_t bytes, rmm_resource_t **out)
{
    rmm_fixed_size_options_t options = RMM_FIXED_SIZE_OPTIONS_INIT;
    uint64_t count = CHUNK_BYTES / bytes;
    char name[64];

    snprintf(name, sizeof(name), "%.40s-%" PRIu64, self->base.name, bytes);
    options.block_bytes = bytes;
    options.blocks_per_chunk = count > CHUNK_BLOCKS ? CHUNK_BLOCKS : count + !count;
    options.name = name;
    return rmm_fixed_size_resource_create(self->base.upstream, &options, out);
}

/* As in RMM, an existing bin stays. On RMM_OK *used_out is whether `bin` was taken. */
static rmm_status_t publish_table(binning_t *self, const bin_t *bin, bool *used_out)
{
    bin_table_t *old = rmm__binning_table(self);
    uint32_t count = old != NULL ? old->count : 0;
    uint32_t index = place_in(old, bin->bytes);
    bin_table_t *fresh;

    RMM_ASSERT_LOCKED(&self->add_lock);
    if (index < count && old->bins[index].bytes == bin->bytes) {
        *used_out = false;
        return RMM_OK;
    }
    fresh = rmm__calloc(1, sizeof(*fresh) + (count + 1) * sizeof(bin_t));
    if (fresh == NULL) {
        return RMM_ERR_OUT_OF_HOST_MEMORY;
    }
    fresh->older = old;
    fresh->count = count + 1;
    for (uint32_t i = 0; i < count; i++) {
        fresh->bins[i + (i >= index)] = old->bins[i];
    }
    fresh->bins[index] = *bin;
    /* release: pairs with rmm__binning_table() */
    atomic_store_explicit(&self->table, fresh, memory_order_release);
    *used_out = true;
    return RMM_OK;
}

rmm_status_t rmm__binning_add(binning_t *self, uint64_t bytes, rmm_resource_t *bin)
{
    bin_t fresh = {
        (bytes + RMM_ALIGN_DEFAULT - 1) / RMM_ALIGN_DEFAULT * RMM_ALIGN_DEFAULT,
        rmm_resource_retain(bin)};
    rmm_status_t status = RMM_OK;
    bool used = false;

    if (bin == NULL) {
        status = make_bin(self, fresh.bytes, &fresh.mr);
    }
    if (status != RMM_OK) {
        return status;
    }
    rmm__mutex_lock(&self->add_lock);
    status = publish_table(self, &fresh, &used);
    rmm__mutex_unlock(&self->add_lock);
    if (!used) {
        rmm_resource_release(fresh.mr);
    }
    return status;
}
