/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The function that is queued on a GPU, in C: for the simulated GPU, and as the model of
 * guards.ptx, which does the same with the threads of a block for each guard.
 */
#include "diag/guards.h"

typedef struct run {
    rmm_guard_state_t *state;
    const rmm_guard_t *guard;
} run_t;

/* acquire: what is read next is read behind it; pairs with put() and rmm__guards_open() */
static bool says(const run_t *run, const _Atomic(uint32_t) *word)
{
    return atomic_load_explicit(word, memory_order_acquire) == run->guard->number;
}

/* release: the bytes are written, or read; pairs with says() */
static void put(const run_t *run, _Atomic(uint32_t) *word)
{
    atomic_store_explicit(word, run->guard->number, memory_order_release);
}

static bool is_open(const run_t *run)
{
    return says(run, &run->state->open) && !says(run, &run->state->over);
}

/* Volatile: other work may write there meanwhile. */
static volatile unsigned char *bytes_of(const run_t *run)
{
    return (volatile unsigned char *)(uintptr_t)run->guard->address;
}

static void fill(const run_t *run)
{
    if (!is_open(run)) {
        return; /* freed meanwhile: the memory may be another block's */
    }
    for (uint32_t i = 0; i < run->guard->bytes; i++) {
        bytes_of(run)[i] = RMM_GUARD_PATTERN;
    }
    put(run, &run->state->filled);
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
    uint32_t bad = run->guard->bytes;

    if (is_open(run) && says(run, &run->state->filled)) {
        bad = first_bad(run);
    }
    if (bad == run->guard->bytes || !is_open(run)) {
        return 0;
    }
    put(run, &run->state->over);
    return RMM_GUARD_BROKEN | bad;
}

void rmm__guards_run(const rmm_guard_job_t *job)
{
    rmm_guard_state_t *states = (rmm_guard_state_t *)(uintptr_t)job->states;
    _Atomic(uint64_t) *results = (_Atomic(uint64_t) *)(uintptr_t)job->results;

    for (uint32_t i = 0; i < job->count; i++) {
        const run_t run = {&states[job->guards[i].slot], &job->guards[i]};
        uint32_t result = 0;

        if (job->action == RMM_GUARD_FILL) {
            fill(&run);
            continue;
        }
        result = check(&run);
        if (job->action == RMM_GUARD_CLOSE && is_open(&run)) {
            put(&run, &run.state->over);
        }
        /* relaxed: the word is all there is to read */
        atomic_store_explicit(
            &results[i], (uint64_t)job->tag << 32 | result, memory_order_relaxed);
    }
}
