/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pool: options and accounting around an engine (pool/engine.h). Its accounting is
 * written under the engine's lock, by plain stores.
 */
#include "resources/pool_resource.h"

#include <rmm/cuda_resource.h>
#include <rmm/pool_resource.h>

#include <inttypes.h>
#include <string.h>

#include "base/diag_attach.h"
#include "base/limits.h"
#include "core/host_memory.h"
#include "core/options.h"
#include "log/log.h"

/* --- accounting, under the engine's lock --------------------------------------------- */

static void count_taken(
    void *owner, const engine_want_t *want, uint64_t padding,
    const engine_figures_t *figures)
{
    pool_resource_t *self = owner;
    rmm_accounting_t *accounting = &self->base.accounting;

    rmm__request_enter_locked(
        &self->base, want->owner_flags != 0, want->bytes, padding);
    rmm__accounting_begin_exclusive(accounting);
    rmm__accounting_alloc_exclusive(accounting, want->bytes, padding);
    RMM_ACCOUNTING_SET(accounting, largest_free_bytes, figures->largest_free_bytes);
    rmm__accounting_end_exclusive(accounting);
}

static void count_given(
    void *owner, const engine_gift_t *gift, uint64_t padding,
    const engine_figures_t *figures)
{
    pool_resource_t *self = owner;
    rmm_accounting_t *accounting = &self->base.accounting;

    rmm__request_settle_locked(
        &self->base, gift->owner_flags != 0, gift->bytes, padding);
    rmm__accounting_begin_exclusive(accounting);
    rmm__accounting_free_exclusive(accounting, gift->bytes, padding);
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
    rmm__accounting_end_exclusive(accounting);
    if (self->is_range) { /* else upstream counts it */
        rmm__location_reserve(
            accounting->location, figures->reserved_bytes - reserved_before);
    }
}

/* Of a range. What comes from an upstream is asked for there. */
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
    .taken = count_taken,
    .given = count_given,
    .lost = count_lost,
    .figures = count_figures,
    .begin_growth = begin_growth,
    .end_growth = end_growth,
};

/* --- allocate ------------------------------------------------------------------------ */

/* An allocation of no bytes, or its free: counted, and nothing else. */
RMM_COLD static void
count_nothing(pool_resource_t *self, const rmm_request_t *request, bool is_free)
{
    rmm_accounting_t *accounting = &self->base.accounting;

    rmm__request_announce(&self->base, request, 0);
    rmm__engine_lock(self->engine);
    rmm__accounting_begin_exclusive(accounting);
    if (is_free) {
        rmm__request_settle_locked(&self->base, request->user, 0, 0);
        rmm__accounting_free_exclusive(accounting, 0, 0);
    } else {
        rmm__request_enter_locked(&self->base, request->user, 0, 0);
        rmm__accounting_alloc_exclusive(accounting, 0, 0);
    }
    rmm__accounting_end_exclusive(accounting);
    rmm__engine_unlock(self->engine);
}

RMM_COLD static rmm_status_t
too_large(pool_resource_t *self, const rmm_request_t *request)
{
    rmm__accounting_oom(&self->base.accounting);
    if (self->block_units != 0) {
        return rmm__error(
            RMM_ERR_OUT_OF_MEMORY,
            "%s '%s': %zu bytes are larger than its blocks of %" PRIu64 " bytes",
            rmm_resource_type(&self->base), self->base.name, request->bytes,
            (uint64_t)(self->block_units - self->gap_units) * RMM_BLOCKS_UNIT);
    }
    return rmm__error(
        RMM_ERR_OUT_OF_MEMORY, "pool '%s': %zu bytes exceed what a pool can manage",
        self->base.name, request->bytes);
}

/* The request in units; those of a whole block where all blocks have one size. */
static inline rmm_status_t
measure(pool_resource_t *self, const rmm_request_t *request, engine_want_t *want)
{
    uint64_t units = (request->bytes + self->round_bytes) / RMM_BLOCKS_UNIT;
    uint32_t fixed = self->block_units;

    if (units > (fixed != 0 ? fixed : ENGINE_RUN_BYTES / RMM_BLOCKS_UNIT)) {
        return too_large(self, request);
    }
    want->bytes = request->bytes;
    want->units = fixed != 0 ? fixed : (uint32_t)units;
    want->align_units = (uint32_t)(request->align / RMM_BLOCKS_UNIT);
    want->stream = request->stream;
    want->owner_flags = request->user;
    return RMM_OK;
}

