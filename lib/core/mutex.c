/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The slow paths of the lock: spinning, sleeping, waking.
 *
 * Spinning is test and test-and-set with bounded exponential backoff (Anderson 1990): the
 * word is only read until the lock is free, less and less often. Sleeping is an event count
 * over a futex (Linux; Drepper, "Futexes are tricky"): sleepers sleep on `wakes`, and
 * `sleepers` counts the wakes that are owed. An unlock needs no fence, by asymmetric
 * synchronisation (Dice, Huang, Yang, "Asymmetric Dekker synchronization", 2001): the
 * sleeper pays for both sides with membarrier(2).
 *
 * A thread about to sleep                  A thread that unlocks
 *   s1 seq = wakes                           u1 held = 0
 *   s2 sleepers++                            u2 read mode; quick: done
 *   s3 make the lock careful, see below      u3 read sleepers, by a read-modify-write
 *   s4 try to take it; done if that works    u4 if any: sleepers--, wakes++, wake one
 *   s5 sleep while wakes == seq
 *
 * Careful: both modify `sleepers` (s2, u3; acq_rel). The later of the two sees all that the
 * other thread did before: either u3 sees the sleeper, or s4 sees u1's store or that of a
 * later owner, for whose unlock the same holds.
 *
 * Wakes owed: sleepers + the wakes between u4's first and last step >= threads that sleep
 * at s5 or will. Each sleeper adds one first (s2). A thread that takes one away increments
 * `wakes` afterwards. So a thread that had added its one by then either does not fall
 * asleep, because its seq is older, or sleeps already; one of those asleep is woken. One
 * wake less is owed, and at least one sleeper less is left. A thread that did not sleep in
 * the end leaves its one behind, and a later unlock wakes no thread. It cannot take its one
 * back: that might be another thread's.
 *
 * Quick: u2 may be executed before u1 is visible. s3 sets `mode` and has the kernel execute
 * a full barrier in every running thread of the process (MEMBARRIER_CMD_PRIVATE_EXPEDITED;
 * a thread that is not running had one when it was switched out). In the unlocking thread
 * this barrier is either before u2, which then sees the mode and goes on to u3, or after
 * u2, hence after u1, which s4 then sees.
 *
 * `mode` is version << 2 | QUICK or RAISING or neither (careful):
 *
 *   quick v -> raising v    s3, before the barrier     unlocks are careful from here on
 *   raising v -> careful v  s3, after the barrier      further sleepers need none
 *   careful v -> quick v+1  calm_down(), lock held     stays if it then finds no sleepers
 *   quick v -> careful v    calm_down(), lock held     if it did find one
 *
 * The version keeps a late raiser of v from declaring v+1 careful after its old barrier.
 * calm_down() stores, then reads `sleepers` by a read-modify-write: a sleeper that it
 * does not see will see, at s3, that the lock is quick. calm_down() holds the lock. So a
 * thread that acted on the short quick state had unlocked before, visibly to every thread
 * that sees the lock held by calm_down(); the unlock of calm_down() comes after.
 *
 * A lock begins careful if the process has not registered for membarrier() yet
 * (RMM_MUTEX_INITIALIZER), and stays careful where the kernel has no membarrier(). Where it
 * worked and then fails (a sandbox entered late), quick locks stay in `raising`, and
 * sleepers check again every millisecond.
 *
 * Forks: a child inherits the locks that its one thread holds. Wakes may be owed to sleepers
 * of the parent: in the child these calls wake no thread. On some kernels a child is no
 * longer registered with membarrier() (EPERM): it registers again.
 */
#include "core/mutex.h"

#include <errno.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"

#define RAISING 2u
#define VERSION 4u /* one version in `mode` */
#define FIRST_PAUSES 16
#define MOST_PAUSES 4096 /* some 60 to 220 us */
#define LOOK_AGAIN_NS 1000000

_Static_assert(sizeof(_Atomic(uint32_t)) == 4, "a futex is 32 bits");

/*
 * The pauses are long because the protected data moves from core to core with the lock: a
 * thread that just took it pays cache misses for many operations. If the waiting threads
 * poll rarely, one thread keeps the lock for longer. Figures:
 * docs/decisions/0014-a-plain-lock.md.
 */
static const rmm_mutex_tuning_t usual = {.spin_ns = 100000, .calm_unlocks = 1000};
static rmm_mutex_tuning_t tuning = {.spin_ns = 100000, .calm_unlocks = 1000};

