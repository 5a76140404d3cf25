/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pool from its creation to its end: what its engine calls (accounting, memory from
 * upstream), and the making and ending of both.
 *
 * Locking: the accounting is written under the engine's lock, by plain stores. Memory from
 * upstream is requested and given back without it.
 */
#include "resources/pool_resource.h"

#include <inttypes.h>

#include "base/count.h"
#include "base/diag_attach.h"
#include "base/limits.h"
#include "core/host_memory.h"

#define NO_MAXIMUM (UINT64_MAX / RMM_BLOCKS_UNIT * RMM_BLOCKS_UNIT)

/* --- accounting, under the engine's lock --------------------------------------------- */

/* A marked block is a user's. So it is counted down as it was counted up, whoever frees it. */
static void count_allocated(
    void *owner, const engine_alloc_t *alloc, uint64_t padding,
    const engine_figures_t *figures)
{
    pool_resource_t *self = owner;
    rmm_accounting_t *accounting = &self->base.accounting;

    rmm__count_user_alloc_locked(&self->base, alloc->is_marked, alloc->bytes, padding);
    rmm__accounting_begin_exclusive(accounting);
    rmm__accounting_alloc_exclusive(accounting, alloc->bytes, padding);
    RMM_ACCOUNTING_SET(accounting, largest_free_bytes, figures->largest_free_bytes);
    rmm__accounting_end_exclusive(accounting);
}

static void count_freed(
    void *owner, const engine_free_t *freed, uint64_t padding,
    const engine_figures_t *figures, bool is_marked)
{
    pool_resource_t *self = owner;
    rmm_accounting_t *accounting = &self->base.accounting;

    rmm__count_user_free_locked(&self->base, is_marked, freed->bytes, padding);
    rmm__accounting_begin_exclusive(accounting);
    rmm__accounting_free_exclusive(accounting, freed->bytes, padding);
    RMM_ACCOUNTING_SET(accounting, largest_free_bytes, figures->largest_free_bytes);
    rmm__accounting_end_exclusive(accounting);
}

/* A block that is never handed out again is neither live nor free. */
static void count_lost(void *owner, uint64_t bytes)
{
    pool_resource_t *self = owner;

    rmm__figure_sub(&self->base.accounting.slot->free_bytes, bytes);
}

/* Readers subtract what is live from free_bytes: rmm__accounting_free_is_rest(). */
static void count_figures(void *owner, const engine_figures_t *figures)
{
    pool_resource_t *self = owner;
    rmm_accounting_t *accounting = &self->base.accounting;
    uint64_t reserved_before = RMM_ACCOUNTING_GET(accounting, reserved_bytes);
    uint64_t asleep_before = RMM_ACCOUNTING_GET(accounting, asleep_bytes);

    rmm__accounting_begin_exclusive(accounting);
    RMM_ACCOUNTING_SET(
        accounting, free_bytes,
        figures->free_bytes + RMM_ACCOUNTING_GET(accounting, current_bytes) +
            RMM_ACCOUNTING_GET(accounting, padding_bytes));
    RMM_ACCOUNTING_SET(accounting, largest_free_bytes, figures->largest_free_bytes);
    RMM_ACCOUNTING_SET(accounting, reserved_bytes, figures->reserved_bytes);
    RMM_ACCOUNTING_SET(accounting, growth_count, figures->growth_count);
    RMM_ACCOUNTING_SET(accounting, sync_count, figures->sync_count);
    RMM_ACCOUNTING_SET(accounting, cross_stream_count, figures->cross_stream_count);
    RMM_ACCOUNTING_SET(accounting, asleep_bytes, figures->asleep_bytes);
    RMM_ACCOUNTING_SET(accounting, sleep_count, figures->sleep_count);
    RMM_ACCOUNTING_SET(accounting, wake_count, figures->wake_count);
    rmm__accounting_end_exclusive(accounting);
    if (self->is_range) { /* else upstream counts it */
        rmm__location_reserve(
            accounting->location, figures->reserved_bytes - reserved_before);
        rmm__location_asleep(
            accounting->location, figures->asleep_bytes - asleep_before);
    }
}

