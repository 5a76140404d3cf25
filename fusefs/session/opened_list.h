/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A list of all open files and directories, so that a daemon that ends while programs have files
 * open frees all of them. Threads: any.
 */
#ifndef RMM_FUSEFS_OPENED_LIST_H
#define RMM_FUSEFS_OPENED_LIST_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

#include "session/node_texts.h"
#include "session/opened_sizes.h"

/* The process that makes a request. */
typedef struct reader {
    uid_t uid;
    pid_t thread;
    bool is_member; /* of the group of hiding.h */
} reader_t;

/* First member of what stands in the list. */
typedef struct opened {
    struct opened *previous, *next;
    void (*free)(struct opened *opened);
} opened_t;

typedef struct opened_list {
    pthread_mutex_t lock;
    opened_t first; /* only its links are used: a ring */
    opened_sizes_t sizes;
    node_texts_t texts;
} opened_list_t;

void opened_list_init(opened_list_t *list);
/* Frees what is still open. */
void opened_list_fini(opened_list_t *list);

void opened_list_add(opened_list_t *list, opened_t *opened);
void opened_list_remove(opened_list_t *list, opened_t *opened);

#endif /* RMM_FUSEFS_OPENED_LIST_H */