enum { UNKNOWN, WORKS, MISSING };
static atomic_int barrier_state = UNKNOWN;
static atomic_int cpu_count; /* CPUs that this process may run on; 0: not asked yet */

void rmm__mutex_tune(const rmm_mutex_tuning_t *wanted)
{
    tuning = wanted != NULL ? *wanted : usual;
    atomic_store_explicit(&barrier_state, UNKNOWN, memory_order_relaxed);
    atomic_store_explicit(&cpu_count, 0, memory_order_relaxed);
}

/* --- the system ------------------------------------------------------------------- */

static int membarrier_call(int command)
{
    return tuning.membarrier != NULL ? tuning.membarrier(command)
                                     : (int)syscall(SYS_membarrier, command, 0, 0);
}

/* Registers once. Twice does no harm: the answer is the same. */
static bool barrier_works(void)
{
    int state = atomic_load_explicit(&barrier_state, memory_order_relaxed);

    if (state == UNKNOWN) {
        state = membarrier_call(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0
                    ? WORKS
                    : MISSING;
        atomic_store_explicit(&barrier_state, state, memory_order_relaxed);
    }
    return state == WORKS;
}

/* A full barrier in every thread of the process; false: it could not be done. */
static bool barrier_everywhere(void)
{
    if (membarrier_call(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0) {
        return true;
    }
    if (errno == EPERM && /* a forked child */
        membarrier_call(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0 &&
        membarrier_call(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0) {
        return true;
    }
    atomic_store_explicit(&barrier_state, MISSING, memory_order_relaxed);
    return false;
}

static void futex_wait(rmm_mutex_t *mutex, uint32_t seq, const struct timespec *most)
{
    syscall(SYS_futex, &mutex->wakes, FUTEX_WAIT_PRIVATE, seq, most, NULL, 0);
}

static void futex_wake_one(rmm_mutex_t *mutex)
{
    syscall(SYS_futex, &mutex->wakes, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static inline void cpu_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");
#else
    __asm__ volatile("" ::: "memory");
#endif
}

/* On one processor the holder does not run while another spins. */
static bool may_spin(void)
{
    int count = atomic_load_explicit(&cpu_count, memory_order_relaxed);

    if (count == 0) {
        cpu_set_t set;

        /* an error: more processors than the set has bits */
        count = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 2;
        atomic_store_explicit(&cpu_count, count, memory_order_relaxed);
    }
    return count > 1 && tuning.spin_ns != 0;
}

/* --- waiting ---------------------------------------------------------------------- */

static bool try_when_free(rmm_mutex_t *mutex)
{
    return atomic_load_explicit(&mutex->held, memory_order_relaxed) == 0 &&
           rmm__mutex_trylock(mutex);
}

/* True: taken. Reads the clock only after the backoff has grown to its bound. */
static bool spin(rmm_mutex_t *mutex)
{
    uint64_t deadline = 0;
    int pauses = FIRST_PAUSES;

    if (!may_spin()) {
        return try_when_free(mutex);
    }
    while (!try_when_free(mutex)) {
        for (int i = 0; i < pauses; i++) {
            cpu_pause();
        }
        if (pauses < MOST_PAUSES) {
            pauses *= 2;
        } else if (deadline == 0) {
            deadline = rmm__clock_ns(CLOCK_MONOTONIC) + tuning.spin_ns;
        } else if (rmm__clock_ns(CLOCK_MONOTONIC) > deadline) {
            return false;
        }
    }
    return true;
}

/* s3: after this, an unlock that s4 cannot see looks for sleepers. False: not certain. */
static bool make_careful(rmm_mutex_t *mutex)
{
    /* acquire: pairs with the release below, in the thread that made the barrier */
    uint32_t mode = atomic_load_explicit(&mutex->mode, memory_order_acquire);

    while (mode & RMM_MUTEX_QUICK) {
        if (atomic_compare_exchange_weak_explicit(
                &mutex->mode, &mode, mode ^ (RMM_MUTEX_QUICK | RAISING),
                memory_order_acq_rel, memory_order_acquire)) {
            mode ^= RMM_MUTEX_QUICK | RAISING;
        }
    }
    if ((mode & RAISING) == 0) {
        return true;
    }
    if (!barrier_everywhere()) {
        return false;
    }
    /* release: others rely on this barrier. Failure: another thread made one as well. */
    atomic_compare_exchange_strong_explicit(
        &mutex->mode, &mode, mode & ~RAISING, memory_order_release,
        memory_order_relaxed);
    return true;
}

/* True: the lock became free and is taken now. False: the caller tries again. */
static bool sleep_on(rmm_mutex_t *mutex)
{
    static const struct timespec look_again = {.tv_nsec = LOOK_AGAIN_NS};
    uint32_t seq = atomic_load_explicit(&mutex->wakes, memory_order_acquire); /* s1 */
    bool sure;

    /* s2, acq_rel: pairs with the same in rmm__mutex_look() and calm_down() */
    atomic_fetch_add_explicit(&mutex->sleepers, 1, memory_order_acq_rel);
    sure = make_careful(mutex);
    if (rmm__mutex_trylock(mutex)) { /* s4 */
        return true;
    }
    futex_wait(mutex, seq, sure ? NULL : &look_again); /* s5 */
    return false;
}

void rmm__mutex_wait(rmm_mutex_t *mutex)
{
    int error = errno;

    while (!spin(mutex) && !sleep_on(mutex)) {
    }
    errno = error;
}

/* --- after an unlock of a careful lock -------------------------------------------- */

/* u4, unless other threads have made all wakes that were owed. */
static void wake_one(rmm_mutex_t *mutex)
{
    uint32_t owed = atomic_load_explicit(&mutex->sleepers, memory_order_relaxed);

    while (owed != 0) {
        /* acquire: the sleepers' s1 is before this wakes++ */
        if (atomic_compare_exchange_weak_explicit(
                &mutex->sleepers, &owed, owed - 1, memory_order_acq_rel,
                memory_order_relaxed)) {
            atomic_fetch_add_explicit(&mutex->wakes, 1, memory_order_release);
            futex_wake_one(mutex);
            return;
        }
    }
}

/* u3 and u4. False: no thread was asleep. */
static bool wake_if_any(rmm_mutex_t *mutex)
{
    /* acq_rel: pairs with s2 */
    if (atomic_fetch_add_explicit(&mutex->sleepers, 0, memory_order_acq_rel) == 0) {
        return false;
    }
    wake_one(mutex);
    return true;
}

/* No thread has slept for a while: make unlocks quick again. */
static void calm_down(rmm_mutex_t *mutex)
{
    uint32_t careful, quick;

    if (!barrier_works() || !rmm__mutex_trylock(mutex)) {
        return;
    }
    careful = atomic_load_explicit(&mutex->mode, memory_order_relaxed);
    quick = (careful + VERSION) | RMM_MUTEX_QUICK;
    if ((careful & (RMM_MUTEX_QUICK | RAISING)) == 0) {
        /* only the thread that holds the lock changes it from careful */
        atomic_store_explicit(&mutex->mode, quick, memory_order_release);
        if (atomic_fetch_add_explicit(&mutex->sleepers, 0, memory_order_acq_rel) != 0) {
            /* release: as in make_careful(). Failure: a sleeper raises it already. */
            atomic_compare_exchange_strong_explicit(
                &mutex->mode, &quick, quick & ~RMM_MUTEX_QUICK, memory_order_release,
                memory_order_relaxed);
        }
    }
    rmm__mutex_release(mutex); /* u1 */
    wake_if_any(mutex);
}

void rmm__mutex_look(rmm_mutex_t *mutex)
{
    int error = errno;
    uint32_t calm = 0;

    if (!wake_if_any(mutex)) {
        calm = atomic_load_explicit(&mutex->calm, memory_order_relaxed) + 1;
        if (calm >= tuning.calm_unlocks) {
            calm_down(mutex);
            calm = 0;
        }
    }
    atomic_store_explicit(&mutex->calm, calm, memory_order_relaxed);
    errno = error;
}

void rmm__mutex_init(rmm_mutex_t *mutex)
{
    atomic_init(&mutex->held, 0);
    atomic_init(&mutex->mode, barrier_works() ? RMM_MUTEX_QUICK : 0);
    atomic_init(&mutex->sleepers, 0);
    atomic_init(&mutex->wakes, 0);
    atomic_init(&mutex->calm, 0);
#ifndef NDEBUG
    atomic_init(&mutex->owner, 0);
#endif
}
