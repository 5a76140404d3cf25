/* SPDX-License-Identifier: Apache-2.0 */
#include "pool/graph_watch.h"

#include "core/host_memory.h"

/* The engine and each watch whose graph exists are its owners; the last one frees it. */
struct graph_queue {
    atomic_uint owners;
    _Atomic(graph_watch_t *) first; /* a stack; only emptied as a whole */
};

/* Over all graphs of the process. */
static _Atomic(uint64_t) gone_count;

uint64_t rmm__engine_graphs_gone(void)
{
    /* acquire: pairs with graph_gone() */
    return atomic_load_explicit(&gone_count, memory_order_acquire);
}

graph_queue_t *rmm__graph_queue_create(void)
{
    graph_queue_t *queue = rmm__calloc(1, sizeof(*queue));

    if (queue != NULL) {
        atomic_init(&queue->owners, 1);
    }
    return queue;
}

graph_watch_t *rmm__graph_queue_take_all(graph_queue_t *queue)
{
    /* acquire: pairs with graph_gone(); the work of these graphs is over */
    return atomic_load_explicit(&queue->first, memory_order_relaxed) != NULL
               ? atomic_exchange_explicit(&queue->first, NULL, memory_order_acquire)
               : NULL;
}

bool rmm__graph_watch_is_gone(const graph_watch_t *watch)
{
    /* acquire: pairs with graph_gone(); the graph's work is over */
    return atomic_load_explicit(&watch->is_gone, memory_order_acquire);
}

void rmm__graph_watch_leave(graph_watch_t *watch)
{
    /* release: what this owner did; acquire: what the other did, before it is freed */
    if (atomic_fetch_sub_explicit(&watch->owners, 1, memory_order_acq_rel) == 1) {
        rmm__free(watch);
    }
}

void rmm__graph_queue_leave(graph_queue_t *queue)
{
    graph_watch_t *watch;

    /* release: what this owner did; acquire: what the others did, before it is freed */
    if (atomic_fetch_sub_explicit(&queue->owners, 1, memory_order_acq_rel) != 1) {
        return;
    }
    watch = rmm__graph_queue_take_all(queue);
    while (watch != NULL) {
        graph_watch_t *next = watch->next;

        rmm__graph_watch_leave(watch);
        watch = next;
    }
    rmm__free(queue);
}

static void graph_gone(void *context)
{
    graph_watch_t *watch = context;
    graph_queue_t *queue = watch->queue;

    /* release: pairs with rmm__graph_watch_is_gone() */
    atomic_store_explicit(&watch->is_gone, true, memory_order_release);
    watch->next = atomic_load_explicit(&queue->first, memory_order_relaxed);
    /* release: pairs with rmm__graph_queue_take_all() */
    while (!atomic_compare_exchange_weak_explicit(
        &queue->first, &watch->next, watch, memory_order_release,
        memory_order_relaxed)) {
    }
    /* release: pairs with rmm__engine_graphs_gone(); the watch is in the queue */
    atomic_fetch_add_explicit(&gone_count, 1, memory_order_release);
    rmm__graph_queue_leave(queue);
}

graph_watch_t *
rmm__graph_watch(const engine_t *engine, uint64_t capture_id, rmm_stream_t stream)
{
    graph_watch_t *watch = rmm__calloc(1, sizeof(*watch));
    rmm_driver_scope_t scope;
    int error;

    if (watch == NULL) {
        return NULL;
    }
    if (!rmm__driver_relax_enter(&scope, engine->driver, engine->device, stream)) {
        rmm__free(watch);
        return NULL;
    }
    atomic_init(&watch->owners, 2);
    watch->queue = engine->captures.queue;
    watch->capture_id = capture_id;
    atomic_fetch_add_explicit(&watch->queue->owners, 1, memory_order_relaxed);
    error = engine->driver->capture_watch(stream, graph_gone, watch);
    rmm__driver_relax_leave(&scope);
    if (error != RMM_DRIVER_OK) {
        rmm__graph_watch_leave(watch); /* graph_gone() is called nevertheless */
        watch = NULL;
    }
    return watch;
}
