/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is queued on a GPU, in C: for the simulated GPU, and as the model of cupti_guards.ptx, which
 * does the same with the threads of a block for each guard.
 */
#include "diag/guards.h"

typedef struct run {
    _Atomic(uint32_t) *states;
    const rmm_guard_t *guard;
} run_t;

static uint32_t state_of(const run_t *run)
{
    /* acquire: the bytes are read behind it; pairs with set_state() in guards.c */
    return atomic_load_explicit(&run->states[run->guard->slot], memory_order_acquire);
}

static void set_state(const run_t *run, uint32_t state)
{
    /* release: the bytes are written; pairs with state_of() */
    atomic_store_explicit(&run->states[run->guard->slot], state, memory_order_release);
}

/* Volatile: other work may write there meanwhile. */
static volatile unsigned char *bytes_of(const run_t *run)
{
    return (volatile unsigned char *)(uintptr_t)run->guard->address;
}

static void fill(const run_t *run)
{
    if (state_of(run) != (run->guard->ready | 1u)) {
        return; /* freed meanwhile: the memory may be another block's */
    }
    for (uint32_t i = 0; i < run->guard->bytes; i++) {
        bytes_of(run)[i] = RMM_GUARD_PATTERN;
    }
    set_state(run, run->guard->ready);
}

/* The first byte that differs; `bytes` if none does. */
static uint32_t first_bad(const run_t *run)
{
    uint32_t i = 0;

    while (i < run->guard->bytes && bytes_of(run)[i] == RMM_GUARD_PATTERN) {
        i++;
    }
    return i;
}

/* The lower half of the result. A broken guard is not checked again. */
static uint32_t check(const run_t *run)
{
    uint32_t bad;

    if (state_of(run) != run->guard->ready) {
        return 0;
    }
    bad = first_bad(run);
    if (bad == run->guard->bytes || state_of(run) != run->guard->ready) {
        return 0;
    }
    set_state(run, 0);
    return RMM_GUARD_BROKEN | bad;
}

void rmm__guards_run(const rmm_guard_job_t *job)
{
    _Atomic(uint64_t) *results = (_Atomic(uint64_t) *)(uintptr_t)job->results;

    for (uint32_t i = 0; i < job->count; i++) {
        const run_t run = {
            (_Atomic(uint32_t) *)(uintptr_t)job->states, &job->guards[i]};
        uint32_t result = 0;

        if (job->action == RMM_GUARD_FILL) {
            fill(&run);
            continue;
        }
        result = check(&run);
        if (job->action == RMM_GUARD_CLOSE && state_of(&run) == run.guard->ready) {
            set_state(&run, 0);
        }
        /* relaxed: the word is all there is to read */
        atomic_store_explicit(
            &results[i], (uint64_t)job->tag << 32 | result, memory_order_relaxed);
    }
}
