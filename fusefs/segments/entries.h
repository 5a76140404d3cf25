/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names that are known of one directory: a hash table, so that a notice about one of
 * 100,000 names costs as much as about one of ten. Threads: model lock held alone.
 */
#ifndef RMM_FUSEFS_ENTRIES_H
#define RMM_FUSEFS_ENTRIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

struct member;
struct segment_dir;

typedef enum entry_kind {
    ENTRY_NEW,
    ENTRY_QUEUED,
    ENTRY_WAITING,
    ENTRY_TAKEN,
    ENTRY_REFUSED
} entry_kind_t; /* scan.h says what they mean */

/* Resources of the daemon that may be too short to show a segment. */
typedef enum shortage {
    SHORT_OF_NOTHING,
    SHORT_OF_DESCRIPTORS,
    SHORT_OF_MEMORY,
    SHORTAGE_COUNT
} shortage_t;

typedef struct entry {
    char name[64];
    entry_kind_t kind;
    shortage_t shortage;     /* why it is not shown; see shortage_note() */
    bool is_charged;         /* to its owner's budget of names */
    uint32_t tries;          /* while the segment is being made */
    uint32_t listing;        /* the last one that found it */
    uid_t owner;             /* of the file, once it was looked at */
    uint64_t inode;          /* likewise; 0: not looked at */
    uint64_t found_ns;       /* CLOCK_BOOTTIME: when this file of it was first seen */
    uint64_t retry_ns;       /* WAITING: likewise */
    struct segment_dir *dir; /* that holds it */
    struct member *member;   /* NULL: none (any more); its `entry` points back */
    struct entry *next;      /* of the same bucket */
    TAILQ_ENTRY(entry) link; /* of the list that its kind says */
} entry_t;

typedef struct entries {
    entry_t **buckets;
    size_t bucket_count, count;
} entries_t;

/* NULL: not known. */
entry_t *entries_find(const entries_t *entries, const char *name);

/* A name that is not known yet, all zeros but for it. NULL: no memory. */
entry_t *entries_add(entries_t *entries, const char *name);

/* Take it out and free it; it is in no list any more. */
void entries_remove(entries_t *entries, entry_t *entry);

/* False ends the walk. The entry may be removed meanwhile, no other. */
typedef bool (*entries_visit_fn)(entry_t *entry, void *arg);
void entries_each(const entries_t *entries, entries_visit_fn visit, void *arg);

void entries_fini(entries_t *entries);

#endif /* RMM_FUSEFS_ENTRIES_H */
