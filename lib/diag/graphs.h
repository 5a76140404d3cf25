/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs that the program has captured: their kernels, copies and fills, and the blocks that each
 * of these was given. A launch of the graph uses these blocks again; after the free of one of
 * them it is an error.
 *
 * A graph is made empty, when a capture begins, or of another one (an executable, a clone), which
 * shares its contents. What cannot be followed is unsure: graphs that the program builds or
 * changes node by node, and those for which there is no room. Their launches are not reported.
 *
 * The time of the allocation distinguishes blocks, so memory that is used again is another
 * block. A block that is freed into a capture stays the graph's. All uses of a block share one
 * record, so a free marks that alone, however many uses were captured.
 *
 * Not locked: the engine's lock protects it. Bounded: 1,024 graphs, and in all of them together
 * 262,144 nodes and 65,536 uses of blocks.
 */
#ifndef RMM_DIAG_GRAPHS_H
#define RMM_DIAG_GRAPHS_H

#include <stdbool.h>
#include <stdint.h>

#include "diag/freed.h"

#define RMM_GRAPHS_COUNT 1024u
#define RMM_GRAPHS_NODES 262144u
#define RMM_GRAPHS_REFS 65536u

/* A block that graphs use. */
typedef struct rmm_graph_block {
    uint32_t uses;         /* refs to it; 0: the record is vacant */
    uint32_t row;          /* vacant: of the next vacant record, or RMM_LIVE_NONE */
    uint64_t allocated_ns; /* which block of the row it is */
    bool is_freed;
    rmm_freed_block_t freed; /* if is_freed */
} rmm_graph_block_t;

/* A use of a block by a node. */
typedef struct rmm_graph_ref {
    uint64_t address; /* that the node was given */
    uint32_t block;   /* its record */
} rmm_graph_ref_t;

typedef struct rmm_graph_node {
    uint32_t kind; /* rmm_diag_event_kind_t */
    uint32_t user;
    uint32_t first, count; /* of the refs */
} rmm_graph_node_t;

/* The work that a graph and its copies share. */
typedef struct rmm_graph_body {
    uint32_t owners;
    bool is_unsure;
    uint64_t searched; /* number of the last search that went through it */
    rmm_graph_node_t *nodes;
    rmm_graph_ref_t *refs;
    uint32_t node_count, node_room, ref_count, ref_room;
} rmm_graph_body_t;

typedef struct rmm_graph {
    uint64_t key;
    rmm_graph_body_t *body;
    bool is_executable; /* it was made to be launched, or was */
} rmm_graph_t;

typedef struct rmm_graphs {
    rmm_graph_t entries[RMM_GRAPHS_COUNT];
    uint32_t count;
    uint32_t last;                  /* where the last search ended */
    uint64_t node_count, ref_count; /* of all bodies */
    uint64_t searches;
    rmm_graph_block_t *blocks; /* records, of which some are vacant */
    uint32_t block_count, block_room;
    uint32_t vacant; /* the first one; without meaning if block_count is 0 */
} rmm_graphs_t;

void rmm__graphs_end_all(rmm_graphs_t *graphs);

/* NULL: it is not known. */
rmm_graph_t *rmm__graphs_find(rmm_graphs_t *graphs, uint64_t key);

/* Graph `key` is new, or new again: empty where `of` is 0, else with the contents of that one. */
void rmm__graphs_made(
    rmm_graphs_t *graphs, uint64_t key, uint64_t of, bool is_executable);
void rmm__graphs_end(rmm_graphs_t *graphs, uint64_t key);

/* Its nodes are not known any more; key 0: so are those of all graphs. */
void rmm__graphs_changed(rmm_graphs_t *graphs, uint64_t key);

/* A node, and the blocks that it is given, which follow it. */
void rmm__graphs_add_node(
    rmm_graphs_t *graphs, rmm_graph_body_t *body, uint32_t kind, uint32_t user);

/* The block that has had this row since then. */
typedef struct rmm_graph_use {
    uint32_t row;
    uint64_t allocated_ns;
    uint64_t address; /* that the node is given */
} rmm_graph_use_t;

/* record: what this returned for the block's last use, or RMM_LIVE_NONE. Returns the number of the
 * block's record, if it has one. */
uint32_t rmm__graphs_add_use(
    rmm_graphs_t *graphs, rmm_graph_body_t *body, const rmm_graph_use_t *use,
    uint32_t record);

/* The record with this number if it is that block's; NULL: no graph uses the block. */
rmm_graph_block_t *rmm__graphs_block(
    rmm_graphs_t *graphs, uint32_t record, uint32_t row, uint64_t allocated_ns);

/* The first node that is given the block, of a graph that can be launched; NULL: there is none.
 * Cost: all uses of graphs that can be launched, each body once. */
const rmm_graph_node_t *
rmm__graphs_user(rmm_graphs_t *graphs, const rmm_graph_block_t *block);

/* All nodes of another graph, which is a part of it. */
void rmm__graphs_add_all(
    rmm_graphs_t *graphs, rmm_graph_body_t *body, const rmm_graph_body_t *part);

#endif /* RMM_DIAG_GRAPHS_H */
