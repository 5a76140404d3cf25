/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of the users of a snapshot's processes, from /etc/passwd. The daemon asks no directory
 * service (LDAP, sssd): one that does not answer would block a reader of the tree. Users that
 * only such a service knows have no name here.
 */
#ifndef RMM_FUSEFS_USER_NAMES_H
#define RMM_FUSEFS_USER_NAMES_H

#include <stdbool.h>
#include <sys/types.h>

#include "model/snapshot.h"

typedef struct user_name {
    uid_t uid;
    char name[32]; /* "": not known */
} user_name_t;

typedef struct user_names {
    user_name_t *items; /* by uid, each once */
    uint32_t count;
} user_names_t;

/* Most host memory that the names of a snapshot take. */
size_t user_names_bytes(const snapshot_t *snapshot);

/* Reads the file once. False: no memory. */
bool user_names_read(user_names_t *names, const snapshot_t *snapshot);
void user_names_free(user_names_t *names);

/* NULL: not known. */
const char *user_names_find(const user_names_t *names, uid_t uid);

#endif /* RMM_FUSEFS_USER_NAMES_H */
