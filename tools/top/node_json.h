/* SPDX-License-Identifier: Apache-2.0 */
/* A snapshot as JSON, and back. What is not known is null. */
#ifndef RMM_TOP_NODE_JSON_H
#define RMM_TOP_NODE_JSON_H

#include <jansson.h>

#include "top/node.h"

/* Rises when a key changes its meaning or goes; new keys may come. */
#define NODE_JSON_SCHEMA 1

/* NULL: no memory. */
json_t *node_json(const node_t *node);

/* Fill `node` anew by what the above made; ids of programs are not in it. False: it is none, of
 * another schema, or there is no memory. */
bool node_from_json(const json_t *json, node_t *node);

#endif /* RMM_TOP_NODE_JSON_H */