RMM_COLD static rmm_status_t
unknown_stream(const pool_resource_t *self, rmm_stream_t stream, int error)
{
    return rmm__error_cuda(
        RMM_ERR_BAD_ALLOC, error,
        "%s '%s': querying the id of stream %p failed: %s (%d)",
        rmm_resource_type(&self->base), self->base.name, (void *)stream,
        self->driver->error_name(error), error);
}

/* What the engine has to say besides, now that no lock is held. */
RMM_COLD static void log_news(pool_resource_t *self)
{
    uint64_t grown = rmm__engine_grown_bytes(self->engine);
    uint64_t stuck = rmm__engine_stuck_bytes(self->engine);

    if (grown != 0) {
        rmm__log_info(
            "%s '%s' (%" PRIu32 "): grew by %" PRIu64 " bytes to %" PRIu64,
            rmm_resource_type(&self->base), self->base.name, self->base.instance_id,
            grown, RMM_ACCOUNTING_GET(&self->base.accounting, reserved_bytes));
    }
    if (stuck != 0) {
        rmm__log_error(
            "%s '%s' (%" PRIu32 "): %" PRIu64
            " bytes could not be unmapped; they stay reserved and unused",
            rmm_resource_type(&self->base), self->base.name, self->base.instance_id,
            stuck);
    }
}

static inline void log_changes(pool_resource_t *self)
{
    if (__builtin_expect(rmm__engine_has_news(self->engine), false)) {
        log_news(self);
    }
}

/* Rather a block without its gap than none. */
RMM_COLD static rmm_status_t alloc_failed(
    pool_resource_t *self, const rmm_request_t *request, engine_want_t *want,
    rmm_status_t status, void **ptr_out)
{
    if (status == RMM_ERR_OUT_OF_MEMORY && self->gap_units != 0 &&
        self->block_units == 0) {
        want->units -= self->gap_units;
        status = rmm__engine_alloc(self->engine, want, ptr_out);
    }
    return status == RMM_OK ? RMM_OK : rmm__pool_give_up(self, request, status);
}

rmm_status_t
rmm__pool_alloc(rmm_resource_t *mr, const rmm_request_t *request, void **ptr_out)
{
    pool_resource_t *self = pool_from_base(mr);
    engine_want_t want;
    rmm_status_t status;
    int error;

    if (request->bytes == 0) {
        count_nothing(self, request, false);
        *ptr_out = NULL;
        return RMM_OK;
    }
    status = measure(self, request, &want);
    if (status != RMM_OK) {
        return status;
    }
    error = self->driver->stream_key(request->stream, &want.key);
    if (error != RMM_DRIVER_OK) {
        return unknown_stream(self, request->stream, error);
    }
    rmm__request_announce(mr, request, want.units * RMM_BLOCKS_UNIT - want.bytes);
    status = rmm__engine_alloc(self->engine, &want, ptr_out);
    if (status == RMM_ERR_OUT_OF_MEMORY || status == RMM_ERR_BAD_ALLOC ||
        status == RMM_ERR_CUDA) {
        status = alloc_failed(self, request, &want, status, ptr_out);
    }
    if (status == RMM_OK) {
        rmm__request_tell_kept(
            request, (uintptr_t)*ptr_out + (uint64_t)want.units * RMM_BLOCKS_UNIT);
    }
    log_changes(self);
    return status;
}

/* --- free ---------------------------------------------------------------------------- */

static inline engine_gift_t
make_gift(const pool_resource_t *self, void *ptr, const rmm_request_t *request)
{
    engine_gift_t gift = {
        .ptr = ptr,
        .bytes = request->bytes,
        .stream = request->stream,
        .owner_flags = request->user};

    gift.has_key =
        self->driver->stream_key(request->stream, &gift.key) == RMM_DRIVER_OK;
    return gift;
}

