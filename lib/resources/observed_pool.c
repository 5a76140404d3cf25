/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pool of somebody else in /rmm, by figures that its owner sets (rmm/observed_pool.h). A
 * resource stands behind it, which refuses every request and which no caller gets.
 *
 * Invariants:
 *  - the slot has the figures of the last set(); its counters never fall, whatever the framework
 *    does with its own.
 *  - the location contains exactly `at_location`: nothing while it counts the program's memory
 *    from the driver, in which the pool's is (program_memory.h). That is asked at every set(),
 *    because the diagnosis may begin and end it.
 *
 * Locking: `lock` protects all of the pool and its slot. In a forked child it is never taken.
 */
#include <rmm/observed_pool.h>

#include <rmm/device.h>

#include "base/resource_impl.h"
#include "core/assert.h"
#include "core/host_memory.h"
#include "core/mutex.h"
#include "core/options.h"
#include "resources/program_memory.h"

typedef struct held {
    uint64_t bytes, count, reserved;
} held_t;

struct rmm_observed_pool {
    rmm_resource_t base; /* first member */
    rmm_mutex_t lock;
    rmm_observed_pool_figures_t last;
    held_t at_location;
};

/* --- the resource ---------------------------------------------------------------------- */

#define ONLY_SHOWN "an observed pool only shows figures"

static rmm_status_t
refuse_alloc(rmm_resource_t *mr, const rmm_request_t *request, void **ptr_out)
{
    (void)mr;
    (void)request;
    (void)ptr_out;
    return rmm__error(RMM_ERR_UNSUPPORTED, ONLY_SHOWN ": it cannot allocate");
}

static void refuse_free(rmm_resource_t *mr, void *ptr, const rmm_request_t *request)
{
    rmm__resource_refuse_free(mr, ptr, request, ONLY_SHOWN);
}

static rmm_status_t refuse_trim(rmm_resource_t *mr, size_t keep_bytes)
{
    (void)mr;
    (void)keep_bytes;
    return rmm__error(RMM_ERR_UNSUPPORTED, ONLY_SHOWN ": it cannot trim");
}

static void destroy(rmm_resource_t *mr)
{
    rmm_observed_pool_t *self = RMM_CONTAINER_OF(mr, rmm_observed_pool_t, base);

    rmm__resource_fini(mr);
    rmm__mutex_fini(&self->lock);
    rmm__free(self);
}

static const rmm_resource_ops_t ops = {
    .type_name = "observed",
    .alloc = refuse_alloc,
    .dealloc = refuse_free,
    .trim = refuse_trim,
    .destroy = destroy,
    .ready_on_all_streams = false,
    .owns_blocks = true,
};

/* --- figures --------------------------------------------------------------------------- */

/* Of a counter of the framework, which may have begun anew. */
static uint64_t risen(uint64_t now, uint64_t before)
{
    return now >= before ? now - before : now;
}

/* What came in and went out between two sets. */
typedef struct flow {
    uint64_t in, out;
} flow_t;

/* `counted`: what the framework says came in. At least what the rise needs: not every framework
 * counts, and one that begins anew forgets. */
static flow_t flow_of(uint64_t before, uint64_t now, uint64_t counted)
{
    uint64_t rise = now > before ? now - before : 0;
    uint64_t in = counted > rise ? counted : rise;

    return (flow_t){.in = in, .out = in + before - now};
}

typedef struct change {
    rmm_observed_pool_figures_t now;
    uint64_t total_bytes, total_count, oom_count, growth_count; /* by how much */
    uint64_t peak_bytes,
        peak_count; /* highest since the last set, as far as is known */
} change_t;

/* A peak that the framework has not moved is no news: a reset of /rmm may be newer. */
static uint64_t peak_since(uint64_t peak, uint64_t last_peak, uint64_t current)
{
    return peak != last_peak && peak > current ? peak : current;
}