/* Called for a range only. An upstream checks the limits of its own memory. */
static rmm_status_t begin_growth(void *owner, uint64_t bytes, uint64_t *promised_out)
{
    pool_resource_t *self = owner;

    return rmm__growth_begin(&self->base, bytes, promised_out);
}

static void end_growth(void *owner, uint64_t promised)
{
    const pool_resource_t *self = owner;

    rmm__growth_end(&self->base, promised);
}

static const engine_owner_t count_ops = {
    .allocated = count_allocated,
    .freed = count_freed,
    .lost = count_lost,
    .figures = count_figures,
    .begin_growth = begin_growth,
    .end_growth = end_growth,
};

/* --- the end ------------------------------------------------------------------------- */

void rmm__pool_report_left(void *owner, void *ptr, uint64_t bytes)
{
    const pool_resource_t *self = owner;

    rmm__diag_on_left(
        self->base.instance_id, self->base.device, ptr, bytes, RMM_STREAM_LEGACY);
}

void rmm__pool_fini(pool_resource_t *self, bool is_used)
{
    if (self->is_range) {
        void *range;
        uint64_t bytes = rmm__engine_addresses(self->engine, &range);

        rmm__diag_on_gone(range, bytes); /* its addresses; chunks go one by one */
    }
    if (!rmm__engine_close(self->engine, is_used, rmm__pool_report_left)) {
        rmm__pool_leave_memory(&self->base);
    }
    rmm__pool_close_stream(self);
    rmm__pool_log_changes(self);
    if (self->is_range) {
        rmm_accounting_t *accounting = &self->base.accounting;

        rmm__location_unreserve(
            accounting->location, RMM_ACCOUNTING_GET(accounting, reserved_bytes));
        rmm__location_asleep(
            accounting->location, -RMM_ACCOUNTING_GET(accounting, asleep_bytes));
    }
    rmm__pool_close_host(self);
    rmm__resource_fini(&self->base);
    rmm__engine_destroy(self->engine);
}

void rmm__pool_destroy(rmm_resource_t *mr)
{
    rmm__pool_fini(pool_from_base(mr), false);
    rmm__free(pool_from_base(mr));
}

/* --- create -------------------------------------------------------------------------- */

static rmm_status_t
init_resource(pool_resource_t *self, rmm_resource_t *upstream, const pool_plan_t *plan)
{
    rmm_status_t status = rmm__resource_init(
        &self->base,
        &(rmm_resource_desc_t){
            .ops = plan->ops,
            .name = plan->name,
            .upstream = upstream,
            .properties = upstream != NULL ? rmm_resource_properties(upstream)
                                           : RMM_DEVICE_ACCESSIBLE,
            .device = self->base.device,
        });

    if (status == RMM_OK) {
        rmm__accounting_free_is_rest(&self->base.accounting);
        if (plan->engine.maximum_bytes < NO_MAXIMUM) {
            RMM_ACCOUNTING_SET(
                &self->base.accounting, maximum_bytes, plan->engine.maximum_bytes);
        }
    }
    return status;
}

/*
 * The units behind every block, before the resource takes its first memory. Where a tool
 * checks each access (base/annotate.h), an access past the end of a block must not hit the
 * next one; in a range it checks none. Where a diagnosis wants guards they are there.
 */
static uint32_t choose_gap_units(int device, bool is_range)
{
    bool is_annotated = !is_range && rmm__annotate_open(device);
    bool wants_guards = rmm__diag_wants_guards();

    return is_annotated || wants_guards ? 1 : 0;
}

