/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which graphs are gone (docs/decisions/0008). A *watch* is a user object of one graph. When
 * the last copy of the graph is destroyed, the driver calls a function with it, which puts the
 * watch in the *queue* of its engine. The engine empties the queue from time to time. So what it
 * costs to learn that a graph is gone does not depend on how many other graphs there are.
 *
 * Locking: none. The driver may call from any thread, also after the engine is destroyed.
 */
#ifndef RMM_POOL_GRAPH_WATCH_H
#define RMM_POOL_GRAPH_WATCH_H

#include "pool/engine_impl.h"

/* Two owners: the capture; and the graph, then the queue, then the thread that empties it. */
typedef struct graph_watch {
    atomic_uint owners;
    atomic_bool is_gone;
    graph_queue_t *queue;
    uint64_t capture_id;
    struct graph_watch *next; /* in the queue, or of those taken out */
} graph_watch_t;

/* NULL without host memory. The engine leaves its queue when it is destroyed. */
graph_queue_t *rmm__graph_queue_create(void);
void rmm__graph_queue_leave(graph_queue_t *queue);

/* A list of the watches in it, or NULL. The caller leaves each of them. */
graph_watch_t *rmm__graph_queue_take_all(graph_queue_t *queue);

/* Watch the graph that the stream captures into; NULL if that is impossible. Then a watch of
 * this id is put into the queue nevertheless. Calls the driver. */
graph_watch_t *
rmm__graph_watch(const engine_t *engine, uint64_t capture_id, rmm_stream_t stream);
/* Its graph cannot run again. The watch is in the queue, was there, or will soon be. */
bool rmm__graph_watch_is_gone(const graph_watch_t *watch);
void rmm__graph_watch_leave(graph_watch_t *watch);

#endif /* RMM_POOL_GRAPH_WATCH_H */
