/* SPDX-License-Identifier: Apache-2.0 */
/* A snapshot as JSON, and back from that or from the file `json` of rmmfs. What is not known is
 * null. */
#ifndef RMM_TOP_NODE_JSON_H
#define RMM_TOP_NODE_JSON_H

#include <jansson.h>

#include "node/node.h"

/* Rises when a key changes its meaning or goes; new keys may come. */
#define NODE_JSON_SCHEMA 1
#define TREE_JSON_SCHEMA 1 /* of `json` of rmmfs */

/* NULL: no memory. */
json_t *node_json(const node_t *node);

typedef enum node_parsed { NODE_PARSED, NODE_IS_NONE, NODE_NO_MEMORY } node_parsed_t;

/* Which program this is: fills in what is not in the `json` of rmmfs. False: no memory. */
typedef bool (*node_meet_fn)(void *arg, const json_t *object, node_process_t *process);

/* Fill `node` anew. meet: of `json` of rmmfs; NULL: the above made it, and the ids of programs are
 * not in it. NODE_IS_NONE: also if it is of another schema. */
node_parsed_t
node_from_json(const json_t *json, node_meet_fn meet, void *arg, node_t *node);

#endif /* RMM_TOP_NODE_JSON_H */
