/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One node of several: its address, and one request at a time for the `json` of its rmm-exporter.
 *
 * Trust: an answer may be anything. It is taken only if it has status 200, at most
 * FLEET_JSON_BYTES_MAX bytes (all answers that are under way together FLEET_BYTES_MAX), and is what
 * rmmfs writes. Redirects are not followed, and no other protocol than HTTP and HTTPS is spoken.
 *
 * Threads: the fleet's thread (fleet.h), but for fleet_node_init() and _fini().
 */
#ifndef RMM_TOP_FLEET_NODE_H
#define RMM_TOP_FLEET_NODE_H

#include <curl/curl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "node/node.h"

#define FLEET_PORT "19400"
#define FLEET_TIMEOUT_MS 3000L
#define FLEET_URL_BYTES 512
#define FLEET_JSON_BYTES_MAX ((size_t)32 << 20) /* rmmfs makes at most 24 MiB */
#define FLEET_BYTES_MAX ((size_t)256 << 20)
#define FLEET_USERS 64u

/* Names of users, so that a directory service is asked once for each. */
typedef struct fleet_users {
    struct {
        uid_t uid;
        char name[32];
    } users[FLEET_USERS];
    uint32_t count, next; /* the oldest gives way */
} fleet_users_t;

typedef struct fleet_node {
    char url[FLEET_URL_BYTES], name[NODE_SITE_BYTES];
    uint32_t index;
    CURL *easy;
    char *text;
    size_t used, room;
    size_t *used_by_all; /* borrowed: bytes that are under way of all nodes */
    bool is_too_long, has_memory;
} fleet_node_t;

/* NODE, NODE:PORT or a URL, of which the path may be missing. False: it is neither. */
bool fleet_node_address(
    const char *text, char url[FLEET_URL_BYTES], char name[NODE_SITE_BYTES]);

/* False: no memory, or it is no address. */
bool fleet_node_init(
    fleet_node_t *one, const char *text, uint32_t index, size_t *used_by_all);
void fleet_node_fini(fleet_node_t *one);

/* A request is over, with this result: fill `figures`, or `reason`. False: no memory. */
bool fleet_node_finish(
    fleet_node_t *one, CURLcode result, fleet_users_t *users, node_t *figures,
    char reason[NODE_REASON_BYTES]);

#endif /* RMM_TOP_FLEET_NODE_H */
