/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trials that play a script on one thread: pair, churn, mix.
 *
 * First a warm-up, which also finds out how long a round takes. A resource that does not
 * get through it in time is measured on the part that it reached. Then rounds under the
 * clock, then one with the time of each operation, which is slower for the clock's calls.
 */
#include "bench/workload.h"

#include <stdio.h>

#include "bench/foreign_stream.h"
#include "bench/player.h"
#include "bench/poll.h"
#include "common/clock.h"

#define PAIRS 2000
#define SETUP_LEAST 2000
#define CUT_LEAST 1000
#define LATENCIES_MAX 40000 /* of a trial */

/* Back to what the script begins with. */
static rmm_status_t rewind_script(player_t *player)
{
    player_clear(player);
    return player_play(player, 0, player->script->setup_count);
}

typedef struct rounds {
    size_t begin, end; /* the operations of one */
    uint64_t count;
} rounds_t;

/* Not for long: 100,000 calls of the driver take seconds, and as many for each trial. */
static rmm_status_t set_up(player_t *player, trial_t *trial)
{
    size_t wanted = player->script->setup_count, reached = wanted;
    size_t least = wanted < SETUP_LEAST ? wanted : SETUP_LEAST;
    uint64_t until_ns = clock_ns() + trial->scale->setup_ns;
    rmm_status_t status = player_play(player, 0, least);
    if (status == RMM_OK && least < wanted) {
        status = player_play_until(player, least, wanted, until_ns, &reached);
    }
    if (status == RMM_OK && reached < wanted) {
        snprintf(
            trial->problem, sizeof trial->problem,
            "too slow: allocating %zu of the %zu initial blocks took %.1f s", reached,
            wanted, (double)trial->scale->setup_ns / 1e9);
        trial->unsupported = true;
    }
    return status;
}

/* As far as it comes in time, but not less than CUT_LEAST operations: the first trial finds
 * that out, the others do the same. */
static rmm_status_t play_round(player_t *player, const trial_t *trial, size_t *end)
{
    const script_t *script = player->script;
    size_t begin = script->setup_count, least = begin + CUT_LEAST;
    least = least < script->op_count ? least : script->op_count;
    if (trial->cut_ops != 0) {
        *end = trial->cut_ops;
        return player_play(player, begin, *end);
    }
    uint64_t until_ns = clock_ns() + trial->scale->warm_ns;
    rmm_status_t status = player_play(player, begin, least);
    *end = least;
    return status != RMM_OK || least == script->op_count
               ? status
               : player_play_until(player, least, script->op_count, until_ns, end);
}

static rmm_status_t warm_up(player_t *player, trial_t *trial, rounds_t *rounds)
{
    const script_t *script = player->script;
    *rounds = (rounds_t){script->setup_count, script->op_count, 1};
    rmm_status_t status = set_up(player, trial);
    if (status != RMM_OK || trial->unsupported) {
        return status;
    }
    uint64_t begin = clock_ns();
    status = play_round(player, trial, &rounds->end);
    uint64_t round_ns = clock_ns() - begin + 1;
    if (status != RMM_OK) {
        return status;
    }
    if (rounds->end < script->op_count) {
        trial->cut_to_ops = rounds->end;
        return rewind_script(player);
    }
    if (trial->scale->run_ns > round_ns) {
        rounds->count = trial->scale->run_ns / round_ns;
    }
    return RMM_OK;
}

static rmm_status_t measure(player_t *player, trial_t *trial, const rounds_t *rounds)
{
    rmm_status_t status = RMM_OK;
    uint64_t begin = clock_ns();
    for (uint64_t i = 0; i < rounds->count && status == RMM_OK; i++) {
        status = player_play(player, rounds->begin, rounds->end);
    }
    uint64_t elapsed_ns = clock_ns() - begin;
    trial->operations = rounds->count * (rounds->end - rounds->begin);
    trial->value =
        (double)elapsed_ns * player->script->ops_per_unit / (double)trial->operations;
    return status;
}

