/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queued work, and when it runs. There is no thread: work runs inside driver calls, as
 * late as random choices allow, which exposes a program that forgot to wait.
 *
 * Order. Every piece of work has a sequence number. The head of a stream's queue may run
 * unless
 *  - it waits for a record that has not run, or
 *  - it is on the legacy stream, and older work is queued on a blocking stream of that
 *    device, or the other way round.
 * So work only ever waits for work of a lower number: the oldest of all can always run,
 * following what blocks a head always ends, and nothing deadlocks.
 *
 * Random choices. A sequence of pseudo-random numbers from the seed decides how often calls run
 * work, how much, and of which stream. Nothing else goes into it, no address and no time:
 * the same calls in the same order have the same effect.
 *
 * Locking: all under rmm__sim_lock.
 */
#include "driver/sim/internal.h"

#include <stdlib.h>
#include <string.h>

#define QUEUE_MAX 4096 /* pieces of work in all, then the oldest run */

typedef struct sim_policy {
    uint64_t chance;       /* of 256: a call runs some work */
    uint64_t burst;        /* then up to so much */
    bool plays_favourites; /* some streams are slower than others */
    uint64_t favour;
    bool is_prompt; /* a call runs all work */
} sim_policy_t;

static struct {
    uint64_t random;
    sim_policy_t policy;
    uint64_t sequence;
    size_t queued;
    sim_item_t *oldest, *newest; /* of all streams */
    sim_stream_t **active;       /* streams with work */
    size_t active_count, active_capacity;
    sim_item_t *spare; /* items to use again, by next */
} work;

static sim_stream_t legacy[SIM_DEVICE_MAX];

/* ---- the legacy default streams ---- */

sim_stream_t *rmm__sim_legacy(int device)
{
    return &legacy[device];
}

void rmm__sim_legacy_open(void)
{
    for (int i = 0; i < SIM_DEVICE_MAX; i++) {
        legacy[i] = (sim_stream_t){
            .device = i, .is_legacy = true, .blocking = true, .active_index = SIM_IDLE};
    }
}

void rmm__sim_stream_release_locked(sim_stream_t *stream)
{
    RMM_ASSERT(stream->destroyed && stream->head == NULL);
    free(stream);
}

/* ---- random choices ---- */

static uint64_t mix(uint64_t value) /* the finaliser of splitmix64 */
{
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
    return value ^ (value >> 31);
}

uint64_t rmm__sim_draw_locked(uint64_t limit)
{
    work.random += 0x9e3779b97f4a7c15u;
    return mix(work.random) % limit;
}

void rmm__sim_reseed_locked(uint64_t seed)
{
    static const uint16_t chances[] = {0, 2, 16, 64, 160};

    RMM_ASSERT_LOCKED(&rmm__sim_lock);
    work.random = mix(seed);
    work.policy.chance = chances[rmm__sim_draw_locked(5)];
    work.policy.burst = 1 + rmm__sim_draw_locked(6);
    work.policy.plays_favourites = rmm__sim_draw_locked(2) != 0;
    work.policy.favour = rmm__sim_draw_locked(UINT64_MAX);
    work.policy.is_prompt = false;
}

void rmm__sim_run_promptly_locked(void)
{
    RMM_ASSERT_LOCKED(&rmm__sim_lock);
    work.policy.is_prompt = true;
}

/* ---- tasks ---- */

static sim_task_t *task_create(sim_task_kind_t kind, size_t extra_bytes)
{
    sim_task_t *task = malloc(sizeof(*task) + extra_bytes);

    if (task != NULL) {
        *task = (sim_task_t){.references = 1, .kind = kind};
    }
    return task;
}

#define PARAM_ALIGN 16u

static size_t param_room(size_t bytes)
{
    return (bytes + PARAM_ALIGN - 1) / PARAM_ALIGN * PARAM_ALIGN;
}

sim_task_t *rmm__sim_task_kernel(
    rmm_sim_kernel_fn kernel, const void *const *params, const size_t *param_bytes,
    size_t param_count)
{
    size_t table = param_room(param_count * sizeof(void *));
    size_t room = table;
    sim_task_t *task;
    char *at;

    for (size_t i = 0; i < param_count; i++) {
        room += param_room(param_bytes[i]);
    }
    task = task_create(SIM_TASK_KERNEL, room);
    if (task == NULL) {
        return NULL;
    }
    task->kernel = kernel;
    task->params = (const void **)(void *)(task + 1);
    at = (char *)task->params + table;
    task->src = at;
    task->bytes = room - table;
    memset(at, 0, task->bytes);
    for (size_t i = 0; i < param_count; i++) {
        memcpy(at, params[i], param_bytes[i]);
        task->params[i] = at;
        at += param_room(param_bytes[i]);
    }
    return task;
}

sim_task_t *rmm__sim_task_copy(void *dst, const void *src, size_t bytes)
{
    sim_task_t *task = task_create(SIM_TASK_COPY, 0);

    if (task != NULL) {
        task->dst = dst;
        task->src = src;
        task->bytes = bytes;
    }
    return task;
}

