/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests by size. Which bin serves one is in binning_bins.c.
 *
 * Where a block came from is remembered, for two reasons: a bin added later must not get
 * a block of another one, and a wrong free is refused before a bin sees it. Requests of no
 * bytes cannot be distinguished, so all of them go to one resource, which the first chooses.
 *
 * Locking: a shard's lock protects its map. No bin is called under a lock.
 */
#include <rmm/binning_resource.h>

#include <inttypes.h>

#include "base/diag_attach.h"
#include "core/assert.h"
#include "core/hash.h"
#include "core/host_memory.h"
#include "driver/driver.h"
#include "resources/binning_impl.h"

#define EXPONENT_MIN 8u /* 256 bytes, to which sizes are rounded up */
#define EXPONENT_MAX 31u

static binning_t *from_base(rmm_resource_t *mr)
{
    return RMM_CONTAINER_OF(mr, binning_t, base);
}

/* Not the bits that the map itself uses. */
static shard_t *shard_of(binning_t *self, const void *ptr)
{
    return &self->shards[rmm__hash((uintptr_t)ptr >> 8) >> 60];
}

/* --- allocate and free -------------------------------------------------------------- */

/* A block that is in the map was freed at its bin, which gave it out again. */
RMM_COLD static void forget_stale(binning_t *self, const rmm_pointer_map_entry_t *stale)
{
    rmm__accounting_free_shared(&self->base.accounting, stale->bytes);
    rmm__resource_warn_stale(&self->base, stale->ptr, stale->bytes);
}

static bool remember(binning_t *self, const rmm_pointer_map_entry_t *entry)
{
    shard_t *shard = shard_of(self, entry->ptr);
    rmm_pointer_map_entry_t stale;
    bool is_stale = false;
    bool reserved;

    rmm__mutex_lock(&shard->lock);
    reserved = rmm__pointer_map_reserve(&shard->blocks);
    if (reserved) {
        is_stale = rmm__pointer_map_replace_entry(&shard->blocks, entry, &stale);
    }
    rmm__mutex_unlock(&shard->lock);
    if (is_stale) {
        forget_stale(self, &stale);
    }
    return reserved;
}

static rmm_status_t
take_from(binning_t *self, const rmm_request_t *request, void **ptr_out)
{
    rmm_resource_t *owner = rmm__binning_choose(self, request);
    rmm_pointer_map_entry_t entry = {NULL, request->bytes, owner};
    rmm_status_t status = rmm__resource_alloc(owner, request, &entry.ptr);

    if (status != RMM_OK) {
        if (status == RMM_ERR_OUT_OF_MEMORY) {
            rmm__accounting_oom(&self->base.accounting);
        }
        return status;
    }
    if (entry.ptr == NULL) {
        return rmm__resource_refuse_null(&self->base, owner, request);
    }
    if (!remember(self, &entry)) {
        rmm__resource_dealloc(owner, entry.ptr, request);
        return RMM_ERR_OUT_OF_HOST_MEMORY;
    }
    *ptr_out = entry.ptr;
    return RMM_OK;
}

/* As for any request when the first of no bytes comes: the smallest bin, or upstream. */
static rmm_resource_t *owner_of_empty(binning_t *self, const rmm_request_t *request)
{
    rmm_resource_t *owner = NULL;
    rmm_resource_t *chosen = rmm__binning_choose(self, request);

    /* release: another thread uses what was added to the table; acquire: pairs with it */
    return atomic_compare_exchange_strong_explicit(
               &self->empty_owner, &owner, chosen, memory_order_release,
               memory_order_acquire)
               ? chosen
               : owner;
}

static rmm_status_t
binning_alloc(rmm_resource_t *mr, const rmm_request_t *request, void **ptr_out)
{
    binning_t *self = from_base(mr);
    void *ptr = NULL;
    rmm_status_t status =
        request->bytes != 0
            ? take_from(self, request, &ptr)
            : rmm__resource_alloc(owner_of_empty(self, request), request, &ptr);

    if (status == RMM_OK) {
        rmm__accounting_alloc_shared(&mr->accounting, request->bytes);
        *ptr_out = ptr;
    }
    return status;
}

/* NULL if the block was taken out of the map, else why it cannot be freed. */
static const char *
forget(binning_t *self, void *ptr, size_t bytes, rmm_pointer_map_entry_t *entry)
{
    shard_t *shard = shard_of(self, ptr);
    const char *refusal = NULL;

    rmm__mutex_lock(&shard->lock);
    if (rmm__pointer_map_take(&shard->blocks, ptr, bytes, entry) == NULL) {
        refusal = "not allocated here, or freed already";
    } else if (entry->bytes != bytes) {
        refusal = "it was allocated with another size";
    }
    rmm__mutex_unlock(&shard->lock);
    return refusal;
}

