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

#include "model.h"
#include "slots.h"

#define TREE_NAME_BYTES 128
#define TREE_ID_MAX 0x1fffffu /* 21 bits */

/* What a value reports as its size, as in sysfs: more than its text has, and not 0, at which
 * the kernel would answer splice and sendfile with no bytes. */
#define TREE_VALUE_BYTES 4096

typedef enum file_kind {
    KIND_VALUE, /* also directories and links */
    KIND_TEXT,
    KIND_REPORT, /* a text made from a report that the program is asked for (reports.h): it
                    stays as it was opened, and its size is a value's before that */
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
#define IN_EACH_LOCATION (IN(DEVICE) | IN(PROCESS_DEVICE))
#define IN_EACH_LEVEL (IN_EACH_LOCATION | IN(RESOURCE))

/* X(id, name, mode, where): every file of the tree but those of statistics, one each
 * (stat_fields.h). Access: r: all read; w: and the owner writes; o: only the owner reads.
 * What it is: nothing: a value, always below TREE_VALUE_BYTES; t: a text of any length; b: one
 * that is made from a report of the program's blocks (reports.h); p: read like a pipe
 * (stream.h); l: the node's log, of which each user has another. The text comes from the
 * directory's function in render*.c. */
#define TREE_FILE_MAP(X)                                                               \
    X(VERSION, "version", r, IN(ROOT))                                                 \
    X(README, "README", rt, IN(ROOT))                                                  \
    X(DEVICES, "devices", rt, IN(ROOT))                                                \
    X(METRICS, "metrics", rt, IN(ROOT))                                                \
    X(METRICS_OM, "metrics.om", rt, IN(ROOT))                                          \
    X(RMM_PROM, "rmm.prom", rt, IN(ROOT))                                              \
    X(JSON, "json", rt, IN(ROOT))                                                      \
    X(TOP, "top", rt, IN(ROOT))                                                        \
    X(INDEX_HTML, "index.html", rt, IN(ROOT))                                          \
    X(USERS, "users", rt, IN(ROOT))                                                    \
    X(CGROUPS, "cgroups", rt, IN(ROOT))                                                \
    X(PID, "pid", r, IN(DAEMON))                                                       \
    X(UPTIME_SECONDS, "uptime_seconds", r, IN(DAEMON))                                 \
    X(SEGMENTS, "segments", r, IN(DAEMON))                                             \
    X(UNSHOWN, "unshown", r, IN(DAEMON))                                               \
    X(PERSISTENCE, "persistence", r, IN(DAEMON))                                       \
    X(SEGMENTS_REJECTED, "segments_rejected", r, IN(DAEMON))                           \
    X(READS_TOTAL, "reads_total", r, IN(DAEMON))                                       \
    X(OVER_BUDGET, "over_budget", rt, IN(DAEMON))                                      \
    X(REJECTED, "rejected", rt, IN(DAEMON))                                            \
    X(LOG_LEVEL, "log_level", w, IN(DAEMON) | IN(PROCESS))                             \
    X(LOG, "log", ol, 0)                                                               \
    X(LOG_1, "log.1", ol, 0)                                                           \
    X(LOG_PIPE, "log_pipe", op, 0)                                                     \
    X(NODE_EVENTS_PIPE, "events_pipe", op, 0)                                          \
    X(PROCESS_LOG, "log", ot, IN(PROCESS))                                             \
    X(PROCESS_LOG_PIPE, "log_pipe", op, IN(PROCESS))                                   \
    X(EVENTS_PIPE, "events_pipe", op, IN(PROCESS))                                     \
    X(ENABLE, "enable", w, IN(TRACE))                                                  \
    X(LOST, "lost", r, IN(TRACE))                                                      \
    X(LEAKS, "leaks", ot, IN(PROCESS))                                                 \
    X(UUID, "uuid", r, IN_GPU)                                                         \
    X(PCI_BUS_ID, "pci_bus_id", r, IN_GPU)                                             \
    X(NAME, "name", r, IN_GPU)                                                         \
    X(CAPACITY_BYTES, "capacity_bytes", r, IN_GPU)                                     \
    X(DEVICE_FREE_BYTES, "device_free_bytes", r, IN_GPU)                               \
    X(CURRENT_COUNT, "current_count", r, IN_EACH_LEVEL)                                \
    X(CACHED_BYTES, "cached_bytes", r, IN_EACH_LEVEL)                                  \
    X(FRAGMENTATION, "fragmentation", r, IN_EACH_LEVEL)                                \
    X(PEAK_UPPER_BYTES, "peak_upper_bytes", r, IN(DEVICE))                             \
    X(STAT, "stat", rt, IN_EACH_LEVEL | IN(PROCESS) | IN(DIAG))                        \
    X(EVENTS, "events", r, IN_EACH_LOCATION)                                           \
    X(PROCESSES, "processes", rt, IN(ROOT) | IN(DEVICE))                               \
    X(COMM, "comm", r, IN(PROCESS))                                                    \
    X(CMDLINE, "cmdline", r, IN(PROCESS))                                              \
    X(UID, "uid", r, IN(PROCESS) | IN_UNREADABLE)                                      \
    X(STATE, "state", r, IN(PROCESS) | IN_UNREADABLE)                                  \
    X(START_TIME_NS, "start_time_ns", r, IN(PROCESS))                                  \
    X(LIMIT_BYTES, "limit_bytes", w, IN(PROCESS_DEVICE) | IN(RESOURCE))                \
    X(TRIM, "trim", w, IN(PROCESS_DEVICE) | IN(RESOURCE))                              \
    X(MAP, "map", ob, IN_BLOCKS)                                                       \
    X(MAP_SVG, "map.svg", ob, IN_BLOCKS)                                               \
    X(STREAMS, "streams", ob, IN_BLOCKS)                                               \
    X(SIZE_HISTOGRAM, "size_histogram", ob, IN_BLOCKS)                                 \
    X(ALLOCATIONS, "allocations", ob, IN(PROCESS))                                     \
    X(TYPE, "type", r, IN(RESOURCE))                                                   \
    X(CUPTI, "cupti", r, IN(DIAG))                                                     \
    X(MODE, "mode", w, IN(DIAG))                                                       \
    X(FINDINGS, "findings", ot, IN(DIAG))                                              \
    X(FINDINGS_TOTAL, "findings_total", r, IN(DIAG))                                   \
    X(FINDINGS_PIPE, "findings_pipe", op, IN(DIAG))                                    \
    X(STACKS, "stacks", ot, IN(DIAG))                                                  \
    X(USAGE, "usage", ot, IN(DIAG))                                                    \
    X(KERNELS, "kernels", ot, IN(DIAG))                                                \
    X(PEAK, "peak", ot, IN(DIAG))                                                      \
    X(VERDICTS, "verdicts", ot, IN(DIAG))

typedef enum file_id {
    FILE_NONE,
    FILE_SELF,     /* the directory itself */
    FILE_LINK,     /* by-uuid/<uuid> */
    FILE_UPSTREAM, /* a resource's link to its upstream */
#define X(id, name, mode, where) FILE_##id,
    TREE_FILE_MAP(X)
#undef X
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

/* What a node is of. */
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

/* Rendering it may take long: it is about all programs, or made from side files. */
bool tree_is_long(node_t node);

/* Everything in a directory but pipes, which never end: a program that reads all files of a
 * directory would never end, either. tree_lookup finds them. False: it is gone. */
typedef void (*tree_list_fn)(const char *name, node_t node, void *arg);
bool tree_list(
    const model_t *model, node_t dir, uid_t uid, tree_list_fn visit, void *arg);

/* Whether directories of this kind have the file. */
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
