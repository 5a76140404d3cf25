/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scopes of statistics. A scope is a tally that begins at zero. The innermost scope counts what
 * passes through the adaptor; a pop adds its tally to the scope around it. The outermost tally is
 * the one that every adaptor keeps (adaptor.h). It counts everything in any case, so scopes cost
 * nothing until one is pushed.
 *
 * The adaptor keeps the scopes of threads by a number that is never used for two threads. The
 * system gives the address or id of a thread that has ended to a new one, which would then find
 * scopes that it never pushed.
 *
 * Locking: the adaptor's `lock` protects all scopes. Host memory is allocated and freed without
 * it.
 */
#include <rmm/statistics_adaptor.h>

#include <string.h>

#include "adaptors/adaptor.h"
#include "core/assert.h"
#include "core/host_memory.h"

#define BUCKETS 64u /* thread numbers are consecutive: a list is short */

typedef struct scope {
    struct scope *next; /* in the list; the same thread's outer scopes come later */
    uint64_t thread;    /* 0: the adaptor's own */
    rmm_tally_t tally;
} scope_t;

typedef struct statistics {
    rmm_adaptor_t adaptor;                 /* first member; protects: */
    scope_t *own;                          /* innermost first; NULL: none pushed */
    _Atomic(uint32_t) thread_scopes_count; /* in all lists */
    scope_t *of_threads[BUCKETS];
} statistics_t;

static _Atomic(uint64_t) last_thread;
static _Thread_local uint64_t this_thread; /* 0: has never pushed a scope */

static statistics_t *from_base(rmm_resource_t *mr)
{
    return RMM_CONTAINER_OF(mr, statistics_t, adaptor.base);
}

static uint64_t number_of_this_thread(void)
{
    if (this_thread == 0) {
        this_thread =
            1 + atomic_fetch_add_explicit(&last_thread, 1, memory_order_relaxed);
    }
    return this_thread;
}

/* The link to the innermost scope of `thread`, or the link at the end of its list. */
static scope_t **find_locked(statistics_t *self, uint64_t thread)
{
    scope_t **link = thread == 0 ? &self->own : &self->of_threads[thread % BUCKETS];

    RMM_ASSERT_LOCKED(&self->adaptor.lock);
    while (*link != NULL && (*link)->thread != thread) {
        link = &(*link)->next;
    }
    return link;
}

/* --- counting ----------------------------------------------------------------------- */

/* The number of a thread that has scopes somewhere, or 0. */
static uint64_t counting_thread(const statistics_t *self)
{
    /* relaxed: only this thread's own push matters, and a thread sees its own stores */
    return atomic_load_explicit(&self->thread_scopes_count, memory_order_relaxed) != 0
               ? this_thread
               : 0;
}

static scope_t *of_thread_locked(statistics_t *self, uint64_t thread)
{
    return thread != 0 ? *find_locked(self, thread) : NULL;
}

static void count_alloc(statistics_t *self, uint64_t bytes)
{
    uint64_t thread = counting_thread(self);
    scope_t *scope;

    rmm__mutex_lock(&self->adaptor.lock);
    rmm__adaptor_count_alloc_locked(&self->adaptor, bytes);
    if (self->own != NULL) {
        rmm__tally_alloc(&self->own->tally, bytes);
    }
    scope = of_thread_locked(self, thread);
    if (scope != NULL) {
        rmm__tally_alloc(&scope->tally, bytes);
    }
    rmm__mutex_unlock(&self->adaptor.lock);
}

/* sign: as rmm__tally_free(). */
static void count_free(statistics_t *self, uint64_t bytes, int64_t sign)
{
    uint64_t thread = counting_thread(self);
    scope_t *scope;

    rmm__mutex_lock(&self->adaptor.lock);
    rmm__adaptor_count_free_locked(&self->adaptor, bytes, sign);
    if (self->own != NULL) {
        rmm__tally_free(&self->own->tally, bytes, sign);
    }
    scope = of_thread_locked(self, thread);
    if (scope != NULL) {
        rmm__tally_free(&scope->tally, bytes, sign);
    }
    rmm__mutex_unlock(&self->adaptor.lock);
}

