/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Snapshots of several nodes in one, by their rmm-exporters.
 *
 * A thread asks all nodes, FLEET_PARALLEL at the same time: while one answer is parsed, the others
 * wait, which counts towards their time-out. fleet_take() waits for the nodes that answered last
 * time, and at most as long as its caller wants. A node that has not answered within
 * FLEET_TIMEOUT_MS, or whose answer is none, has a reason instead of figures until it answers; it
 * delays no other node. Its devices keep their indexes.
 *
 * Locking: `lock` protects is_ending, has_memory and layout, and of each place all but `node`,
 * which is the thread's; its name does not change.
 */
#ifndef RMM_TOP_FLEET_H
#define RMM_TOP_FLEET_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "top/fleet_node.h"

#define FLEET_PARALLEL 64u

typedef enum place_state {
    PLACE_IDLE,
    PLACE_WANTED, /* for the thread to ask */
    PLACE_ASKED
} place_state_t;

typedef struct place {
    fleet_node_t node;
    place_state_t state;
    node_t figures;                 /* of the last answer */
    char reason[NODE_REASON_BYTES]; /* why the last request had none; "": it had */
    bool is_new;                    /* it has not been asked yet */
    bool has_namesake;              /* only while the names are made */
} place_t;

typedef struct fleet {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    CURLM *multi;
    place_t *places;
    uint32_t count, started; /* nodes; those that fleet_node_init() was called for */
    bool is_ending, is_started, has_memory;
    uint32_t layout; /* rises when indexes of devices change */
    uint32_t asked;  /* nodes; this and the next three are the thread's */
    size_t used_by_all;
    fleet_users_t users;
    node_t scratch;
    char failure[NODE_REASON_BYTES + NODE_SITE_BYTES + 2]; /* no node answers */
} fleet_t;

/* False with one line in message. */
bool fleet_open(
    fleet_t *fleet, const char *const *texts, uint32_t count, char *message,
    size_t message_bytes);
void fleet_close(fleet_t *fleet);

/* Fill `node` anew; wait_ns: for each FLEET_PARALLEL nodes. is_patient: wait for all nodes, also
 * those that did not answer. False: no memory, or no node answers and is_patient; then failure
 * says why. */
bool fleet_take(fleet_t *fleet, node_t *node, uint64_t wait_ns, bool is_patient);

#endif /* RMM_TOP_FLEET_H */
