/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How threads wait, and how long one serves the others (combiner.h).
 *
 * A slot goes from empty to an operation by the thread that posts it, and is emptied by the
 * thread that has run it, which has the lock: that is how the first thread learns that it is
 * done. So an operation runs once: nobody looks at a slot to run what is in it, its own
 * thread included, without the lock.
 *
 * `users` tells which slots are worth a look. A thread sets its bit before it posts, and it
 * stays while the thread comes again and again; the thread that serves clears the bits of
 * slots that stayed empty while it served, and all of them if only one was in use. A bit
 * that is missing costs time, not an operation: a thread with a posted operation tries the
 * lock itself.
 *
 * The thread that serves looks again and again, as long as operations come: so the data
 * stays in one core's cache. SERVED_MOST bounds how long it works for others.
 */
#include "core/combiner.h"

#include <sched.h>
#include <stdbool.h>

#define SERVED_MOST 256 /* operations, before another thread serves */
#define IDLE_LOOKS 32   /* looks at all slots in use without finding any, about 1 us */
#define PAUSES 4        /* between looks of a waiting thread, some 150 ns */
#define LOOKS 200       /* of a waiting thread, some 30 us; then it sleeps */
#define LOCK_LOOKS 8    /* every so many it looks at the lock as well */

static inline void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Threads are spread over the slots in the order in which they come here first. */
static uint32_t slot_of_thread(void)
{
    static _Atomic(uint32_t) last;
    static _Thread_local uint32_t number; /* from 1; 0: none yet */

    if (number == 0) {
        number = 1 + atomic_fetch_add_explicit(&last, 1, memory_order_relaxed);
    }
    return number % RMM_COMBINER_SLOTS;
}

void rmm__combiner_init(rmm_combiner_t *combiner)
{
    rmm__mutex_init(&combiner->lock);
    atomic_init(&combiner->users, 0);
    for (int i = 0; i < RMM_COMBINER_SLOTS; i++) {
        atomic_init(&combiner->slots[i].posted, NULL);
    }
}

void rmm__combiner_fini(rmm_combiner_t *combiner)
{
    rmm__mutex_fini(&combiner->lock);
}

/* --- the thread that has the lock ---------------------------------------------------- */

/* True: there was an operation, and it was run. No atomic operation but a load and a store:
 * each would wait for the stores before it, to lines that other cores look at. */
static bool serve_slot(rmm_combiner_slot_t *slot)
{
    /* acquire: pairs with post(); its caller's writes come before */
    rmm_combined_t *operation =
        atomic_load_explicit(&slot->posted, memory_order_acquire);

    if (operation == NULL) {
        return false;
    }
    operation->run(operation);
    /* release: pairs with is_done(); then it is its caller's again */
    atomic_store_explicit(&slot->posted, NULL, memory_order_release);
    return true;
}

/* Bits of the slots in `users` that have an operation. All are in other cores' caches: they
 * come from there side by side, not one after the other. */
static uint32_t find_posted(const rmm_combiner_t *combiner, uint32_t users)
{
    uint32_t found = 0;

    for (uint32_t bits = users; bits != 0; bits &= bits - 1) {
        uint32_t index = (uint32_t)__builtin_ctz(bits);

        __builtin_prefetch(&combiner->slots[index].posted, 1);
    }
    for (uint32_t bits = users; bits != 0; bits &= bits - 1) {
        uint32_t index = (uint32_t)__builtin_ctz(bits);
        const char *posted = (const char *)atomic_load_explicit(
            &combiner->slots[index].posted, memory_order_relaxed);

        if (posted != NULL) {
            __builtin_prefetch(posted, 1);
            __builtin_prefetch(posted + RMM_CACHE_LINE, 1);
            found |= UINT32_C(1) << index;
        }
    }
    return found;
}

/* Bits of the slots in `users` that had an operation. */
static uint32_t serve_once(rmm_combiner_t *combiner, uint32_t users, uint32_t *served)
{
    uint32_t found = 0;

    for (uint32_t bits = find_posted(combiner, users); bits != 0; bits &= bits - 1) {
        uint32_t index = (uint32_t)__builtin_ctz(bits);

        if (serve_slot(&combiner->slots[index])) {
            found |= UINT32_C(1) << index;
            ++*served;
        }
    }
    return found;
}

