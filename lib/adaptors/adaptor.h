/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the adaptors: resources that pass requests on to their upstream and hold no
 * memory of their own. A concrete adaptor embeds rmm_adaptor_t as its first member,
 * implements the operations in which it differs, and uses those of this file for the others.
 *
 * Accounting: an adaptor's slot counts what passes through it. The request's `user` is handed
 * on, so what the location counts is entered and settled once, by the resource that has the
 * block. A free is counted down before upstream sees it, because the block may be handed
 * out again at once; if upstream refuses the free it is counted up again, so that for a
 * moment a figure may be too low, never too high.
 *
 * Figures may go below zero: what was allocated elsewhere may be freed here. Hence the
 * signed tally; the slot shows nothing then.
 *
 * Locking: `lock` protects the tally and lets one writer at a time into the slot. It is
 * held for a few stores, never during a call of upstream: one atomic operation a time,
 * where five counters would take five.
 */
#ifndef RMM_ADAPTORS_ADAPTOR_H
#define RMM_ADAPTORS_ADAPTOR_H

#include "base/resource_impl.h"
#include "core/mutex.h"

/* Both numbers of one kind: high-water mark of a value that began at 0. */
typedef struct rmm_tally_part {
    int64_t current, peak, total;
} rmm_tally_part_t;

typedef struct rmm_tally {
    rmm_tally_part_t bytes, count;
} rmm_tally_t;

typedef struct rmm_adaptor {
    rmm_resource_t base; /* first member */
    rmm_mutex_t lock;    /* protects: */
    rmm_tally_t tally;   /* since creation */
} rmm_adaptor_t;

/* The parts of a concrete adaptor. */
typedef struct rmm_adaptor_plan {
    const rmm_resource_ops_t *ops; /* two, from RMM_ADAPTOR_OPS */
    size_t bytes;                  /* of the concrete type */
    const char *name;              /* NULL: the type's */
} rmm_adaptor_plan_t;

#define RMM_ADAPTOR_OPS_OVER(type, alloc_, dealloc_, trim_, destroy_, is_ready)        \
    {                                                                                  \
        .type_name = (type), .alloc = (alloc_), .dealloc = (dealloc_),                 \
        .trim = (trim_), .destroy = (destroy_), .ready_on_all_streams = (is_ready)     \
    }

/* Tables for an upstream whose blocks are not, and are, ready on all streams. */
#define RMM_ADAPTOR_OPS(type, alloc, dealloc, trim, destroy)                           \
    {                                                                                  \
        RMM_ADAPTOR_OPS_OVER(type, alloc, dealloc, trim, destroy, false),              \
            RMM_ADAPTOR_OPS_OVER(type, alloc, dealloc, trim, destroy, true)            \
    }

/*
 * Memory for a concrete adaptor, all zero but for the base. What follows cannot fail, or
 * undoes it with rmm__adaptor_destroy().
 * RMM_OK, RMM_ERR_OUT_OF_HOST_MEMORY.
 */
rmm_status_t rmm__adaptor_create(
    const rmm_adaptor_plan_t *plan, rmm_resource_t *upstream, rmm_adaptor_t **out);

/* Is it one of these? False in a forked child, where none works. */
static inline bool
rmm__adaptor_is(const rmm_resource_t *mr, const rmm_resource_ops_t *ops)
{
    const rmm_resource_ops_t *its =
        atomic_load_explicit(&mr->ops, memory_order_relaxed);

    return its == &ops[0] || its == &ops[1];
}

/* A function of one type refuses these first: NULL, and a resource of another type than `what`,
 * such as "an aligned adaptor". */
rmm_status_t rmm__adaptor_check(
    const rmm_resource_t *mr, const rmm_resource_ops_t *ops, const char *what);

/* RMM_ERR_INVALID_ALIGNMENT where the option alignment_bytes is neither 0 nor a power of two
 * up to `most`. */
rmm_status_t rmm__adaptor_check_alignment(uint64_t alignment, uint64_t most);

static inline rmm_adaptor_t *rmm__adaptor_from_base(rmm_resource_t *mr)
{
    return RMM_CONTAINER_OF(mr, rmm_adaptor_t, base);
}

/* --- the tally ---------------------------------------------------------------------- */

static inline void rmm__tally_add(rmm_tally_part_t *part, int64_t value)
{
    part->current += value;
    part->total += value;
    if (part->current > part->peak) {
        part->peak = part->current;
    }
}

static inline void rmm__tally_alloc(rmm_tally_t *tally, uint64_t bytes)
{
    rmm__tally_add(&tally->bytes, (int64_t)bytes);
    rmm__tally_add(&tally->count, 1);
}

/* sign 1: freed; -1: that free was refused. */
static inline void rmm__tally_free(rmm_tally_t *tally, uint64_t bytes, int64_t sign)
{
    tally->bytes.current -= sign * (int64_t)bytes;
    tally->count.current -= sign;
}

static inline uint64_t rmm__not_negative(int64_t value)
{
    return value > 0 ? (uint64_t)value : 0;
}

/* The slot's current figures follow the tally. Between begin and end. */
static inline void rmm__adaptor_show_current(
    rmm_accounting_t *accounting, int64_t bytes_now, int64_t freed_count)
{
    RMM_ACCOUNTING_SET(accounting, current_bytes, rmm__not_negative(bytes_now));
    RMM_ACCOUNTING_SET(accounting, freed_count, (uint64_t)freed_count);
}