void rmm__pool_dealloc(rmm_resource_t *mr, void *ptr, const rmm_request_t *request)
{
    pool_resource_t *self = pool_from_base(mr);
    engine_gift_t gift;
    const char *refusal;

    if (ptr == NULL) {
        count_nothing(self, request, true);
        return;
    }
    gift = make_gift(self, ptr, request);
    rmm__request_announce(mr, request, 0); /* padding was when it came */
    refusal = rmm__engine_free(self->engine, &gift);
    if (__builtin_expect(refusal != NULL, false)) {
        rmm__resource_refuse_free(mr, ptr, request, refusal);
    }
}

void rmm__pool_dealloc_late(rmm_resource_t *mr, void *ptr, const rmm_request_t *request)
{
    pool_resource_t *self = pool_from_base(mr);
    uint64_t most_bytes = ptr != NULL ? rmm__diag_quarantine_bytes() : 0;
    engine_gift_t gift;
    const char *refusal;

    if (most_bytes == 0) {
        rmm__pool_dealloc(mr, ptr, request);
        return;
    }
    gift = make_gift(self, ptr, request);
    rmm__request_announce(mr, request, 0);
    refusal = rmm__engine_free_late(self->engine, &gift, most_bytes);
    if (refusal != NULL) {
        rmm__resource_refuse_free(mr, ptr, request, refusal);
    }
}

/* --- trim and destroy ---------------------------------------------------------------- */

rmm_status_t rmm__pool_trim(rmm_resource_t *mr, size_t keep_bytes)
{
    pool_resource_t *self = pool_from_base(mr);
    rmm_status_t status = rmm__engine_trim(self->engine, keep_bytes);

    log_changes(self);
    return status;
}

/* A diagnosis learns that a block still out ends with its pool. */
static void report_left(void *owner, void *ptr, uint64_t bytes)
{
    const pool_resource_t *self = owner;

    rmm__diag_on_free(
        self->base.instance_id, self->base.device, ptr, bytes, RMM_STREAM_LEGACY);
}

/* The engine's lock lasts: until its accounting is closed others may take it. */
static void pool_fini(pool_resource_t *self)
{
    if (self->is_range) {
        void *range;
        uint64_t bytes = rmm__engine_addresses(self->engine, &range);

        rmm__diag_on_gone(range, bytes); /* its addresses; chunks go one by one */
    }
    rmm__engine_close(self->engine, report_left);
    log_changes(self);
    if (self->is_range) {
        rmm_accounting_t *accounting = &self->base.accounting;

        rmm__location_unreserve(
            accounting->location, RMM_ACCOUNTING_GET(accounting, reserved_bytes));
    }
    rmm__resource_fini(&self->base);
    rmm__engine_destroy(self->engine);
}

void rmm__pool_destroy(rmm_resource_t *mr)
{
    pool_fini(pool_from_base(mr));
    rmm__free(pool_from_base(mr));
}

/* --- memory from upstream ------------------------------------------------------------ */

static rmm_request_t upstream_request(uint64_t bytes)
{
    return (rmm_request_t){
        .bytes = bytes,
        .align = RMM_ALIGN_DEFAULT,
        .stream = RMM_STREAM_LEGACY,
        .user = false, /* the pool holds it; its users are counted by the pool */
    };
}

/* Memory of a stream-ordered upstream is ours on one stream only, until that is done. */
static rmm_status_t wait_until_ready(const rmm_resource_t *mr)
{
    const rmm_resource_ops_t *ops =
        atomic_load_explicit(&mr->upstream->ops, memory_order_relaxed);

    return ops->ready_on_all_streams ? RMM_OK
                                     : rmm__driver_wait_default_stream(mr->device);
}

/* Is its memory, through whatever hands it on, what cudaMalloc() or cudaMallocManaged() gave? */
static bool is_of_cuda(const rmm_resource_t *mr)
{
    while (mr->upstream != NULL) {
        mr = mr->upstream;
    }
    return strcmp(rmm_resource_type(mr), "cuda") == 0 ||
           strcmp(rmm_resource_type(mr), "managed") == 0;
}