static bool is_one_bit(uint32_t bits)
{
    return (bits & (bits - 1)) == 0;
}

/* Slots that stayed empty are no longer looked at. */
static void forget_users(rmm_combiner_t *combiner, uint32_t seen)
{
    uint32_t kept = is_one_bit(seen) ? 0 : seen;

    if ((atomic_load_explicit(&combiner->users, memory_order_relaxed) & ~kept) != 0) {
        atomic_fetch_and_explicit(&combiner->users, kept, memory_order_relaxed);
    }
}

void rmm__combiner_serve_locked(rmm_combiner_t *combiner)
{
    uint32_t served = 0;
    uint32_t seen = 0;
    int idle = 0;

    RMM_ASSERT_LOCKED(&combiner->lock);
    while (idle < IDLE_LOOKS && served < SERVED_MOST) {
        uint32_t users = atomic_load_explicit(&combiner->users, memory_order_relaxed);
        uint32_t found = serve_once(combiner, users, &served);

        seen |= found;
        if (is_one_bit(users)) {
            break; /* no other thread to wait for */
        }
        idle = found != 0 ? 0 : idle + 1;
        if (found == 0) {
            relax();
        }
    }
    if (served < SERVED_MOST) {
        forget_users(combiner, seen);
    }
}

/* --- the thread that waits ----------------------------------------------------------- */

static bool post(rmm_combiner_t *combiner, uint32_t index, rmm_combined_t *operation)
{
    uint32_t bit = UINT32_C(1) << index;
    rmm_combined_t *none = NULL;

    if ((atomic_load_explicit(&combiner->users, memory_order_relaxed) & bit) == 0) {
        atomic_fetch_or_explicit(&combiner->users, bit, memory_order_relaxed);
    }
    /* release: pairs with serve_slot(). False: another thread's, two share the slot */
    return atomic_compare_exchange_strong_explicit(
        &combiner->slots[index].posted, &none, operation, memory_order_release,
        memory_order_relaxed);
}

/* Its slot holds this operation until it is done, and cannot be another's before. */
static inline bool
is_done(const rmm_combiner_t *combiner, uint32_t index, const rmm_combined_t *operation)
{
    /* acquire: pairs with serve_slot(); what the operation wrote is seen */
    return atomic_load_explicit(&combiner->slots[index].posted, memory_order_acquire) !=
           operation;
}

/* With the lock: run it, if nobody was faster, and the others'. */
static void run_and_unlock(
    rmm_combiner_t *combiner, uint32_t index, const rmm_combined_t *operation)
{
    if (!is_done(combiner, index, operation)) {
        (void)serve_slot(&combiner->slots[index]);
    }
    rmm__combiner_unlock(combiner);
}

static void
try_to_serve(rmm_combiner_t *combiner, uint32_t index, const rmm_combined_t *operation)
{
    if (atomic_load_explicit(&combiner->lock.held, memory_order_relaxed) == 0 &&
        rmm__mutex_trylock(&combiner->lock)) {
        run_and_unlock(combiner, index, operation);
    }
}

/* Not to look at the slot too often: each look takes its line from the thread that serves. */
static void rest(void)
{
    for (int i = 0; i < PAUSES; i++) {
        relax();
    }
}

void rmm__combiner_post(rmm_combiner_t *combiner, rmm_combined_t *operation)
{
    uint32_t index = slot_of_thread();

    if (!post(combiner, index, operation)) {
        rmm__mutex_lock(&combiner->lock);
        operation->run(operation);
        rmm__combiner_unlock(combiner);
        return;
    }
    for (int look = 0; look < LOOKS; look++) {
        if (look % LOCK_LOOKS == 0) {
            try_to_serve(combiner, index, operation);
        }
        if (is_done(combiner, index, operation)) {
            return;
        }
        rest();
    }
    rmm__mutex_lock(&combiner->lock);
    run_and_unlock(combiner, index, operation);
}