/* Sizes with the gaps; as they are where a block or a chunk would become too large. */
static void add_gaps(pool_resource_t *self, engine_plan_t *plan)
{
    const uint32_t gap_units = choose_gap_units(self->base.device, plan->is_range);
    const uint64_t before = plan->block_units * RMM_BLOCKS_UNIT;
    const uint64_t after = before + gap_units * RMM_BLOCKS_UNIT;

    self->round_bytes = RMM_BLOCKS_UNIT - 1;
    if (before != 0) {
        const uint64_t count = plan->growth_bytes / before;

        if (after > ENGINE_BLOCK_BYTES || count > ENGINE_RUN_BYTES / after) {
            return;
        }
        plan->block_units += gap_units;
        plan->growth_bytes = count * after;
    }
    self->gap_units = gap_units;
    self->round_bytes += gap_units * RMM_BLOCKS_UNIT;
}

/* All addresses, mapped or not: none is anybody else's. */
static void report_range(const pool_resource_t *self)
{
    if (self->is_range && rmm__diag_is_attached()) {
        void *range;
        uint64_t bytes = rmm__engine_addresses(self->engine, &range);

        rmm__diag_report_pool(range, bytes);
    }
}

static rmm_status_t
open_pool(pool_resource_t *self, rmm_resource_t *upstream, const pool_plan_t *plan)
{
    const engine_plan_t *engine_plan = &plan->engine;
    rmm_status_t status = rmm__engine_create(engine_plan, &self->engine);

    if (status != RMM_OK) {
        return status;
    }
    self->maximum_bytes = engine_plan->maximum_bytes;
    self->chunk_bytes = engine_plan->growth_bytes;
    self->block_units = engine_plan->block_units;
    self->is_range = engine_plan->is_range;
    self->may_quarantine = rmm__diag_may_quarantine();
    status = init_resource(self, upstream, plan);
    if (status != RMM_OK) {
        rmm__engine_destroy(self->engine);
        return status;
    }
    status = rmm__pool_open_stream(self);
    if (status == RMM_OK) {
        status = rmm__engine_open(self->engine, engine_plan);
    }
    if (status != RMM_OK) {
        rmm__pool_fini(self, false);
        return status;
    }
    report_range(self);
    rmm__pool_log_changes(self);
    return RMM_OK;
}

rmm_status_t
rmm__pool_init(pool_resource_t *self, rmm_resource_t *upstream, const pool_plan_t *plan)
{
    pool_plan_t complete = *plan;
    rmm_status_t status = RMM_OK;

    if (upstream == NULL) {
        status = rmm__driver_here(&self->driver, &self->base.device);
    } else if (upstream->device < 0) {
        status = rmm__error(
            RMM_ERR_UNSUPPORTED,
            "the upstream of %s must belong to a device, and '%s' (%s) belongs to "
            "none: use pinned or managed memory",
            plan->ops->type_name, upstream->name, rmm_resource_type(upstream));
    } else {
        self->driver = rmm__driver(&status);
        self->base.device = upstream->device;
    }
    if (status != RMM_OK) {
        return status;
    }
    complete.engine.driver = self->driver;
    complete.engine.device = self->base.device;
    complete.engine.owner = self;
    complete.engine.owner_ops = plan->owner_ops != NULL ? plan->owner_ops : &count_ops;
    complete.engine.upstream = upstream != NULL ? &rmm__pool_upstream : NULL;
    complete.engine.is_shared = plan->owner_ops != NULL;
    add_gaps(self, &complete.engine);
    return open_pool(self, upstream, &complete);
}

rmm_status_t rmm__pool_create(
    rmm_resource_t *upstream, const pool_plan_t *plan, rmm_resource_t **out)
{
    pool_resource_t *self = rmm__calloc(1, sizeof(*self));
    rmm_status_t status;

    if (self == NULL) {
        return RMM_ERR_OUT_OF_HOST_MEMORY;
    }
    status = rmm__pool_init(self, upstream, plan);
    if (status != RMM_OK) {
        rmm__free(self);
        return status;
    }
    *out = &self->base;
    return RMM_OK;
}