static change_t
change_of(const rmm_observed_pool_t *self, const rmm_observed_pool_figures_t *now)
{
    const rmm_observed_pool_figures_t *last = &self->last;
    change_t change = {
        .now = *now,
        .total_bytes = risen(now->total_bytes, last->total_bytes),
        .total_count = risen(now->total_count, last->total_count),
        .oom_count = risen(now->oom_count, last->oom_count),
        .growth_count = risen(now->growth_count, last->growth_count),
        .peak_bytes = peak_since(now->peak_bytes, last->peak_bytes, now->current_bytes),
        .peak_count = peak_since(now->peak_count, last->peak_count, now->current_count),
    };

    /* a framework may be read between two of its figures */
    if (change.now.reserved_bytes < now->current_bytes) {
        change.now.reserved_bytes = now->current_bytes;
    }
    return change;
}

static void set_slot_locked(rmm_observed_pool_t *self, const change_t *change)
{
    rmm_accounting_t *accounting = &self->base.accounting;
    const rmm_segment_slot_t *slot = accounting->slot;
    const flow_t bytes = flow_of(
        self->last.current_bytes, change->now.current_bytes, change->total_bytes);
    const flow_t count = flow_of(
        self->last.current_count, change->now.current_count, change->total_count);

    RMM_ASSERT_LOCKED(&self->lock);
    rmm__accounting_begin_exclusive(accounting);
    RMM_ACCOUNTING_SET(accounting, reserved_bytes, change->now.reserved_bytes);
    RMM_ACCOUNTING_SET(accounting, current_bytes, change->now.current_bytes);
    RMM_ACCOUNTING_ADD_EXCLUSIVE(accounting, total_bytes, bytes.in);
    RMM_ACCOUNTING_ADD_EXCLUSIVE(accounting, total_count, count.in);
    RMM_ACCOUNTING_ADD_EXCLUSIVE(accounting, freed_count, count.out);
    RMM_ACCOUNTING_ADD_EXCLUSIVE(accounting, oom_count, change->oom_count);
    RMM_ACCOUNTING_ADD_EXCLUSIVE(accounting, growth_count, change->growth_count);
    if (rmm__reset_is_due(&slot->peak_reset_seen, &accounting->requests->peak_reset)) {
        rmm__accounting_obey_reset(accounting);
    }
    RMM_ACCOUNTING_RAISE_EXCLUSIVE(accounting, peak_count, change->peak_count);
    RMM_ACCOUNTING_RAISE_EXCLUSIVE(accounting, peak_bytes, change->peak_bytes);
    RMM_ACCOUNTING_RAISE_EXCLUSIVE(accounting, lifetime_peak_bytes, change->peak_bytes);
    rmm__accounting_end_exclusive(accounting);
}

/* --- the location ---------------------------------------------------------------------- */

/* What is held is never less than what is live. */
static void move_bytes(const rmm_accounting_t *accounting, held_t from, held_t to)
{
    rmm_segment_location_t *record = accounting->record;

    if (to.reserved >= from.reserved) {
        rmm__location_reserve(accounting->location, to.reserved - from.reserved);
    }
    /* modulo 2^64: a fall subtracts. Sequentially consistent: see rmm__location_live() */
    rmm__figure_add(&record->live_count, to.count - from.count);
    atomic_fetch_add(&record->current_bytes, to.bytes - from.bytes);
    if (to.reserved < from.reserved) {
        rmm__location_unreserve(accounting->location, from.reserved - to.reserved);
    }
}

static void raise_location(const rmm_accounting_t *accounting, const change_t *change)
{
    const rmm_location_live_t live = rmm__location_live(accounting->location);

    rmm__location_raise(
        accounting, live.bytes + (change->peak_bytes - change->now.current_bytes),
        live.count + (change->peak_count - change->now.current_count));
}