static rmm_status_t
statistics_alloc(rmm_resource_t *mr, const rmm_request_t *request, void **ptr_out)
{
    statistics_t *self = from_base(mr);
    rmm_status_t status = rmm__resource_alloc(mr->upstream, request, ptr_out);

    if (status != RMM_OK) {
        return rmm__adaptor_failed(&self->adaptor, status);
    }
    count_alloc(self, request->bytes);
    return RMM_OK;
}

static void
statistics_dealloc(rmm_resource_t *mr, void *ptr, const rmm_request_t *request)
{
    statistics_t *self = from_base(mr);

    count_free(self, request->bytes, 1);
    if (!rmm__adaptor_pass_free(&self->adaptor, ptr, request)) {
        count_free(self, request->bytes, -1);
        rmm__adaptor_refused(&self->adaptor, request);
    }
}

static void free_scopes(scope_t *scope)
{
    while (scope != NULL) {
        scope_t *next = scope->next;

        rmm__free(scope);
        scope = next;
    }
}

static void statistics_destroy(rmm_resource_t *mr)
{
    statistics_t *self = from_base(mr);

    free_scopes(self->own);
    for (uint32_t i = 0; i < BUCKETS; i++) {
        free_scopes(self->of_threads[i]);
    }
    rmm__adaptor_destroy(mr);
}

static const rmm_resource_ops_t statistics_ops[] = RMM_ADAPTOR_OPS(
    "statistics", statistics_alloc, statistics_dealloc, rmm__adaptor_trim,
    statistics_destroy);

/* --- scopes ------------------------------------------------------------------------- */

static rmm_status_t check(const rmm_resource_t *mr, const rmm_stats_t *out)
{
    rmm_status_t status =
        rmm__adaptor_check(mr, statistics_ops, "a statistics adaptor");

    if (status == RMM_OK) {
        RMM_CHECK_ARG(
            out == NULL || out->struct_size >= sizeof(out->struct_size),
            "struct_size is not set: use RMM_STATS_INIT");
    }
    return status;
}

/* Negative differences keep their bits: rmm_stats_difference(). */
static void fill(rmm_stats_t *out, const rmm_tally_t *tally)
{
    rmm_stats_t all = RMM_STATS_INIT;

    if (out == NULL) {
        return;
    }
    all.struct_size = out->struct_size;
    all.current_bytes = (uint64_t)tally->bytes.current;
    all.current_count = (uint64_t)tally->count.current;
    all.peak_bytes = (uint64_t)tally->bytes.peak;
    all.peak_count = (uint64_t)tally->count.peak;
    all.total_bytes = (uint64_t)tally->bytes.total;
    all.total_count = (uint64_t)tally->count.total;
    memcpy(out, &all, out->struct_size < sizeof(all) ? out->struct_size : sizeof(all));
}

static void add_part(rmm_tally_part_t *outer, const rmm_tally_part_t *inner)
{
    int64_t peak = outer->current + inner->peak;

    outer->peak = peak > outer->peak ? peak : outer->peak;
    outer->current += inner->current;
    outer->total += inner->total;
}

static rmm_status_t no_scope(const statistics_t *self, uint64_t thread)
{
    return rmm__error(
        RMM_ERR_OUT_OF_RANGE, "statistics '%s': %s has no scope: push one first",
        self->adaptor.base.name, thread != 0 ? "this thread" : "the adaptor");
}

/* The innermost scope's tally. Without a scope: the adaptor's own tally, or false for a thread. */
static bool look_locked(statistics_t *self, uint64_t thread, rmm_tally_t *out)
{
    const scope_t *scope = *find_locked(self, thread);

    if (scope == NULL && thread != 0) {
        *out = (rmm_tally_t){{0, 0, 0}, {0, 0, 0}};
        return false;
    }
    *out = scope != NULL ? scope->tally : self->adaptor.tally;
    return true;
}

static rmm_status_t get(statistics_t *self, uint64_t thread, rmm_stats_t *out)
{
    rmm_tally_t now;
    bool found;

    rmm__mutex_lock(&self->adaptor.lock);
    found = look_locked(self, thread, &now);
    rmm__mutex_unlock(&self->adaptor.lock);
    if (!found) {
        return no_scope(self, thread);
    }
    fill(out, &now);
    return RMM_OK;
}

static void count_thread_scopes(statistics_t *self, uint64_t thread, uint32_t more)
{
    if (thread != 0) {
        atomic_fetch_add_explicit(
            &self->thread_scopes_count, more, memory_order_relaxed);
    }
}