static void binning_dealloc(rmm_resource_t *mr, void *ptr, const rmm_request_t *request)
{
    rmm_pointer_map_entry_t entry;
    const char *refusal;

    if (ptr == NULL) {
        rmm__accounting_free_shared(&mr->accounting, 0);
        rmm__resource_dealloc(owner_of_empty(from_base(mr), request), NULL, request);
        return;
    }
    refusal = forget(from_base(mr), ptr, request->bytes, &entry);
    if (refusal != NULL) {
        rmm__resource_refuse_free(mr, ptr, request, refusal);
        return;
    }
    rmm__accounting_free_shared(&mr->accounting, request->bytes);
    rmm__resource_dealloc(entry.owner, ptr, request);
}

static uint64_t held_by(const rmm_resource_t *mr)
{
    return rmm__figure_get(&mr->accounting.slot->reserved_bytes);
}

/* By the bins but `index`. A bin that is the upstream holds the memory of the others: it is no
 * further memory for them, nor are they for it. */
static uint64_t
held_by_others(const bin_table_t *table, const rmm_resource_t *upstream, uint32_t index)
{
    uint64_t bytes = 0;

    if (table->bins[index].mr == upstream) {
        return 0;
    }
    for (uint32_t i = 0; i < table->count; i++) {
        if (i != index && table->bins[i].mr != upstream) {
            bytes += held_by(table->bins[i].mr);
        }
    }
    return bytes;
}

/* Each bin may keep what the others leave of the whole. */
static rmm_status_t binning_trim(rmm_resource_t *mr, size_t keep_bytes)
{
    const bin_table_t *table = rmm__binning_table(from_base(mr));
    uint32_t count = table != NULL ? table->count : 0;

    for (uint32_t i = 0; i < count; i++) {
        uint64_t others = held_by_others(table, mr->upstream, i);
        rmm_status_t status = rmm_resource_trim(
            table->bins[i].mr, keep_bytes > others ? keep_bytes - (size_t)others : 0);
        if (status != RMM_OK && status != RMM_ERR_UNSUPPORTED) {
            return status;
        }
    }
    return RMM_OK;
}

/* --- the end ------------------------------------------------------------------------ */

static void free_outstanding(binning_t *self, shard_t *shard)
{
    const rmm_resource_t *mr = &self->base;
    rmm_pointer_map_entry_t entry;
    rmm_status_t status;
    const rmm_driver_t *driver =
        shard->blocks.count != 0 && mr->device >= 0 ? rmm__driver(&status) : NULL;
    size_t from = 0;

    if (driver != NULL) {
        /* work may still be queued, on streams that are not known here */
        (void)rmm__driver_wait_all_devices(driver, mr->device);
    }
    while (rmm__pointer_map_any(&shard->blocks, &from, &entry)) {
        rmm_request_t request = {
            entry.bytes, RMM_ALIGN_DEFAULT, RMM_STREAM_LEGACY, .user = true};

        rmm__pointer_map_erase(&shard->blocks, entry.ptr);
        rmm__diag_on_left(
            mr->instance_id, mr->device, entry.ptr, entry.bytes, RMM_STREAM_LEGACY);
        rmm__resource_dealloc(entry.owner, entry.ptr, &request);
    }
}

/* Allocations of no bytes that are still out, also those that an adaptor passed on: only
 * the accounting knows them. A bin of the program's lives on, and must not count them. */
static void free_outstanding_empty(binning_t *self)
{
    const rmm_request_t request = {
        0, RMM_ALIGN_DEFAULT, RMM_STREAM_LEGACY, .user = true};
    rmm_stats_t stats = RMM_STATS_INIT;

    rmm__accounting_stats(&self->base.accounting, &stats);
    for (uint32_t i = 0; i < BINNING_SHARDS; i++) {
        stats.current_count -= self->shards[i].blocks.count;
    }
    for (uint64_t i = 0; i < stats.current_count; i++) {
        rmm__resource_dealloc(owner_of_empty(self, &request), NULL, &request);
    }
}

static void binning_destroy(rmm_resource_t *mr)
{
    binning_t *self = from_base(mr);
    bin_table_t *table = rmm__binning_table(self);

    free_outstanding_empty(self);
    for (uint32_t i = 0; i < BINNING_SHARDS; i++) {
        free_outstanding(self, &self->shards[i]);
        rmm__pointer_map_fini(&self->shards[i].blocks);
        rmm__mutex_fini(&self->shards[i].lock);
    }
    for (uint32_t i = 0; table != NULL && i < table->count; i++) {
        rmm_resource_release(table->bins[i].mr);
    }
    while (table != NULL) {
        bin_table_t *older = table->older;

        rmm__free(table);
        table = older;
    }
    rmm__mutex_fini(&self->add_lock);
    rmm__resource_fini(mr);
    rmm__free(self);
}

