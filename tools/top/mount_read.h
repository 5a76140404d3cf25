/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes a snapshot from the files of a tree of rmmfs. Each value is checked; a tree that somebody
 * forged costs at most MOUNT_JSON_BYTES_MAX to read.
 */
#ifndef RMM_TOP_MOUNT_READ_H
#define RMM_TOP_MOUNT_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "node/node.h"
#include "top/mount_helper.h"

#define MOUNT_PATH_BYTES 256
#define MOUNT_REASON_BYTES 128
#define MOUNT_JSON_BYTES_MAX ((size_t)32 << 20) /* rmmfs makes at most 24 MiB */

/* A program that was found. */
typedef struct mount_program {
    char name[32]; /* of its directory */
    uint64_t start_time_ns, id;
    bool is_seen; /* in the snapshot under way */
    char user[32], command[304];
} mount_program_t;

typedef struct mount_reading {
    char path[MOUNT_PATH_BYTES];
    mount_helper_t helper;
    node_t node;
    mount_program_t *programs;
    uint32_t program_count, program_room;
    uint64_t last_id;
    char *text; /* of `json` */
    size_t text_room;
    char reason[MOUNT_REASON_BYTES]; /* "": the node is there */
    bool has_memory;
} mount_reading_t;

/* False with errno; mount_read_fini() is due all the same. */
bool mount_read_init(mount_reading_t *reading, const char *path);
void mount_read_fini(mount_reading_t *reading);

/* Fill reading->node, or reading->reason. May block as long as the daemon does, or until another
 * thread calls mount_read_stop(), which ends all readings. */
void mount_read(mount_reading_t *reading);
void mount_read_stop(mount_reading_t *reading);

#endif /* RMM_TOP_MOUNT_READ_H */