rmm_status_t rmm__pool_obtain(rmm_resource_t *mr, uint64_t bytes, void **ptr_out)
{
    rmm_request_t request = upstream_request(bytes);
    rmm_status_t status = rmm__resource_alloc(mr->upstream, &request, ptr_out);

    if (status != RMM_OK) {
        return status;
    }
    status = wait_until_ready(mr);
    if (status != RMM_OK) {
        rmm__resource_dealloc(mr->upstream, *ptr_out, &request);
        return status;
    }
    if (rmm__annotate_is_on()) {
        rmm__annotate_chunk(mr->device, *ptr_out, bytes, is_of_cuda(mr->upstream));
    }
    return RMM_OK;
}

void rmm__pool_give_back(rmm_resource_t *mr, void *ptr, uint64_t bytes)
{
    rmm_request_t request = upstream_request(bytes);

    rmm__diag_on_gone(ptr, bytes);
    rmm__annotate_chunk_gone(mr->device, ptr, bytes);
    rmm__resource_dealloc(mr->upstream, ptr, &request);
}

static rmm_status_t obtain(void *owner, uint64_t bytes, void **ptr_out)
{
    pool_resource_t *self = owner;

    return rmm__pool_obtain(&self->base, bytes, ptr_out);
}

static void give_back(void *owner, void *ptr, uint64_t bytes)
{
    pool_resource_t *self = owner;

    rmm__pool_give_back(&self->base, ptr, bytes);
}

static const engine_upstream_t upstream_memory = {obtain, give_back};

/* --- create -------------------------------------------------------------------------- */

static const rmm_resource_ops_t pool_ops = RMM_POOL_OPS("pool", rmm__pool_dealloc);
static const rmm_resource_ops_t pool_late_ops =
    RMM_POOL_OPS("pool", rmm__pool_dealloc_late);

static bool is_pool(const rmm_resource_t *mr)
{
    const rmm_resource_ops_t *ops =
        atomic_load_explicit(&mr->ops, memory_order_relaxed);

    return ops == &pool_ops || ops == &pool_late_ops;
}

/* Up to whole units; what does not fit becomes the largest that does. */
static uint64_t whole_units(uint64_t bytes)
{
    return bytes > UINT64_MAX - RMM_BLOCKS_UNIT
               ? UINT64_MAX / RMM_BLOCKS_UNIT * RMM_BLOCKS_UNIT
               : (bytes + RMM_BLOCKS_UNIT - 1) / RMM_BLOCKS_UNIT * RMM_BLOCKS_UNIT;
}

static rmm_status_t check_options(rmm_pool_options_t *options)
{
    if (options->initial_bytes > PTRDIFF_MAX) {
        return rmm__error(
            RMM_ERR_OUT_OF_MEMORY,
            "initial_bytes %" PRIu64 " is more than any device has",
            options->initial_bytes);
    }
    options->initial_bytes = whole_units(options->initial_bytes);
    options->maximum_bytes =
        whole_units(options->maximum_bytes != 0 ? options->maximum_bytes : UINT64_MAX);
    if (options->initial_bytes > options->maximum_bytes) {
        return rmm__error(
            RMM_ERR_INVALID_ARGUMENT,
            "initial_bytes %" PRIu64 " is more than maximum_bytes %" PRIu64,
            options->initial_bytes, options->maximum_bytes);
    }
    return RMM_OK;
}

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
            .accounting_lock = rmm__engine_mutex(self->engine),
        });

    if (status == RMM_OK) {
        rmm__accounting_free_is_rest(&self->base.accounting);
    }
    return status;
}

uint32_t rmm__pool_gap_units(int device, bool is_range)
{
    bool is_annotated = !is_range && rmm__annotate_open(device);

    return is_annotated || rmm__diag_wants_guards() ? 1 : 0;
}