sim_task_t *rmm__sim_task_set(void *dst, int value, size_t bytes)
{
    sim_task_t *task = task_create(SIM_TASK_SET, 0);

    if (task != NULL) {
        task->dst = dst;
        task->value = value;
        task->bytes = bytes;
    }
    return task;
}

sim_task_t *
rmm__sim_task_call(void (*run)(void *object), void (*drop)(void *object), void *object)
{
    sim_task_t *task = task_create(SIM_TASK_CALL, 0);

    if (task != NULL) {
        task->run = run;
        task->drop = drop;
        task->object = object;
    }
    return task;
}

void rmm__sim_task_release_locked(sim_task_t *task)
{
    if (task != NULL && --task->references == 0) {
        if (task->kind == SIM_TASK_CALL) {
            task->drop(task->object);
        }
        free(task);
    }
}

static void task_run(sim_task_t *task, int device)
{
    if (task->may_run != NULL && !task->may_run(task, device)) {
        return;
    }
    rmm__sim_thread.in_kernel = true;
    switch (task->kind) {
    case SIM_TASK_KERNEL:
        task->kernel(task->params);
        break;
    case SIM_TASK_COPY:
        memmove(task->dst, task->src, task->bytes);
        break;
    case SIM_TASK_SET:
        memset(task->dst, task->value, task->bytes);
        break;
    case SIM_TASK_CALL:
        task->run(task->object);
        break;
    }
    rmm__sim_thread.in_kernel = false;
}

/* ---- queues ---- */

void rmm__sim_item_release_locked(sim_item_t *item)
{
    RMM_ASSERT_LOCKED(&rmm__sim_lock);
    while (item != NULL && --item->references == 0) {
        sim_item_t *awaits = item->awaits;

        rmm__sim_task_release_locked(item->task);
        item->next = work.spare;
        work.spare = item;
        item = awaits;
    }
}

static sim_item_t *item_create(sim_task_t *task, sim_item_t *awaits)
{
    sim_item_t *item = work.spare;

    if (item != NULL) {
        work.spare = item->next;
    } else {
        item = malloc(sizeof(*item));
        if (item == NULL) {
            return NULL;
        }
    }
    *item = (sim_item_t){.task = task, .awaits = awaits, .references = 1};
    if (task != NULL) {
        task->references++;
    }
    if (awaits != NULL) {
        awaits->references++;
    }
    return item;
}

static bool stream_activate(sim_stream_t *stream)
{
    if (work.active_count == work.active_capacity) {
        size_t capacity = work.active_capacity == 0 ? 64 : 2 * work.active_capacity;
        sim_stream_t **active = realloc(work.active, capacity * sizeof(*active));

        if (active == NULL) {
            return false;
        }
        work.active = active;
        work.active_capacity = capacity;
    }
    stream->active_index = work.active_count;
    work.active[work.active_count++] = stream;
    return true;
}

static void stream_deactivate(sim_stream_t *stream)
{
    sim_stream_t *last = work.active[--work.active_count];

    work.active[stream->active_index] = last;
    last->active_index = stream->active_index;
    stream->active_index = SIM_IDLE;
}

static void append(sim_stream_t *stream, sim_item_t *item)
{
    item->stream = stream;
    item->sequence = ++work.sequence;
    *(stream->tail != NULL ? &stream->tail->next : &stream->head) = item;
    stream->tail = item;
    item->older = work.newest;
    *(work.newest != NULL ? &work.newest->newer : &work.oldest) = item;
    work.newest = item;
    work.queued++;
}

static void remove_head(sim_stream_t *stream)
{
    sim_item_t *item = stream->head;

    stream->head = item->next;
    if (stream->head == NULL) {
        stream->tail = NULL;
        stream_deactivate(stream);
    }
    *(item->older != NULL ? &item->older->newer : &work.oldest) = item->newer;
    *(item->newer != NULL ? &item->newer->older : &work.newest) = item->older;
    work.queued--;
}

/* Runs the head of a stream, which must not be blocked. The stream may be gone after. */
static void run_head(sim_stream_t *stream)
{
    sim_item_t *item = stream->head;

    remove_head(stream);
    if (item->task != NULL) {
        task_run(item->task, stream->device);
    }
    item->stream = NULL;
    rmm__sim_item_release_locked(item);
    if (stream->destroyed && stream->head == NULL) {
        rmm__sim_stream_release_locked(stream);
    }
}

int rmm__sim_queue_locked(
    sim_stream_t *stream, sim_task_t *task, sim_item_t *awaits, sim_item_t **item_out)
{
    sim_item_t *item = item_create(task, awaits);

    RMM_ASSERT_LOCKED(&rmm__sim_lock);
    if (item == NULL) {
        return RMM_DRIVER_MEMORY_ALLOCATION;
    }
    if (stream->head == NULL && !stream_activate(stream)) {
        rmm__sim_item_release_locked(item);
        return RMM_DRIVER_MEMORY_ALLOCATION;
    }
    append(stream, item);
    if (item_out != NULL) {
        item->references++;
        *item_out = item;
    }
    while (work.queued > QUEUE_MAX) {
        run_head(work.oldest->stream);
    }
    return RMM_DRIVER_OK;
}

