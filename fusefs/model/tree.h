/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tree of names: which directory holds what, who owns it, and the number of each
 * inode. Knows neither FUSE nor the text of a file (render.c).
 *
 * Inode numbers say what an inode is, so that none has to be remembered or forgotten:
 *
 *   bits  0-6   file     which file of the directory; 1: the directory itself
 *   bits  7-10  dir      kind of directory
 *   bits 11-31  id       device index, the low bits of a resource's instance id, or the
 *                        generation of the node's log
 *   bits 32-63  serial   the low half of the serial of a process, or of the segment of a
 *                        resource; the uid of the log's reader; 0: none
 *
 * A serial is never given again, and its low half not while in use, so a recycled pid has
 * another inode. But code that keeps a node keeps its node_owner_t, too: after 2^32 programs
 * the inode is that of another.
 *
 * The root directory is kind 0, file 1, no serial, no id: inode 1, as FUSE wants it.
 *
 * A node may be of something that is gone: every function looks in the model again.
 * Threads: model lock held, shared is enough.
 */
#ifndef RMM_FUSEFS_TREE_H
#define RMM_FUSEFS_TREE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "model/model.h"
#include "model/slots.h"

#define TREE_NAME_BYTES 128
#define TREE_ID_MAX 0x1fffffu /* 21 bits */

/* A value reports this size, as in sysfs: more than its text has, and not 0, at which
 * the kernel would answer splice and sendfile with no bytes. */
#define TREE_VALUE_BYTES 4096

/* tree_files.def says what they are. */
typedef enum file_kind {
    KIND_VALUE, /* also directories and links */
    KIND_TEXT,
    KIND_LONG,
    KIND_REPORT,
    KIND_PIPE,
    KIND_LOG
} file_kind_t;

typedef enum dir_kind {
    DIR_ROOT,
    DIR_BY_UUID,
    DIR_DAEMON,
    DIR_DEVICE,         /* gpuN, host */
    DIR_PROCESSES,      /* proc */
    DIR_PROCESS,        /* proc/<pid> */
    DIR_PROCESS_DEVICE, /* proc/<pid>/gpuN, proc/<pid>/host */
    DIR_RESOURCES,      /* .../mr */
    DIR_RESOURCE,       /* .../mr/<id>.<name> */
    DIR_DIAG,           /* proc/<pid>/diag */
    DIR_TRACE,          /* proc/<pid>/trace */
    DIR_KIND_COUNT
} dir_kind_t;

/* Where a file stands: in all directories of a kind, or in some of them. */
#define IN(kind) (1u << DIR_##kind)
#define IN_GPU (1u << DIR_KIND_COUNT) /* a device that is a GPU */
#define IN_UNREADABLE                                                                  \
    (1u << (DIR_KIND_COUNT + 1)) /* a process that cannot be read any more */
#define IN_BLOCKS                                                                      \
    (1u << (DIR_KIND_COUNT + 2)) /* a resource that reports its blocks, and lives */
#define IN_ANY_PROCESS (IN(PROCESS) | IN_UNREADABLE)
#define IN_EACH_LOCATION (IN(DEVICE) | IN(PROCESS_DEVICE))
#define IN_EACH_LEVEL (IN_EACH_LOCATION | IN(RESOURCE))

typedef enum file_id {
    FILE_NONE,
    FILE_SELF,     /* the directory itself */
    FILE_LINK,     /* by-uuid/<uuid> */
    FILE_UPSTREAM, /* a resource's link to its upstream */
#define FILE_ROW(id, name, access, kind, where, collect) FILE_##id,
#define PIPE_ROW(id, name, where) FILE_##id,
#define LOG_ROW(id, name) FILE_##id,
#include "model/tree_files.def"
#define X(field, kind, unit, help) FILE_##field,
    RMM_EACH_STAT(X)
#undef X
        FILE_ID_COUNT
} file_id_t;

typedef struct node {
    uint8_t dir;  /* dir_kind_t */
    uint8_t file; /* file_id_t */
    uint32_t serial;
    uint32_t id; /* at most TREE_ID_MAX */
} node_t;

/* The process or segment that a node is of, and its user. */
typedef struct node_owner {
    uint64_t serial; /* of the process or segment; 0: none */
    uid_t uid;
} node_owner_t;

typedef struct node_info {
    mode_t mode; /* with the type */
    uid_t uid;
    gid_t gid;
    uint64_t since_ns; /* CLOCK_REALTIME: the process's start, or the daemon's */
} node_info_t;

extern const node_t tree_root;

uint64_t node_to_inode(node_t node);
/* False: not one of ours. */
bool node_from_inode(uint64_t inode, node_t *node_out);

/* For the user `uid`. False: there is nothing of that name, or no directory any more. */
bool tree_lookup(
    const model_t *model, node_t dir, uid_t uid, const char *name, node_t *node_out);

/* False: the directory of a process that its reader does not see (hiding.h). */
bool tree_shows(const model_t *model, node_t node, uid_t uid, bool is_member);

/* Whether what the file shows depends on its reader. */
bool tree_is_personal(const model_t *model, node_t node);

/* False: gone. */
bool tree_info(const model_t *model, node_t node, node_info_t *info_out);

/* For a caller that lists a directory and has looked it up since it took the lock: whether a
 * node is that directory or a file in it, and the same of such a node, which is not looked for
 * once more. */
bool tree_is_in(node_t node, node_t dir);
void tree_info_listed(const model_t *model, node_t node, node_info_t *info_out);

/* False: gone. */
bool tree_owner(const model_t *model, node_t node, node_owner_t *owner_out);
/* False: gone, or the inode number is that of another by now. */
bool tree_is_of(const model_t *model, node_t node, const node_owner_t *owner);

/* Whether the user `uid` may read, or write, what is of `owner`: checked at each access, because
 * a descriptor goes from process to process. */
bool tree_may_read(node_t node, const node_owner_t *owner, uid_t uid);
bool tree_may_write(node_t node, const node_owner_t *owner, uid_t uid);

/* Rendering it may take long. */
bool tree_is_long(node_t node);
/* The file's text may be longer than TREE_VALUE_BYTES. */
bool tree_is_text(node_t node);
/* A write to it waits until the program has obeyed. */
bool tree_write_waits(node_t node);

/* Everything in a directory but pipes, which never end: a program that reads all files of a
 * directory would never end, either. tree_lookup finds them. False: it is gone. */
typedef void (*tree_list_fn)(const char *name, node_t node, void *arg);
bool tree_list(
    const model_t *model, node_t dir, uid_t uid, tree_list_fn visit, void *arg);

/* Whether directories of this kind, or some of them, have the file. */
bool tree_dir_has(dir_kind_t dir, uint8_t file);

node_t tree_parent(const model_t *model, node_t node);

file_kind_t tree_kind(node_t node);

/* The node's log and events: another file for each user, whose uid is its serial. So the kernel
 * checks by owner and mode, and keeps nothing of it that two users share. */
bool node_is_of_reader(node_t node);

/* Where a link points; false: gone. */
bool tree_link(const model_t *model, node_t node, char target[TREE_NAME_BYTES * 2]);

/* "3.pool"; two segments of one process may both have it: the second's is "3.pool~1". */
void tree_resource_name(const slot_view_t *view, char name[TREE_NAME_BYTES]);

/* "gpu0", "host" */
void tree_device_name(uint32_t device, char name[16]);

#endif /* RMM_FUSEFS_TREE_H */
