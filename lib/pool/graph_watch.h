/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which graphs are gone (docs/decisions/0008). A *watch* is a user object of one graph. When
 * the last copy of the graph is destroyed, the driver calls a function with it, which puts the
 * watch in the *post* of its engine. The engine empties the post from time to time. So what it
 * costs to learn that a graph is gone does not depend on how many other graphs there are.
 *
 * Locking: none. The driver may call from any thread, also after the engine is destroyed.
 */
#ifndef RMM_POOL_GRAPH_WATCH_H
#define RMM_POOL_GRAPH_WATCH_H

#include "pool/engine_impl.h"

/* Two owners: the capture, and the graph, after which comes the post, then who empties that. */
typedef struct graph_watch {
    atomic_uint owners;
    atomic_bool is_gone;
    graph_post_t *post;
    uint64_t capture_id;
    struct graph_watch *next; /* in the post, or of those taken out */
} graph_watch_t;

/* NULL without host memory. leave(): the engine ends. */
graph_post_t *rmm__graph_post_create(void);
void rmm__graph_post_leave(graph_post_t *post);

/* A list of those whose graphs are gone, each to be left; or NULL. */
graph_watch_t *rmm__graph_post_take_all(graph_post_t *post);

/* Watch the graph that the stream captures into; NULL if that is impossible. Then a watch of
 * this id comes into the post nevertheless. Calls the driver. */
graph_watch_t *
rmm__graph_watch(const engine_t *engine, uint64_t capture_id, rmm_stream_t stream);
/* Its graph can run no more. It is in the post, was, or soon is. */
bool rmm__graph_watch_is_gone(const graph_watch_t *watch);
void rmm__graph_watch_leave(graph_watch_t *watch);

#endif /* RMM_POOL_GRAPH_WATCH_H */
