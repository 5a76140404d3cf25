/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texts about the whole node that are open, for all who may see the same: 64 readers of `metrics`
 * at once cost one rendering, and the memory of one text.
 *
 * A text is shared if it is of the same file, made from the same snapshot (snapshots.h), for the
 * same user: so it is what that reader would have got. It is kept while a reader has it open, no
 * longer, and charged to that user once.
 *
 * Threads: any. A text in the list does not change. A leaf lock.
 */
#ifndef RMM_FUSEFS_NODE_TEXTS_H
#define RMM_FUSEFS_NODE_TEXTS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "support/text.h"

typedef struct node_text_key {
    uint64_t snapshot_ns; /* when it was begun: no two begin at once */
    uint32_t file;        /* of the root */
    uid_t uid;
    bool is_member; /* of the group of hiding.h */
} node_text_key_t;

typedef struct node_text {
    LIST_ENTRY(node_text) link;
    uint32_t references; /* under the lock */
    node_text_key_t key;
    text_t text;
} node_text_t;

typedef struct node_texts {
    pthread_mutex_t lock;
    LIST_HEAD(, node_text) items;
} node_texts_t;

void node_texts_init(node_texts_t *texts);
/* No text is open any more. */
void node_texts_fini(node_texts_t *texts);

/* NULL: none is open. node_texts_release() follows. */
node_text_t *node_texts_find(node_texts_t *texts, const node_text_key_t *key);

/* One that is not in the list yet: the caller fills its text, charged to the key's user, and then
 * adds it or releases it. NULL: no memory. */
node_text_t *node_text_new(const node_text_key_t *key, budget_t *budget);
void node_texts_add(node_texts_t *texts, node_text_t *text);

/* The last release frees it. NULL is taken. */
void node_texts_release(node_texts_t *texts, node_text_t *text);

#endif /* RMM_FUSEFS_NODE_TEXTS_H */
