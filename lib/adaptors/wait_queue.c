/* SPDX-License-Identifier: Apache-2.0 */
/* See wait_queue.h. */
#include "adaptors/wait_queue.h"

#include <errno.h>
#include <time.h>

#include "core/assert.h"

#define SECOND_NS 1000000000u
/* For so long requests may be overtaken, or for a quarter of their time. */
#define PATIENCE_NS_MOST 100000000u

/* --- the list --------------------------------------------------------------------------- */

/* relaxed: new requests may look a little too late */
static void set_gate_locked(rmm_wait_queue_t *queue)
{
    uint64_t closes_ns =
        queue->first != NULL ? queue->first->begin_ns + queue->patience_ns : UINT64_MAX;

    atomic_store_explicit(&queue->closes_ns, closes_ns, memory_order_relaxed);
}

static void append_locked(rmm_wait_queue_t *queue, rmm_waiter_t *waiter)
{
    waiter->next = NULL;
    waiter->previous = queue->last;
    if (queue->last != NULL) {
        queue->last->next = waiter;
    } else {
        queue->first = waiter;
    }
    queue->last = waiter;
    waiter->is_queued = true;
    /* acq_rel: pairs with rmm__wait_queue_freed() */
    (void)atomic_fetch_add_explicit(&queue->count, 1, memory_order_acq_rel);
    set_gate_locked(queue);
}

static void remove_locked(rmm_wait_queue_t *queue, rmm_waiter_t *waiter)
{
    if (waiter->previous != NULL) {
        waiter->previous->next = waiter->next;
    } else {
        queue->first = waiter->next;
    }
    if (waiter->next != NULL) {
        waiter->next->previous = waiter->previous;
    } else {
        queue->last = waiter->previous;
    }
    if (queue->active == waiter) {
        queue->active = NULL;
    }
    waiter->is_queued = false;
    (void)atomic_fetch_sub_explicit(&queue->count, 1, memory_order_acq_rel);
    set_gate_locked(queue);
}

/* --- whose turn it is ------------------------------------------------------------------- */

/* acquire: pairs with rmm__wait_roster_leave() */
static bool all_wait(const rmm_wait_queue_t *queue)
{
    return atomic_load_explicit(&queue->roster.working, memory_order_acquire) == 0;
}

/* NULL: each that may has tried. */
static rmm_waiter_t *choose_locked(const rmm_wait_queue_t *queue)
{
    bool is_strict = rmm__wait_queue_is_closed(queue) && !all_wait(queue);
    rmm_waiter_t *chosen = NULL;
    uint64_t least = queue->freed;

    for (rmm_waiter_t *waiter = queue->first; waiter != NULL; waiter = waiter->next) {
        if (waiter->tried < least) {
            least = waiter->tried;
            chosen = waiter;
        }
        if (is_strict) {
            break;
        }
    }
    return chosen;
}

static bool can_give_back(const rmm_waiter_t *waiter)
{
    return waiter->thread->blocks > 0 || waiter->thread->frees_others;
}

static rmm_waiter_t *choose_to_tell_locked(const rmm_wait_queue_t *queue)
{
    rmm_waiter_t *holder = NULL;

    for (rmm_waiter_t *waiter = queue->last; waiter != NULL;
         waiter = waiter->previous) {
        if (!can_give_back(waiter)) {
            continue;
        }
        if (waiter->thread->refused_at != queue->frees) {
            return waiter;
        }
        holder = holder != NULL ? holder : waiter;
    }
    return holder != NULL ? holder : queue->last;
}

static void
wake_locked(rmm_wait_queue_t *queue, rmm_waiter_t *waiter, rmm_wait_step_t step)
{
    waiter->step = step;
    rmm__wait_roster_join(&queue->roster);
    if (step == RMM_WAIT_REFUSED) {
        waiter->thread->refused_at = queue->frees;
        remove_locked(queue, waiter);
    } else {
        queue->active = waiter;
    }
    pthread_cond_signal(&waiter->woken);
}

static void schedule_locked(rmm_wait_queue_t *queue)
{
    bool is_finished = !queue->has_device || queue->finished == queue->freed;
    rmm_waiter_t *chosen;

    if (queue->active != NULL || queue->first == NULL) {
        return;
    }
    chosen = choose_locked(queue);
    if (chosen != NULL) {
        chosen->tried = queue->freed;
        wake_locked(queue, chosen, RMM_WAIT_TRY);
    } else if (all_wait(queue)) {
        wake_locked(
            queue, choose_to_tell_locked(queue),
            is_finished ? RMM_WAIT_REFUSED : RMM_WAIT_FINISH);
    }
}

static void none_works(rmm_wait_roster_t *roster)
{
    rmm_wait_queue_t *queue = (rmm_wait_queue_t *)roster; /* first member */

    /* acquire: pairs with append_locked(); see rmm__wait_roster_leave() */
    if (atomic_load_explicit(&queue->count, memory_order_acquire) == 0) {
        return;
    }
    pthread_mutex_lock(&queue->mutex);
    schedule_locked(queue);
    pthread_mutex_unlock(&queue->mutex);
}