/* Sizes with the gaps; as they are where a block or a chunk would become too large. */
static void add_gaps(pool_resource_t *self, pool_plan_t *plan)
{
    const uint32_t gap_units = rmm__pool_gap_units(self->base.device, plan->is_range);
    const uint64_t block_bytes = plan->block_bytes + gap_units * RMM_BLOCKS_UNIT;

    self->round_bytes = RMM_BLOCKS_UNIT - 1;
    if (plan->block_bytes != 0) {
        const uint64_t count = plan->chunk_bytes / plan->block_bytes;

        if (block_bytes > ENGINE_BLOCK_BYTES ||
            count > ENGINE_RUN_BYTES / block_bytes) {
            return;
        }
        plan->block_bytes = block_bytes;
        plan->chunk_bytes = count * block_bytes;
    }
    self->gap_units = gap_units;
    self->round_bytes += gap_units * RMM_BLOCKS_UNIT;
}

static rmm_status_t
init_pool(pool_resource_t *self, rmm_resource_t *upstream, const pool_plan_t *plan)
{
    const engine_plan_t engine_plan = {
        .driver = self->driver,
        .device = self->base.device,
        .owner = self,
        .owner_ops = &count_ops,
        .upstream = plan->is_range ? NULL : &upstream_memory,
        .is_range = plan->is_range,
        .shares_with_peers = plan->shares_with_peers,
        .initial_bytes = plan->initial_bytes,
        .maximum_bytes = plan->maximum_bytes,
        .block_units = (uint32_t)(plan->block_bytes / RMM_BLOCKS_UNIT),
        .growth_bytes = plan->chunk_bytes};
    rmm_status_t status = rmm__engine_create(&engine_plan, &self->engine);

    if (status != RMM_OK) {
        return status;
    }
    self->maximum_bytes = plan->maximum_bytes;
    self->chunk_bytes = plan->chunk_bytes;
    self->block_units = engine_plan.block_units;
    self->is_range = plan->is_range;
    status = init_resource(self, upstream, plan);
    if (status != RMM_OK) {
        rmm__engine_destroy(self->engine);
        return status;
    }
    status = rmm__engine_open(self->engine, &engine_plan);
    if (status != RMM_OK) {
        pool_fini(self);
        return status;
    }
    log_changes(self);
    return RMM_OK;
}

/* The upstream's device, or the current one. */
static rmm_status_t choose_device(
    const rmm_driver_t *driver, const rmm_resource_t *upstream, int *device_out)
{
    int error = RMM_DRIVER_OK;

    if (upstream != NULL) {
        *device_out = upstream->device;
    } else {
        error = driver->device_get(device_out);
    }
    return rmm__driver_status(driver, error, "querying the current device");
}

rmm_status_t rmm__pool_create(
    rmm_resource_t *upstream, const pool_plan_t *plan, rmm_resource_t **out)
{
    pool_plan_t with_gaps = *plan;
    const rmm_driver_t *driver;
    pool_resource_t *self;
    rmm_status_t status;
    int device;

    if (upstream != NULL && upstream->device < 0) {
        return rmm__error(
            RMM_ERR_UNSUPPORTED,
            "a %s resource needs an upstream that belongs to a device, and '%s' (%s) "
            "belongs to none: use pinned or managed memory",
            plan->ops->type_name, upstream->name, rmm_resource_type(upstream));
    }
    driver = rmm__driver(&status);
    if (driver == NULL) {
        return status;
    }
    status = choose_device(driver, upstream, &device);
    if (status != RMM_OK) {
        return status;
    }
    self = rmm__calloc(1, sizeof(*self));
    if (self == NULL) {
        return RMM_ERR_OUT_OF_HOST_MEMORY;
    }
    self->driver = driver;
    self->base.device = device;
    add_gaps(self, &with_gaps);
    status = init_pool(self, upstream, &with_gaps);
    if (status != RMM_OK) {
        rmm__free(self);
        return status;
    }
    *out = &self->base;
    return RMM_OK;
}