static rmm_status_t
measure_each(player_t *player, trial_t *trial, const rounds_t *rounds)
{
    size_t count = rounds->end - rounds->begin;
    count = count < LATENCIES_MAX ? count : LATENCIES_MAX;
    if (!latencies_reserve(trial->latencies, count)) {
        trial_refuse(trial, "no host memory");
        return RMM_OK;
    }
    rmm_status_t status = trial->cut_to_ops != 0 ? rewind_script(player) : RMM_OK;
    if (status != RMM_OK) {
        return status;
    }
    return player_play_timed(
        player, rounds->begin, rounds->begin + count, trial->latencies);
}

static rmm_status_t play_all(player_t *player, trial_t *trial)
{
    rounds_t rounds;
    rmm_status_t status = warm_up(player, trial, &rounds);
    if (status != RMM_OK || trial->unsupported) {
        return status;
    }
    status = measure(player, trial, &rounds);
    return status == RMM_OK ? measure_each(player, trial, &rounds) : status;
}

static void play_watched(const workload_t *workload, player_t *player, trial_t *trial)
{
    poll_t *poll = NULL;
    if (workload->has_reader && !poll_start(&poll, trial->problem)) {
        trial->unsupported = true;
        return;
    }
    trial_fail(trial, play_all(player, trial));
    poll_stop(poll);
}

static void play_on(
    const workload_t *workload, const script_t *script, rmm_stream_t stream,
    trial_t *trial)
{
    player_t player;
    if (player_init(&player, script, trial->resource, stream)) {
        play_watched(workload, &player, trial);
        player_fini(&player);
    } else {
        trial_refuse(trial, "no host memory");
    }
}

static void
run_foreign(const workload_t *workload, const script_t *script, trial_t *trial)
{
    foreign_stream_t foreign;
    if (foreign_stream_open(&foreign, trial->problem)) {
        play_on(workload, script, foreign.stream, trial);
        foreign_stream_close(&foreign);
    } else {
        trial->unsupported = true;
    }
}

static void
run_script(const workload_t *workload, const script_t *script, trial_t *trial)
{
    if (workload->stream == WORKLOAD_FOREIGN) {
        run_foreign(workload, script, trial);
        return;
    }
    bool never_captures = workload->stream == WORKLOAD_NEVER_CAPTURES;
    rmm_stream_t stream =
        workload->stream == WORKLOAD_LEGACY ? RMM_STREAM_LEGACY : RMM_STREAM_PER_THREAD;
    if (workload->stream != WORKLOAD_CREATED && !never_captures) {
        play_on(workload, script, stream, trial);
        return;
    }
    rmm_status_t status = rmm_stream_create(
        RMM_STREAM_NON_BLOCKING | (never_captures ? RMM_STREAM_NEVER_CAPTURES : 0),
        &stream);
    if (status == RMM_OK) {
        play_on(workload, script, stream, trial);
        status = rmm_stream_destroy(stream);
    }
    trial_fail(trial, status);
}

static void
run_made(const workload_t *workload, bool made, script_t *script, trial_t *trial)
{
    if (made) {
        run_script(workload, script, trial);
    } else {
        trial_refuse(trial, "no host memory");
    }
    script_fini(script);
}

void run_pair(const workload_t *workload, trial_t *trial)
{
    script_t script = {0};
    bool made = script_pair((uint32_t)workload->amount, PAIRS, &script);
    run_made(workload, made, &script, trial);
}

void run_churn(const workload_t *workload, trial_t *trial)
{
    script_t script = {0};
    bool made =
        script_churn(workload->amount, trial->scale->churn_steps, trial->seed, &script);
    run_made(workload, made, &script, trial);
}

void run_mix(const workload_t *workload, trial_t *trial)
{
    script_t script = {0};
    const script_mix_t mix = {
        .allocations = trial->scale->mix_allocations,
        .max_bytes = (uint32_t)workload->amount,
        .live_bytes = MIX_LIVE_BYTES,
        .seed = trial->seed};
    run_made(workload, script_mix(&mix, &script), &script, trial);
}
