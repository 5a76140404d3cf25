/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How threads wait, and how long one serves the others (combiner.h).
 *
 * The posting thread fills an empty slot. The thread that holds the lock runs the operation
 * and then empties the slot, which tells the posting thread that it is done. Every thread,
 * the posting one included, runs an operation from a slot only under the lock: so each
 * operation runs once.
 *
 * `users` tells which slots are worth a look. A thread sets its bit before it posts, and the
 * bit stays while the thread keeps posting. The serving thread clears the bits of slots that
 * stayed empty while it served, and all of them if only one was in use. A missing bit delays
 * an operation but does not lose it: a thread with a posted operation tries the lock itself.
 *
 * The serving thread scans the slots as long as operations come, so that the data stays in
 * one core's cache. SERVED_MOST bounds how long it works for others.
 */
#include "core/combiner.h"

#include <sched.h>
#include <stdbool.h>

#define SERVED_MOST 2048 /* operations, some 0.5 ms, before another thread serves */
#define IDLE_LOOKS 32    /* scans in a row that find no operation, about 1 us */
#define PAUSES 4         /* between two polls of a waiting thread, some 150 ns */
#define LOOKS 200        /* polls before a waiting thread sleeps, some 30 us */
#define LOCK_LOOKS 8     /* polls between two attempts to take the lock */

static inline void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Threads are assigned to slots in the order of their first call. */
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

/* --- the thread that holds the lock -------------------------------------------------- */

/* True: there was an operation, and it was run. Only a load and a store: an atomic
 * read-modify-write would wait for earlier stores to lines that other cores read. */
static bool serve_slot(rmm_combiner_slot_t *slot)
{
    /* acquire: pairs with post(); makes the poster's writes visible */
    rmm_combined_t *operation =
        atomic_load_explicit(&slot->posted, memory_order_acquire);

    if (operation == NULL) {
        return false;
    }
    operation->run(operation);
    /* release: pairs with is_done(); then the operation is its caller's again */
    atomic_store_explicit(&slot->posted, NULL, memory_order_release);
    return true;
}

/* Bits of the slots in `users` that have an operation. All are in other cores' caches:
 * prefetching lets the misses overlap. */
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

/* Slots that stayed empty are not scanned any more. */
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
    /* release: pairs with serve_slot(). False: a thread that shares the slot uses it */
    return atomic_compare_exchange_strong_explicit(
        &combiner->slots[index].posted, &none, operation, memory_order_release,
        memory_order_relaxed);
}

/* The slot holds this operation until it is done: no other thread can post there before. */
static inline bool
is_done(const rmm_combiner_t *combiner, uint32_t index, const rmm_combined_t *operation)
{
    /* acquire: pairs with serve_slot(); makes the operation's writes visible */
    return atomic_load_explicit(&combiner->slots[index].posted, memory_order_acquire) !=
           operation;
}

/* Holding the lock: run this operation unless another thread has, then those of others. */
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

/* Between two polls of the slot: each takes its cache line from the serving thread. */
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