/* A copy of what the two below use of the accounting: every store into the slot could, for all
 * that the compiler knows, change where the slot is. */
static inline rmm_accounting_t rmm__adaptor_slot(const rmm_adaptor_t *self)
{
    return (rmm_accounting_t){
        .slot = self->base.accounting.slot, .requests = self->base.accounting.requests};
}

/* On copies, as above. */
static inline void rmm__adaptor_count_alloc_locked(rmm_adaptor_t *self, uint64_t bytes)
{
    rmm_accounting_t accounting = rmm__adaptor_slot(self);
    rmm_tally_part_t of_bytes = self->tally.bytes;
    rmm_tally_part_t of_count = self->tally.count;
    uint64_t bytes_now, count_now;

    rmm__tally_add(&of_bytes, (int64_t)bytes);
    rmm__tally_add(&of_count, 1);
    self->tally = (rmm_tally_t){of_bytes, of_count};
    bytes_now = rmm__not_negative(of_bytes.current);
    count_now = rmm__not_negative(of_count.current);
    rmm__accounting_begin_exclusive(&accounting);
    rmm__adaptor_show_current(
        &accounting, of_bytes.current, of_count.total - of_count.current);
    RMM_ACCOUNTING_SET(&accounting, total_bytes, (uint64_t)of_bytes.total);
    RMM_ACCOUNTING_SET(&accounting, total_count, (uint64_t)of_count.total);
    if (rmm__reset_is_due(
            &accounting.slot->peak_reset_seen, &accounting.requests->peak_reset)) {
        rmm__accounting_obey_reset(&self->base.accounting);
    }
    RMM_ACCOUNTING_RAISE_EXCLUSIVE(&accounting, peak_bytes, bytes_now);
    RMM_ACCOUNTING_RAISE_EXCLUSIVE(&accounting, peak_count, count_now);
    RMM_ACCOUNTING_RAISE_EXCLUSIVE(&accounting, lifetime_peak_bytes, bytes_now);
    rmm__accounting_end_exclusive(&accounting);
}

/* sign: as rmm__tally_free(). */
static inline void
rmm__adaptor_count_free_locked(rmm_adaptor_t *self, uint64_t bytes, int64_t sign)
{
    rmm_accounting_t accounting = rmm__adaptor_slot(self);
    int64_t bytes_now = self->tally.bytes.current - sign * (int64_t)bytes;
    int64_t count_now = self->tally.count.current - sign;
    int64_t freed_count = self->tally.count.total - count_now;

    self->tally.bytes.current = bytes_now;
    self->tally.count.current = count_now;
    rmm__accounting_begin_exclusive(&accounting);
    rmm__adaptor_show_current(&accounting, bytes_now, freed_count);
    rmm__accounting_end_exclusive(&accounting);
}

/* --- passing on --------------------------------------------------------------------- */

static inline void rmm__adaptor_count_alloc(rmm_adaptor_t *self, uint64_t bytes)
{
    rmm__mutex_lock(&self->lock);
    rmm__adaptor_count_alloc_locked(self, bytes);
    rmm__mutex_unlock(&self->lock);
}

static inline void
rmm__adaptor_count_free(rmm_adaptor_t *self, uint64_t bytes, int64_t sign)
{
    rmm__mutex_lock(&self->lock);
    rmm__adaptor_count_free_locked(self, bytes, sign);
    rmm__mutex_unlock(&self->lock);
}

/* Counts a failure that ends an allocation here; returns `status`. */
rmm_status_t rmm__adaptor_failed(rmm_adaptor_t *self, rmm_status_t status);

/* Upstream refused a free, whose count is already restored: count the refusal at the slot, and
 * report it to the caller. */
void rmm__adaptor_refused(rmm_adaptor_t *self, const rmm_request_t *request);

/* To upstream, not counted here; false if upstream refused. */
static inline bool
rmm__adaptor_pass_free(rmm_adaptor_t *self, void *ptr, const rmm_request_t *request)
{
    bool refused = false;
    rmm_request_t passed = *request;

    passed.refused = &refused;
    rmm__resource_dealloc(self->base.upstream, ptr, &passed);
    return !refused;
}

/* Counted down, passed on, and up again if upstream refused: then false. */
bool rmm__adaptor_free(rmm_adaptor_t *self, void *ptr, const rmm_request_t *request);

/* --- before another attempt ----------------------------------------------------------- */

/* False while the request's stream captures: what others free would not get into the capture, and
 * a synchronise would ruin it. */
bool rmm__adaptor_may_wait(const rmm_resource_t *mr, const rmm_request_t *request);

/* Wait for the work that is queued on the device, so that what was freed behind it is usable by
 * the request's stream. Leaves captures alone. False: there is no device, or it failed. */
bool rmm__adaptor_finish_work(const rmm_resource_t *mr, const rmm_request_t *request);

/* --- the ops of an adaptor that does nothing else ------------------------------------ */

rmm_status_t
rmm__adaptor_alloc(rmm_resource_t *mr, const rmm_request_t *request, void **ptr_out);
void rmm__adaptor_dealloc(rmm_resource_t *mr, void *ptr, const rmm_request_t *request);
rmm_status_t rmm__adaptor_trim(rmm_resource_t *mr, size_t keep_bytes);
void rmm__adaptor_destroy(rmm_resource_t *mr);

#endif /* RMM_ADAPTORS_ADAPTOR_H */
