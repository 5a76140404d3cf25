/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Serialises the calls of an upstream that is not thread-safe. No other file calls upstream under
 * a lock; here that is the purpose.
 *
 * A callback that upstream makes into the program may call the adaptor again, on the thread that
 * holds the lock. Upstream cannot serve a second call during the first, so the adaptor refuses an
 * allocation or a trim. It cannot refuse a free, because the caller would not repeat it: it keeps
 * the free and passes it on when the first call has returned.
 *
 * Locking: the thread that calls upstream holds `turn`, which also protects the kept frees.
 */
#include <rmm/thread_safe_adaptor.h>

#include <rmm/device.h>

#include "adaptors/adaptor.h"
#include "core/assert.h"
#include "core/host_memory.h"
#include "core/mutex.h"
#include "core/uncancelled.h"

typedef struct kept_free {
    void *ptr;
    int device; /* current at the free, for a per-thread default stream; -1: another stream */
    rmm_request_t request;
} kept_free_t;

typedef struct thread_safe {
    rmm_adaptor_t adaptor; /* first member */
    rmm_mutex_t turn;
    _Atomic(const void *) caller; /* the thread that holds `turn`, or NULL */
    kept_free_t *kept;            /* protected by `turn`, as its two sizes are */
    size_t kept_count, kept_capacity;
} thread_safe_t;

static thread_safe_t *from_base(rmm_resource_t *mr)
{
    return RMM_CONTAINER_OF(mr, thread_safe_t, adaptor.base);
}

/* --- turns ---------------------------------------------------------------------------- */

static const void *this_thread(void)
{
    static _Thread_local char name;

    return &name;
}

/* relaxed: only the calling thread itself stores its own identity */
static bool is_my_turn(const thread_safe_t *self)
{
    return atomic_load_explicit(&self->caller, memory_order_relaxed) == this_thread();
}

/* The thread cannot be cancelled while it holds the lock. */
typedef struct stay {
    thread_safe_t *self;
    int cancel_state;
} stay_t;

static stay_t begin_turn(thread_safe_t *self)
{
    stay_t stay = {self, rmm__cancel_off()};

    rmm__mutex_lock(&self->turn);
    atomic_store_explicit(&self->caller, this_thread(), memory_order_relaxed);
    return stay;
}

/* Upstream may cause further frees while these are passed on: the loop passes them on too. */
static void make_kept_frees(thread_safe_t *self)
{
    for (size_t i = 0; i < self->kept_count; i++) {
        kept_free_t kept = self->kept[i]; /* the array may move meanwhile */
        rmm_device_scope_t scope = {.previous = -1};

        (void)!rmm_device_scope_enter(kept.device, &scope);
        rmm__adaptor_dealloc(&self->adaptor.base, kept.ptr, &kept.request);
        rmm_device_scope_leave(&scope);
    }
    self->kept_count = 0;
}

/* At the end of a scope, also by an exception of a function that upstream calls. */
static void end_turn(const stay_t *stay)
{
    thread_safe_t *self = stay->self;

    make_kept_frees(self);
    atomic_store_explicit(&self->caller, NULL, memory_order_relaxed);
    rmm__mutex_unlock(&self->turn);
    rmm__cancel_restore(&stay->cancel_state);
}

#define IN_TURN(self) RMM_AT_END(end_turn) const stay_t stay = begin_turn(self)

/* --- calls from inside a call of upstream --------------------------------------------- */

RMM_COLD static rmm_status_t
refuse(const thread_safe_t *self, rmm_status_t status, const char *what)
{
    return rmm__error(
        status,
        "thread_safe '%s': %s was called from inside a call to its upstream, which "
        "serves one call at a time",
        self->adaptor.base.name, what);
}

static bool make_room(thread_safe_t *self)
{
    size_t capacity = 2 * self->kept_capacity + 8;
    kept_free_t *resized;

    if (self->kept_count < self->kept_capacity) {
        return true;
    }
    resized = rmm__resize(
        self->kept, self->kept_capacity * sizeof(*resized),
        capacity * sizeof(*resized));
    if (resized != NULL) {
        self->kept = resized;
        self->kept_capacity = capacity;
    }
    return resized != NULL;
}

/* Upstream called with its own device current, which it may not be any more when the free is
 * made. */
static int device_of(rmm_stream_t stream)
{
    int device = -1;

    return rmm_stream_is_per_thread_default(stream) &&
                   rmm_device_current(&device) == RMM_OK
               ? device
               : -1;
}

/* The caller does not learn whether upstream refuses the free later. */
RMM_COLD static void
keep_free(thread_safe_t *self, void *ptr, const rmm_request_t *request)
{
    RMM_ASSERT_LOCKED(&self->turn);
    if (!make_room(self)) {
        rmm__resource_refuse_free(
            &self->adaptor.base, ptr, request, "no host memory to keep it for later");
        return;
    }
    self->kept[self->kept_count] =
        (kept_free_t){ptr, device_of(request->stream), *request};
    self->kept[self->kept_count++].request.refused = NULL;
}

/* --- ops ------------------------------------------------------------------------------ */

static rmm_status_t
thread_safe_alloc(rmm_resource_t *mr, const rmm_request_t *request, void **ptr_out)
{
    thread_safe_t *self = from_base(mr);

    if (is_my_turn(self)) {
        return refuse(self, RMM_ERR_BAD_ALLOC, "an allocation");
    }
    IN_TURN(self);
    return rmm__adaptor_alloc(mr, request, ptr_out);
}

static void
thread_safe_dealloc(rmm_resource_t *mr, void *ptr, const rmm_request_t *request)
{
    thread_safe_t *self = from_base(mr);

    if (is_my_turn(self)) {
        keep_free(self, ptr, request);
        return;
    }
    IN_TURN(self);
    rmm__adaptor_dealloc(mr, ptr, request);
}

static rmm_status_t thread_safe_trim(rmm_resource_t *mr, size_t keep_bytes)
{
    thread_safe_t *self = from_base(mr);

    if (is_my_turn(self)) {
        return refuse(self, RMM_ERR_UNSUPPORTED, "a trim");
    }
    IN_TURN(self);
    return rmm__adaptor_trim(mr, keep_bytes);
}

static void thread_safe_destroy(rmm_resource_t *mr)
{
    thread_safe_t *self = from_base(mr);

    RMM_ASSERT(self->kept_count == 0);
    rmm__free(self->kept);
    rmm__mutex_fini(&self->turn);
    rmm__adaptor_destroy(mr);
}

static const rmm_resource_ops_t thread_safe_ops[] = RMM_ADAPTOR_OPS(
    "thread_safe", thread_safe_alloc, thread_safe_dealloc, thread_safe_trim,
    thread_safe_destroy);

rmm_status_t rmm_thread_safe_adaptor_create(
    rmm_resource_t *upstream, const rmm_thread_safe_options_t *options,
    rmm_resource_t **out)
{
    rmm_thread_safe_options_t opts;
    rmm_adaptor_t *self;
    rmm_status_t status = RMM_OPTIONS_OVER(upstream, out, &opts, options);

    if (status == RMM_OK) {
        status = rmm__adaptor_create(
            &(rmm_adaptor_plan_t){thread_safe_ops, sizeof(thread_safe_t), opts.name},
            upstream, &self);
    }
    if (status == RMM_OK) {
        rmm__mutex_init(&from_base(&self->base)->turn);
        *out = &self->base;
    }
    return status;
}
