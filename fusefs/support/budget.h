/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The limits of each user on the daemon's resources: memory, handles, log space, GPU numbers.
 * The daemon serves every user of the machine and reads what any of them wrote, so no user
 * may exhaust what the others need.
 *
 * Root and the daemon's own user have larger limits. A third limit applies to all other users
 * together, because one person may own thousands of uids (subuid(5)).
 *
 * The table is small and fixed. A user that uses nothing makes room for another one. While
 * every entry is in use, further users share the entry `others`, until that uses nothing.
 *
 * Threads: any; locks of its own, under which nothing else is taken.
 */
#ifndef RMM_FUSEFS_BUDGET_H
#define RMM_FUSEFS_BUDGET_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "support/memory.h"

#define BUDGET_USERS_MAX 256u
#define BUDGET_OTHERS ((uid_t)-1) /* no user has this uid */

#define BUDGET_KIB(n) (UINT64_C(n) << 10)
#define BUDGET_MIB(n) (UINT64_C(n) << 20)

/* X(id, name, limit of a user, limit of root and of the daemon's user each, limit of all
 * users but these two together) */
#define BUDGET_KIND_MAP(X)                                                             \
    X(SEGMENTS, "segments", 1024, 4096, 4096)                                          \
    X(HANDLES, "handles", 4096, 16384, 16384)                                          \
    X(TEXT_BYTES, "text_bytes", BUDGET_MIB(32), BUDGET_MIB(96), BUDGET_MIB(64))        \
    X(LOG_BYTES, "log_bytes", BUDGET_KIB(512), BUDGET_MIB(1), BUDGET_MIB(16))          \
    X(GPUS, "gpus", 16, 32, 48)                                                        \
    X(TRIMS, "trims", 4, 16, 32)                                                       \
    X(LONG_READS, "long_reads", 256, 1024, 2048)                                       \
    X(REPORTS, "reports", 8, 64, 128)                                                  \
    X(SUM_SLOTS, "sum_slots", 4096, 16384, 8192)                                       \
    X(NAMES, "names", 16384, 65536, 65536)

typedef enum budget_kind {
#define X(id, name, user, system, together) BUDGET_##id,
    BUDGET_KIND_MAP(X)
#undef X
        BUDGET_KIND_COUNT
} budget_kind_t;

typedef struct budget_user {
    uid_t uid; /* BUDGET_OTHERS: shared */
    uint64_t used[BUDGET_KIND_COUNT];
    uint64_t refused[BUDGET_KIND_COUNT]; /* saturates */
} budget_user_t;

typedef struct budget {
    pthread_mutex_t lock;
    uid_t own_uid;
    uint32_t count;
    budget_user_t users[BUDGET_USERS_MAX]; /* first root, then own_uid */
    budget_user_t others;
    uint64_t used_together[BUDGET_KIND_COUNT]; /* without root and own_uid */
    memory_t memory; /* of all users, and no budget: what takes memory checks both */
} budget_t;

/* own_uid: the daemon's user. */
void budget_init(budget_t *budget, uid_t own_uid);
void budget_fini(budget_t *budget);

/* False, and counted: it would exceed what uid, or all users together, may use. */
bool budget_take(budget_t *budget, uid_t uid, budget_kind_t kind, uint64_t amount);

/* Give back what was taken; more than is used gives back what is used. */
void budget_give(budget_t *budget, uid_t uid, budget_kind_t kind, uint64_t amount);

/* Count a refusal of what is used for a moment only, and limited where it is used. */
void budget_refuse(budget_t *budget, uid_t uid, budget_kind_t kind);

/* Root, or the daemon's own user. */
bool budget_is_system(const budget_t *budget, uid_t uid);

const char *budget_kind_name(budget_kind_t kind);
uint64_t budget_limit(const budget_t *budget, uid_t uid, budget_kind_t kind);

uint64_t budget_limit_together(budget_kind_t kind);

uint64_t budget_refused(budget_t *budget, uid_t uid, budget_kind_t kind);

/* Copy the entry at a position, `others` after the last user. False: there is none. */
bool budget_user_at(budget_t *budget, uint32_t position, budget_user_t *user_out);

#endif /* RMM_FUSEFS_BUDGET_H */
