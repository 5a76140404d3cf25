/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that each play a mix of their own on one resource until the time is over: how
 * many operations a second they make together.
 */
#include "bench/workload.h"

#include <pthread.h>
#include <string.h>

#include "bench/player.h"
#include "common/clock.h"

#define THREADS_MAX 16
#define SETTLE_TIMES 5 /* so many times as long as one thread warms up */
#define MIX_MAX_BYTES (UINT32_C(1) << 20)

typedef struct team {
    pthread_mutex_t lock; /* protects the four below */
    pthread_cond_t changed;
    unsigned ready;
    bool started;
    uint64_t until_ns;
} team_t;

typedef struct worker {
    team_t *team;
    pthread_t thread;
    script_t script;
    player_t player;
    uint64_t warm_ns, setup_ns;
    /* found: */
    uint64_t operations, end_ns;
    rmm_status_t status;
    char message[TRIAL_PROBLEM_MAX];
} worker_t;

/* Until every worker is warm and the time was set. */
static uint64_t wait_for_start(team_t *team)
{
    pthread_mutex_lock(&team->lock);
    team->ready++;
    pthread_cond_broadcast(&team->changed);
    while (!team->started) {
        pthread_cond_wait(&team->changed, &team->lock);
    }
    uint64_t until_ns = team->until_ns;
    pthread_mutex_unlock(&team->lock);
    return until_ns;
}

static void play_rounds(worker_t *worker, uint64_t until_ns)
{
    size_t end = worker->script.op_count, reached = end;
    while (reached == end && worker->status == RMM_OK) {
        worker->status = player_play_until(&worker->player, 0, end, until_ns, &reached);
        worker->operations += reached;
    }
}

/* A whole round, so that the resource holds enough for any other, and some more: a pool with
 * many threads needs a while to settle. */
static void warm_up(worker_t *worker)
{
    size_t end = worker->script.op_count, reached;
    worker->status = player_play_until(
        &worker->player, 0, end, clock_ns() + worker->setup_ns, &reached);
    if (reached == end) {
        play_rounds(worker, clock_ns() + worker->warm_ns);
    }
}

static void *work(void *argument)
{
    worker_t *worker = argument;
    warm_up(worker);
    player_clear(&worker->player);
    worker->operations = 0;
    uint64_t until_ns = wait_for_start(worker->team);
    play_rounds(worker, until_ns);
    worker->end_ns = clock_ns();
    if (worker->status != RMM_OK) { /* the last error is this thread's */
        trial_t failed = {.latencies = NULL};
        trial_fail(&failed, worker->status);
        memcpy(worker->message, failed.problem, sizeof worker->message);
    }
    player_clear(&worker->player);
    return NULL;
}

/* Starts all at once, when `count` are warm; returns when that was. */
static uint64_t start_team(team_t *team, unsigned count, uint64_t run_ns)
{
    pthread_mutex_lock(&team->lock);
    while (team->ready < count) {
        pthread_cond_wait(&team->changed, &team->lock);
    }
    uint64_t now_ns = clock_ns();
    team->until_ns = now_ns + run_ns;
    team->started = true;
    pthread_cond_broadcast(&team->changed);
    pthread_mutex_unlock(&team->lock);
    return now_ns;
}

static void
add_up(const worker_t *workers, unsigned count, uint64_t begin_ns, trial_t *trial)
{
    uint64_t end_ns = begin_ns + 1;
    for (unsigned i = 0; i < count; i++) {
        trial->operations += workers[i].operations;
        end_ns = workers[i].end_ns > end_ns ? workers[i].end_ns : end_ns;
        if (workers[i].status != RMM_OK) {
            trial_refuse(trial, workers[i].message);
        }
    }
    trial->value = (double)trial->operations * 1e3 / (double)(end_ns - begin_ns);
}

static void run_team(worker_t *workers, unsigned count, trial_t *trial)
{
    team_t team = {
        .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    unsigned started = 0;
    while (started < count) {
        workers[started].team = &team;
        workers[started].warm_ns = SETTLE_TIMES * trial->scale->warm_ns;
        workers[started].setup_ns = trial->scale->setup_ns;
        if (pthread_create(&workers[started].thread, NULL, work, &workers[started]) !=
            0) {
            break;
        }
        started++;
    }
    uint64_t begin_ns = start_team(&team, started, trial->scale->run_ns);
    for (unsigned i = 0; i < started; i++) {
        pthread_join(workers[i].thread, NULL);
    }
    add_up(workers, started, begin_ns, trial);
    if (started < count) {
        trial_refuse(trial, "cannot start all threads");
    }
}

static void make_worker(
    worker_t *worker, unsigned number, unsigned count, rmm_stream_t stream,
    trial_t *trial)
{
    const script_mix_t mix = {
        .allocations = trial->scale->mix_allocations / 4,
        .max_bytes = (uint32_t)MIX_MAX_BYTES,
        .live_bytes = MIX_LIVE_BYTES / count,
        .seed = trial->seed + number};
    if (!script_mix(&mix, &worker->script) ||
        !player_init(&worker->player, &worker->script, trial->resource, stream)) {
        trial_refuse(trial, "no host memory");
    }
}

static void use_streams(const rmm_stream_t *streams, unsigned count, trial_t *trial)
{
    worker_t workers[THREADS_MAX] = {0};
    for (unsigned i = 0; i < count && trial->problem[0] == '\0'; i++) {
        make_worker(&workers[i], i, count, streams[i], trial);
    }
    if (trial->problem[0] == '\0') {
        run_team(workers, count, trial);
    }
    for (unsigned i = 0; i < count; i++) {
        player_fini(&workers[i].player);
        script_fini(&workers[i].script);
    }
}

/* One for each thread, or the same one for all. */
void run_threads(const workload_t *workload, trial_t *trial)
{
    unsigned count = (unsigned)workload->amount;
    unsigned wanted = workload->stream == WORKLOAD_OWN ? count : 1, made = 0;
    rmm_stream_t streams[THREADS_MAX];
    rmm_status_t status = RMM_OK;
    while (made < wanted && status == RMM_OK) {
        status = rmm_stream_create(RMM_STREAM_NON_BLOCKING, &streams[made]);
        made += status == RMM_OK;
    }
    for (unsigned i = made; i < count && made > 0; i++) {
        streams[i] = streams[0];
    }
    trial_fail(trial, status);
    if (status == RMM_OK) {
        use_streams(streams, count, trial);
    }
    for (unsigned i = 0; i < made; i++) {
        trial_fail(trial, rmm_stream_destroy(streams[i]));
    }
}