static rmm_status_t push(statistics_t *self, uint64_t thread, rmm_stats_t *out)
{
    scope_t *scope = rmm__calloc(1, sizeof(*scope));
    rmm_tally_t before;
    scope_t **link;

    if (scope == NULL) {
        return RMM_ERR_OUT_OF_HOST_MEMORY;
    }
    scope->thread = thread;
    count_thread_scopes(self, thread, 1);
    rmm__mutex_lock(&self->adaptor.lock);
    (void)look_locked(self, thread, &before);
    link = find_locked(self, thread);
    scope->next = *link;
    *link = scope;
    rmm__mutex_unlock(&self->adaptor.lock);
    fill(out, &before);
    return RMM_OK;
}

/* Removes the innermost scope and adds it to the scope around it. NULL: there is no scope. The
 * adaptor's outermost scope is not added to the adaptor's tally, which counts everything. */
static scope_t *take_locked(statistics_t *self, uint64_t thread)
{
    scope_t **link = find_locked(self, thread);
    scope_t *scope = *link;

    if (scope != NULL) {
        scope_t *outer;

        *link = scope->next;
        outer = *find_locked(self, thread);
        if (outer != NULL) {
            add_part(&outer->tally.bytes, &scope->tally.bytes);
            add_part(&outer->tally.count, &scope->tally.count);
        }
    }
    return scope;
}

static rmm_status_t pop(statistics_t *self, uint64_t thread, rmm_stats_t *out)
{
    scope_t *scope;

    rmm__mutex_lock(&self->adaptor.lock);
    scope = take_locked(self, thread);
    rmm__mutex_unlock(&self->adaptor.lock);
    if (scope == NULL) {
        return no_scope(self, thread);
    }
    count_thread_scopes(self, thread, UINT32_MAX); /* one less */
    fill(out, &scope->tally);
    rmm__free(scope);
    return RMM_OK;
}

/* --- public ------------------------------------------------------------------------- */

rmm_status_t rmm_statistics_get(rmm_resource_t *mr, rmm_stats_t *out)
{
    rmm_status_t status;

    RMM_CHECK_ARG(out != NULL, "out is NULL");
    status = check(mr, out);
    return status == RMM_OK ? get(from_base(mr), 0, out) : status;
}

rmm_status_t rmm_statistics_push(rmm_resource_t *mr, rmm_stats_t *out)
{
    rmm_status_t status = check(mr, out);

    return status == RMM_OK ? push(from_base(mr), 0, out) : status;
}

rmm_status_t rmm_statistics_pop(rmm_resource_t *mr, rmm_stats_t *out)
{
    rmm_status_t status = check(mr, out);

    return status == RMM_OK ? pop(from_base(mr), 0, out) : status;
}

rmm_status_t rmm_statistics_thread_get(rmm_resource_t *mr, rmm_stats_t *out)
{
    rmm_status_t status;

    RMM_CHECK_ARG(out != NULL, "out is NULL");
    status = check(mr, out);
    return status == RMM_OK ? get(from_base(mr), number_of_this_thread(), out) : status;
}

rmm_status_t rmm_statistics_thread_push(rmm_resource_t *mr, rmm_stats_t *out)
{
    rmm_status_t status = check(mr, out);

    return status == RMM_OK ? push(from_base(mr), number_of_this_thread(), out)
                            : status;
}

rmm_status_t rmm_statistics_thread_pop(rmm_resource_t *mr, rmm_stats_t *out)
{
    rmm_status_t status = check(mr, out);

    return status == RMM_OK ? pop(from_base(mr), number_of_this_thread(), out) : status;
}

rmm_status_t rmm_statistics_adaptor_create(
    rmm_resource_t *upstream, const rmm_statistics_options_t *options,
    rmm_resource_t **out)
{
    rmm_statistics_options_t opts;
    rmm_adaptor_t *self;
    rmm_status_t status = RMM_OPTIONS_OVER(upstream, out, &opts, options);

    if (status == RMM_OK) {
        status = rmm__adaptor_create(
            &(rmm_adaptor_plan_t){statistics_ops, sizeof(statistics_t), opts.name},
            upstream, &self);
    }
    if (status == RMM_OK) {
        *out = &self->base;
    }
    return status;
}
