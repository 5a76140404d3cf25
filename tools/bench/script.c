/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The same seed gives the same script on every machine: no rand(), and no floating point
 * but exp2(), whose result is rounded to bytes.
 */
#include "bench/script.h"

#include <math.h>
#include <stdlib.h>

#define CHURN_MIN_EXPONENT 8.0
#define CHURN_MAX_EXPONENT 22.0
#define MIX_ALLOCATE_PERCENT 73

uint64_t script_random(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* 0 to bound - 1, evenly enough for bounds far below 2^64. */
static uint64_t below(uint64_t *state, uint64_t bound)
{
    return script_random(state) % bound;
}

static bool make(size_t ops, size_t handles, unsigned ops_per_unit, script_t *out)
{
    *out = (script_t){.handle_count = handles, .ops_per_unit = ops_per_unit};
    out->ops = malloc(ops * sizeof *out->ops);
    return out->ops != NULL;
}

static void put(script_t *script, size_t handle, uint64_t bytes)
{
    script->ops[script->op_count++] =
        (script_op_t){.handle = (uint32_t)handle, .bytes = (uint32_t)bytes};
}

bool script_pair(uint32_t bytes, size_t pairs, script_t *out)
{
    if (!make(2 * pairs, 1, 2, out)) {
        return false;
    }
    for (size_t i = 0; i < pairs; i++) {
        put(out, 0, bytes);
        put(out, 0, 0);
    }
    return true;
}

static uint64_t churn_bytes(uint64_t *state)
{
    double part = (double)(script_random(state) >> 11) * 0x1p-53;
    double range = CHURN_MAX_EXPONENT - CHURN_MIN_EXPONENT;
    return (uint64_t)exp2(CHURN_MIN_EXPONENT + part * range);
}

bool script_churn(size_t live, size_t steps, uint64_t seed, script_t *out)
{
    if (!make(live + 2 * steps, live, 2, out)) {
        return false;
    }
    for (size_t i = 0; i < live; i++) {
        put(out, i, churn_bytes(&seed));
    }
    out->setup_count = live;
    for (size_t i = 0; i < steps; i++) {
        size_t handle = below(&seed, live);
        put(out, handle, 0);
        put(out, handle, churn_bytes(&seed));
    }
    return true;
}

/* The blocks that are out while a mix is made, and the handles that are not. */
typedef struct mix_state {
    uint32_t *live;  /* handles in use, then those that are free */
    uint32_t *bytes; /* of each handle */
    size_t live_count;
    uint64_t live_bytes;
} mix_state_t;

static void mix_allocate(script_t *script, mix_state_t *state, uint32_t bytes)
{
    uint32_t handle = state->live[state->live_count++];
    state->bytes[handle] = bytes;
    state->live_bytes += bytes;
    put(script, handle, bytes);
}

static void mix_free(script_t *script, mix_state_t *state, size_t index)
{
    uint32_t handle = state->live[index];
    state->live[index] = state->live[--state->live_count];
    state->live[state->live_count] = handle;
    state->live_bytes -= state->bytes[handle];
    put(script, handle, 0);
}

static void fill_mix(const script_mix_t *mix, mix_state_t *state, script_t *script)
{
    uint64_t random = mix->seed;
    size_t made = 0;
    while (made < mix->allocations) {
        bool wanted = below(&random, 100) < MIX_ALLOCATE_PERCENT;
        uint32_t bytes = (uint32_t)below(&random, mix->max_bytes) + 1;
        bool fits = state->live_bytes + bytes <= mix->live_bytes;
        if (state->live_count == 0 || (wanted && fits)) {
            mix_allocate(script, state, bytes);
            made++;
        } else {
            mix_free(script, state, below(&random, state->live_count));
        }
    }
    while (state->live_count > 0) {
        mix_free(script, state, below(&random, state->live_count));
    }
}

bool script_mix(const script_mix_t *mix, script_t *out)
{
    mix_state_t state = {
        .live = malloc(mix->allocations * sizeof *state.live),
        .bytes = calloc(mix->allocations, sizeof *state.bytes)};
    bool made = state.live != NULL && state.bytes != NULL &&
                make(2 * mix->allocations, mix->allocations, 1, out);
    if (made) {
        for (size_t i = 0; i < mix->allocations; i++) {
            state.live[i] = (uint32_t)i;
        }
        fill_mix(mix, &state, out);
    }
    free(state.live);
    free(state.bytes);
    return made;
}

void script_fini(script_t *script)
{
    free(script->ops);
    *script = (script_t){0};
}