static rmm_status_t check_flags(const rmm_resource_t *upstream, uint64_t flags)
{
    bool is_virtual = (flags & RMM_POOL_VIRTUAL) != 0;

    RMM_CHECK_ARG(upstream != NULL || is_virtual, "upstream is NULL");
    if ((flags & ~(RMM_POOL_VIRTUAL | RMM_POOL_PEER_ACCESS)) != 0) {
        return rmm__error(
            RMM_ERR_INVALID_ARGUMENT, "flags %#" PRIx64 ": only RMM_POOL_* are known",
            flags);
    }
    if (upstream != NULL && is_virtual) {
        return rmm__error(
            RMM_ERR_INVALID_ARGUMENT,
            "RMM_POOL_VIRTUAL maps the device's own memory: pass NULL for upstream, or "
            "leave the flag out");
    }
    if (!is_virtual && (flags & RMM_POOL_PEER_ACCESS) != 0) {
        return rmm__error(
            RMM_ERR_INVALID_ARGUMENT, "RMM_POOL_PEER_ACCESS needs RMM_POOL_VIRTUAL: "
                                      "for memory of an upstream call "
                                      "cudaDeviceEnablePeerAccess()");
    }
    return RMM_OK;
}

/*
 * Tools refuse memory that is mapped. So while one listens, a virtual pool takes chunks of
 * cudaMalloc() instead; not one whose memory peers use, because they could not.
 * *upstream_out: the caller's own reference, or NULL.
 */
static rmm_status_t
replace_range(rmm_pool_options_t *opts, rmm_resource_t **upstream_out)
{
    static atomic_bool is_told;
    const rmm_driver_t *driver;
    int device;
    rmm_status_t status;

    *upstream_out = NULL;
    if ((opts->flags & RMM_POOL_VIRTUAL) == 0) {
        return RMM_OK;
    }
    status = rmm__driver_here(&driver, &device);
    if (status != RMM_OK || !rmm__annotate_open(device)) {
        return status;
    }
    if ((opts->flags & RMM_POOL_PEER_ACCESS) != 0) {
        rmm__log_warn(
            "a virtual pool with peer access is not annotated for the tool in "
            "NVTX_INJECTION64_PATH, which refuses mapped memory");
        return RMM_OK;
    }
    if (!atomic_exchange_explicit(&is_told, true, memory_order_relaxed)) {
        rmm__log_warn("virtual pools use chunks of cudaMalloc, because the tool in "
                      "NVTX_INJECTION64_PATH refuses mapped memory (RMM_NVTX=off: as "
                      "usual)");
    }
    status = rmm_cuda_resource_create(upstream_out);
    opts->flags = status == RMM_OK ? opts->flags & ~RMM_POOL_VIRTUAL : opts->flags;
    return status;
}

rmm_status_t rmm_pool_resource_create(
    rmm_resource_t *upstream, const rmm_pool_options_t *options, rmm_resource_t **out)
{
    rmm_pool_options_t opts;
    rmm_resource_t *chunks = NULL;
    rmm_status_t status;

    RMM_CHECK_ARG(out != NULL, "out is NULL");
    status = rmm__options_copy(
        &opts, sizeof(opts), options, offsetof(rmm_pool_options_t, flags));
    if (status == RMM_OK) {
        status = check_flags(upstream, opts.flags);
    }
    if (status == RMM_OK) {
        status = check_options(&opts);
    }
    if (status == RMM_OK) {
        status = replace_range(&opts, &chunks);
    }
    if (status != RMM_OK) {
        return status;
    }
    status = rmm__pool_create(
        chunks != NULL ? chunks : upstream,
        &(pool_plan_t){
            .ops = rmm__diag_may_quarantine() ? &pool_late_ops : &pool_ops,
            .name = opts.name,
            .initial_bytes = opts.initial_bytes,
            .maximum_bytes = opts.maximum_bytes,
            .is_range = (opts.flags & RMM_POOL_VIRTUAL) != 0,
            .shares_with_peers = (opts.flags & RMM_POOL_PEER_ACCESS) != 0},
        out);
    rmm_resource_release(chunks);
    return status;
}

rmm_status_t rmm_pool_get_maximum(const rmm_resource_t *mr, uint64_t *bytes_out)
{
    uint64_t maximum;

    RMM_CHECK_ARG(mr != NULL, "the resource is NULL");
    RMM_CHECK_ARG(is_pool(mr), "the resource is not a pool");
    RMM_CHECK_ARG(bytes_out != NULL, "bytes_out is NULL");
    maximum = ((const pool_resource_t *)mr)->maximum_bytes;
    *bytes_out = maximum != whole_units(UINT64_MAX) ? maximum : 0;
    return RMM_OK;
}