static bool
overlaps(const void *ptr, uint64_t bytes, const void *begin, uint64_t length)
{
    uintptr_t a = (uintptr_t)ptr;
    uintptr_t b = (uintptr_t)begin;

    return a < b + length && b < a + bytes;
}

bool rmm__sim_queue_uses_locked(const void *begin, uint64_t bytes)
{
    RMM_ASSERT_LOCKED(&rmm__sim_lock);
    for (const sim_item_t *item = work.oldest; item != NULL; item = item->newer) {
        const sim_task_t *task = item->task;

        if (task == NULL ||
            (task->kind != SIM_TASK_COPY && task->kind != SIM_TASK_SET)) {
            continue;
        }
        if (overlaps(task->dst, task->bytes, begin, bytes) ||
            (task->kind == SIM_TASK_COPY &&
             overlaps(task->src, task->bytes, begin, bytes))) {
            return true;
        }
    }
    return false;
}

/* ---- order ---- */

static bool is_older(const sim_stream_t *stream, const sim_item_t *item)
{
    return stream->head != NULL && stream->head->sequence < item->sequence;
}

/* Work of the other side of the legacy stream's barrier that must run before this. */
static sim_stream_t *legacy_blocker(const sim_stream_t *stream, const sim_item_t *item)
{
    for (size_t i = 0; i < work.active_count; i++) {
        sim_stream_t *other = work.active[i];

        if (other->device == stream->device && other->blocking &&
            other->is_legacy != stream->is_legacy && is_older(other, item)) {
            return other;
        }
    }
    return NULL;
}

/* A stream whose head must run before this stream's can; NULL: none. */
static sim_stream_t *blocker(const sim_stream_t *stream)
{
    const sim_item_t *item = stream->head;

    if (item->awaits != NULL && !rmm__sim_item_is_done(item->awaits)) {
        return item->awaits->stream;
    }
    if (stream->is_legacy) {
        return legacy_blocker(stream, item);
    }
    if (stream->blocking && is_older(rmm__sim_legacy(stream->device), item)) {
        return rmm__sim_legacy(stream->device);
    }
    return NULL;
}

/* Run one piece of work: this stream's head, or what it waits for in the end. */
static void run_towards(sim_stream_t *stream)
{
    for (sim_stream_t *next = stream; next != NULL; next = blocker(stream)) {
        stream = next;
    }
    run_head(stream);
}

static uint64_t rank(const sim_stream_t *stream)
{
    return mix(
        stream->place * SIM_DEVICE_MAX + (uint64_t)stream->device + work.policy.favour);
}

static sim_stream_t *any_stream(void)
{
    sim_stream_t *one = work.active[rmm__sim_draw_locked(work.active_count)];
    sim_stream_t *other;

    if (!work.policy.plays_favourites) {
        return one;
    }
    other = work.active[rmm__sim_draw_locked(work.active_count)];
    return rank(one) > rank(other) ? one : other;
}

void rmm__sim_pump_locked(void)
{
    RMM_ASSERT_LOCKED(&rmm__sim_lock);
    while (work.policy.is_prompt && work.queued > 0) {
        run_towards(any_stream());
    }
    if (work.queued == 0 || rmm__sim_draw_locked(256) >= work.policy.chance) {
        return;
    }
    for (uint64_t n = 1 + rmm__sim_draw_locked(work.policy.burst);
         n > 0 && work.queued > 0; n--) {
        run_towards(any_stream());
    }
}

void rmm__sim_nudge_locked(sim_item_t *item)
{
    if (rmm__sim_draw_locked(2) == 0) {
        run_towards(item->stream);
    }
}

void rmm__sim_finish_item_locked(sim_item_t *item)
{
    while (!rmm__sim_item_is_done(item)) {
        run_towards(item->stream);
        rmm__sim_pump_locked();
    }
}

void rmm__sim_finish_stream_locked(sim_stream_t *stream)
{
    sim_item_t *last = stream->tail;

    if (last != NULL) {
        last->references++;
        rmm__sim_finish_item_locked(last);
        rmm__sim_item_release_locked(last);
    }
}

/* A stream of the device with work, drawn; NULL: none. */
static sim_stream_t *any_stream_of(int device)
{
    size_t first = work.active_count != 0 ? rmm__sim_draw_locked(work.active_count) : 0;

    for (size_t i = 0; i < work.active_count; i++) {
        sim_stream_t *stream = work.active[(first + i) % work.active_count];

        if (stream->device == device) {
            return stream;
        }
    }
    return NULL;
}

void rmm__sim_finish_device_locked(int device)
{
    sim_stream_t *stream = any_stream_of(device);

    while (stream != NULL) {
        run_towards(stream);
        stream = any_stream_of(device);
    }
}
