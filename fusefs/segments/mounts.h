/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which file systems the daemon may touch. A user may mount a FUSE file system over any
 * folder of his own; if its server does not answer, a process that touches it waits for ever, root
 * too. The mount table shows the type without touching it, fstatfs does not. A mount that is not in
 * the table may be anything, but for the one of the daemon's own root.
 *
 * Cost: reading the table, again only after the kernel has reported a mount or an unmount.
 *
 * Threads: the caller holds the model lock alone.
 */
#ifndef RMM_FUSEFS_MOUNTS_H
#define RMM_FUSEFS_MOUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define MOUNT_TYPE_BYTES 32
#define MOUNT_DEVICE_BYTES 24

/* A line of the mount table. */
typedef struct mount_line {
    uint64_t id;
    char device[MOUNT_DEVICE_BYTES]; /* "0:45" */
    bool is_folder; /* only a folder of its file system: a bind mount */
    uint64_t peers; /* of its peer group ("shared:7"); 0: in none */
    const char *path, *type;
} mount_line_t;

/* True: this is enough. */
typedef bool (*mount_fn)(const mount_line_t *mount, void *arg);

/* Visit the mounts in an open /proc/self/mountinfo, from its first line on. */
void mounts_each(FILE *table, mount_fn act, void *arg);

typedef enum mount_kind {
    MOUNT_LOCAL,  /* needs no other machine or process */
    MOUNT_REMOTE, /* may be slow: only where the user chose it */
    MOUNT_SERVED  /* FUSE, or not in the table: by any process, perhaps a hostile one */
} mount_kind_t;

typedef struct mount_entry {
    uint64_t id;
    mount_kind_t kind;
    char type[MOUNT_TYPE_BYTES];
} mount_entry_t;

typedef struct mounts {
    FILE *table; /* NULL: not opened yet */
    mount_entry_t *items;
    uint32_t count, capacity;
} mounts_t;

/* The file system of fd, which may be O_PATH. type receives its name, or "unknown": with
 * errno EMFILE or ENFILE only for want of a descriptor. */
mount_kind_t mounts_kind(mounts_t *mounts, int fd, char type[MOUNT_TYPE_BYTES]);

/* The mount that fd, which may be O_PATH, is on: its number in the mount table. False: there is no
 * /proc, or no descriptor left. */
bool mounts_find_id(int fd, uint64_t *id_out);

/* Is it the mount that this process's root folder is on? */
bool mounts_is_of_root(uint64_t id);

void mounts_fini(mounts_t *mounts);

#endif /* RMM_FUSEFS_MOUNTS_H */