static void move_location_locked(rmm_observed_pool_t *self, const change_t *change)
{
    rmm_accounting_t *accounting = &self->base.accounting;
    const bool is_counted = !rmm__program_memory_is_counted(self->base.device);
    const held_t from = self->at_location;
    held_t to = {0};
    rmm_segment_stripe_t *stripe;
    flow_t bytes, count;

    RMM_ASSERT_LOCKED(&self->lock);
    if (is_counted) {
        to = (held_t){
            change->now.current_bytes, change->now.current_count,
            change->now.reserved_bytes};
    }
    bytes = flow_of(from.bytes, to.bytes, is_counted ? change->total_bytes : 0);
    count = flow_of(from.count, to.count, is_counted ? change->total_count : 0);
    if (!atomic_load_explicit(&accounting->shares, memory_order_relaxed)) {
        rmm__location_share(accounting);
    }
    stripe = rmm__location_stripe(accounting, rmm__stripe_here());
    rmm__figure_add(&stripe->total_bytes, bytes.in);
    rmm__figure_add(&stripe->total_count, count.in);
    rmm__figure_add(&stripe->freed_count, count.out);
    move_bytes(accounting, from, to);
    self->at_location = to;
    rmm__figure_add(&accounting->record->oom_count, change->oom_count);
    if (is_counted) {
        raise_location(accounting, change);
    }
}

static void set(rmm_observed_pool_t *self, const rmm_observed_pool_figures_t *figures)
{
    rmm__mutex_lock(&self->lock);
    const change_t change = change_of(self, figures);

    move_location_locked(self, &change);
    set_slot_locked(self, &change);
    self->last = change.now;
    rmm__mutex_unlock(&self->lock);
}

/* --- the calls -------------------------------------------------------------------------- */

rmm_status_t rmm_observed_pool_set(
    rmm_observed_pool_t *pool, const rmm_observed_pool_figures_t *figures)
{
    rmm_observed_pool_figures_t copy;
    rmm_status_t status;

    RMM_CHECK_ARG(pool != NULL, "the pool is NULL");
    RMM_CHECK_ARG(figures != NULL, "figures are NULL");
    status = rmm__options_copy(&copy, sizeof(copy), figures, sizeof(copy));
    if (status != RMM_OK) {
        return status;
    }
    if (rmm__resource_is_forked(&pool->base)) {
        return rmm__error(
            RMM_ERR_UNSUPPORTED,
            "observed pool '%s' was created before fork(): the child is not shown",
            pool->base.name);
    }
    set(pool, &copy);
    return RMM_OK;
}

rmm_status_t rmm_observed_pool_create(
    const rmm_observed_pool_options_t *options, rmm_observed_pool_t **pool_out)
{
    rmm_observed_pool_options_t opts;
    rmm_observed_pool_t *self;
    rmm_status_t status;

    RMM_CHECK_ARG(pool_out != NULL, "pool_out is NULL");
    status = rmm__options_copy(&opts, sizeof(opts), options, sizeof(opts));
    if (status != RMM_OK) {
        return status;
    }
    RMM_CHECK_ARG(opts.device >= RMM_DEVICE_HOST, "the device is negative");
    self = rmm__calloc(1, sizeof(*self));
    if (self == NULL) {
        return RMM_ERR_OUT_OF_HOST_MEMORY;
    }
    rmm__mutex_init(&self->lock);
    status = rmm__resource_init(
        &self->base,
        &(rmm_resource_desc_t){
            .ops = &ops,
            .name = opts.name,
            .properties = opts.device < 0 ? RMM_HOST_ACCESSIBLE : RMM_DEVICE_ACCESSIBLE,
            .device = opts.device,
        });
    if (status != RMM_OK) {
        rmm__free(self);
        return status;
    }
    *pool_out = self;
    return RMM_OK;
}

void rmm_observed_pool_destroy(rmm_observed_pool_t *pool)
{
    rmm_observed_pool_figures_t none;

    if (pool == NULL) {
        return;
    }
    if (!rmm__resource_is_forked(&pool->base)) {
        none = pool->last; /* no other thread uses it; totals stay */
        none.current_bytes = 0;
        none.current_count = 0;
        none.reserved_bytes = 0;
        set(pool, &none);
    }
    rmm_resource_release(&pool->base);
}