static const rmm_resource_ops_t binning_ops = {
    .type_name = "binning",
    .alloc = binning_alloc,
    .dealloc = binning_dealloc,
    .trim = binning_trim,
    .destroy = binning_destroy,
    .ready_on_all_streams = false,
    .owns_blocks = false,
};

/* --- public ------------------------------------------------------------------------- */

static bool is_built_on(rmm_resource_t *bin, const rmm_resource_t *mr);

static bool has_bin_built_on(rmm_resource_t *bin, const rmm_resource_t *mr)
{
    const bin_table_t *table =
        atomic_load_explicit(&bin->ops, memory_order_relaxed) == &binning_ops
            ? rmm__binning_table(from_base(bin))
            : NULL;
    bool found = false;

    for (uint32_t i = 0; table != NULL && i < table->count && !found; i++) {
        found = is_built_on(table->bins[i].mr, mr);
    }
    return found;
}

/* As a bin of `mr` it would take memory from itself, and keep itself alive. */
static bool is_built_on(rmm_resource_t *bin, const rmm_resource_t *mr)
{
    while (bin != NULL && bin != mr && !has_bin_built_on(bin, mr)) {
        bin = bin->upstream;
    }
    return bin != NULL;
}

rmm_status_t
rmm_binning_resource_add_bin(rmm_resource_t *mr, size_t bytes, rmm_resource_t *bin)
{
    RMM_CHECK_ARG(mr != NULL, "the resource is NULL");
    RMM_CHECK_ARG(
        atomic_load_explicit(&mr->ops, memory_order_relaxed) == &binning_ops,
        "the resource is not a binning resource");
    RMM_CHECK_ARG(
        bytes != 0 && bytes <= PTRDIFF_MAX, "the bin's size is 0 or above PTRDIFF_MAX");
    RMM_CHECK_ARG(!is_built_on(bin, mr), "the bin is built on the resource itself");
    RMM_CHECK_ARG(
        bin == NULL || (bin->device == mr->device &&
                        bin->accounting.location == mr->accounting.location),
        "the bin's memory belongs to another device than upstream's, or to the host");
    return rmm__binning_add(from_base(mr), bytes, bin);
}

/* --- create ------------------------------------------------------------------------- */

static rmm_status_t check_options(rmm_binning_options_t *options)
{
    uint32_t low = options->min_exponent;
    uint32_t high = options->max_exponent;

    if (high != 0 && low == 0) {
        low = EXPONENT_MIN;
    }
    if ((high != 0 || low != 0) &&
        (low < EXPONENT_MIN || low > high || high > EXPONENT_MAX)) {
        return rmm__error(
            RMM_ERR_INVALID_ARGUMENT,
            "exponents %" PRIu32 " to %" PRIu32 " are not a range within %u to %u", low,
            high, EXPONENT_MIN, EXPONENT_MAX);
    }
    options->min_exponent = low;
    return RMM_OK;
}

static rmm_status_t create(
    rmm_resource_t *upstream, const rmm_binning_options_t *options,
    rmm_resource_t **out)
{
    binning_t *self = rmm__calloc(1, sizeof(*self));
    rmm_status_t status;

    if (self == NULL) {
        return RMM_ERR_OUT_OF_HOST_MEMORY;
    }
    status =
        rmm__resource_init_over(&self->base, &binning_ops, options->name, upstream);
    if (status != RMM_OK) {
        rmm__free(self);
        return status;
    }
    rmm__mutex_init(&self->add_lock);
    for (uint32_t i = 0; i < BINNING_SHARDS; i++) {
        rmm__mutex_init(&self->shards[i].lock);
    }
    for (uint32_t e = options->min_exponent; e != 0 && e <= options->max_exponent;
         e++) {
        status = rmm__binning_add(self, UINT64_C(1) << e, NULL);
        if (status != RMM_OK) {
            binning_destroy(&self->base);
            return status;
        }
    }
    *out = &self->base;
    return RMM_OK;
}

rmm_status_t rmm_binning_resource_create(
    rmm_resource_t *upstream, const rmm_binning_options_t *options,
    rmm_resource_t **out)
{
    rmm_binning_options_t opts;
    rmm_status_t status = RMM_OPTIONS_OVER(upstream, out, &opts, options);

    if (status == RMM_OK) {
        status = check_options(&opts);
    }
    return status == RMM_OK ? create(upstream, &opts, out) : status;
}