void rmm__wait_queue_wake(rmm_wait_queue_t *queue)
{
    pthread_mutex_lock(&queue->mutex);
    queue->freed++;
    queue->frees++;
    schedule_locked(queue);
    pthread_mutex_unlock(&queue->mutex);
}

/* --- a waiting thread ------------------------------------------------------------------- */

/* It stops working, under the mutex: what follows looks whether anybody else does. */
static void rest_locked(rmm_wait_queue_t *queue)
{
    /* acq_rel: as rmm__wait_roster_leave() */
    (void)atomic_fetch_sub_explicit(&queue->roster.working, 1, memory_order_acq_rel);
}

static void init_condition(pthread_cond_t *condition)
{
    pthread_condattr_t monotonic;

    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

void rmm__wait_queue_enter(
    rmm_wait_queue_t *queue, rmm_wait_thread_t *thread, rmm_waiter_t *waiter)
{
    *waiter = (rmm_waiter_t){
        .queue = queue,
        .thread = thread,
        .step = RMM_WAIT_SLEEP,
        .begin_ns = rmm__clock_ns(CLOCK_MONOTONIC)};
    init_condition(&waiter->woken);
    pthread_mutex_lock(&queue->mutex);
    append_locked(queue, waiter);
    rest_locked(queue);
    schedule_locked(queue);
    pthread_mutex_unlock(&queue->mutex);
}

/* The attempt for which the waiter was woken is over, without success. */
static void settle_locked(rmm_wait_queue_t *queue, rmm_waiter_t *waiter)
{
    if (waiter->step == RMM_WAIT_FINISH) {
        queue->freed++;
        queue->finished = queue->freed;
    }
    queue->active = NULL;
    waiter->step = RMM_WAIT_SLEEP;
    rest_locked(queue);
    schedule_locked(queue);
}

static void give_up_locked(rmm_wait_queue_t *queue, rmm_waiter_t *waiter)
{
    waiter->step = RMM_WAIT_LATE;
    rmm__wait_roster_join(&queue->roster);
    remove_locked(queue, waiter);
    schedule_locked(queue);
}

static void sleep_locked(rmm_wait_queue_t *queue, rmm_waiter_t *waiter)
{
    const uint64_t end_ns = waiter->begin_ns + queue->timeout_ns;
    const uint64_t look_ns = rmm__clock_ns(CLOCK_MONOTONIC) + queue->patience_ns;
    const uint64_t at_ns = look_ns < end_ns ? look_ns : end_ns;
    const struct timespec at = {
        .tv_sec = (time_t)(at_ns / SECOND_NS), .tv_nsec = (long)(at_ns % SECOND_NS)};

    waiter->seen = queue->freed;
    if (pthread_cond_timedwait(&waiter->woken, &queue->mutex, &at) != ETIMEDOUT ||
        waiter->step != RMM_WAIT_SLEEP) {
        return;
    }
    if (at_ns == end_ns) {
        give_up_locked(queue, waiter);
        return;
    }
    queue->freed += waiter->seen == queue->freed; /* perhaps past the adaptor */
    schedule_locked(queue);
}

rmm_wait_step_t rmm__wait_queue_next(rmm_waiter_t *waiter)
{
    rmm_wait_queue_t *queue = waiter->queue;
    rmm_wait_step_t step;

    pthread_mutex_lock(&queue->mutex);
    if (waiter->is_at_work) {
        settle_locked(queue, waiter);
    }
    while (waiter->step == RMM_WAIT_SLEEP) {
        sleep_locked(queue, waiter);
    }
    waiter->is_at_work = true;
    step = waiter->step;
    pthread_mutex_unlock(&queue->mutex);
    return step;
}

void rmm__wait_queue_leave(rmm_waiter_t *waiter)
{
    rmm_wait_queue_t *queue = waiter->queue;

    pthread_mutex_lock(&queue->mutex);
    if (waiter->is_queued) {
        remove_locked(queue, waiter);
        schedule_locked(queue);
    }
    pthread_mutex_unlock(&queue->mutex);
    pthread_cond_destroy(&waiter->woken);
}

/* --- the queue -------------------------------------------------------------------------- */

void rmm__wait_queue_init(
    rmm_wait_queue_t *queue, uint32_t id, uint64_t timeout_ns, bool has_device)
{
    uint64_t quarter_ns = timeout_ns / 4;

    rmm__wait_roster_init(&queue->roster, id, none_works);
    queue->timeout_ns = timeout_ns;
    queue->patience_ns = quarter_ns < PATIENCE_NS_MOST ? quarter_ns : PATIENCE_NS_MOST;
    queue->has_device = has_device;
    pthread_mutex_init(&queue->mutex, NULL);
    queue->first = queue->last = queue->active = NULL;
    queue->freed = queue->frees = 1;
    queue->finished = 0;
    atomic_init(&queue->count, 0);
    atomic_init(&queue->closes_ns, UINT64_MAX);
}

void rmm__wait_queue_fini(rmm_wait_queue_t *queue)
{
    RMM_ASSERT(queue->first == NULL);
    rmm__wait_roster_fini(&queue->roster);
    pthread_mutex_destroy(&queue->mutex);
}
