/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tree of names: which directory holds what, who owns it, and the number of each
 * inode. Knows neither FUSE nor the text of a file (render.c).
 *
 * Inode numbers say what an inode is, so that none has to be remembered or forgotten:
 *
 *   bits  0-6   file     which file of the directory; 1: the directory itself
 *   bits  7-10  dir      kind of directory
 *   bits 11-31  serial   process, or segment of a resource; 0: none. Serials are given
 *                        out in order and not again while in use, so a recycled pid has
 *                        another inode
 *   bits 32-63  id       device index, a resource's instance id, or the generation of
 *                        the node's log
 *
 * The root directory is kind 0, file 1, no serial, no id: inode 1, as FUSE wants it.
 *
 * A node may be of something that is gone: every function asks the model again.
 * Threads: model lock held, shared is enough.
 */
#ifndef RMM_FUSEFS_TREE_H
#define RMM_FUSEFS_TREE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "model.h"

#define TREE_NAME_BYTES 128

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
    (1u << (DIR_KIND_COUNT + 1)) /* a process of which no more can be told */
#define IN_EACH_LOCATION (IN(DEVICE) | IN(PROCESS_DEVICE))
#define IN_EACH_LEVEL (IN_EACH_LOCATION | IN(RESOURCE))

/* X(id, name, mode, where): every file of the tree but those of statistics, one each
 * (stat_fields.h). r: all may read; w: and the owner write; o: only the owner (and group) may
 * read. The text comes from the directory's function in render*.c. */
#define TREE_FILE_MAP(X)                                                               \
    X(VERSION, "version", r, IN(ROOT))                                                 \
    X(README, "README", r, IN(ROOT))                                                   \
    X(GPUS, "gpus", r, IN(ROOT))                                                       \
    X(METRICS, "metrics", r, IN(ROOT))                                                 \
    X(JSON, "json", r, IN(ROOT))                                                       \
    X(PID, "pid", r, IN(DAEMON))                                                       \
    X(UPTIME_SECONDS, "uptime_seconds", r, IN(DAEMON))                                 \
    X(SEGMENTS, "segments", r, IN(DAEMON))                                             \
    X(SEGMENTS_REJECTED, "segments_rejected", r, IN(DAEMON))                           \
    X(READS_TOTAL, "reads_total", r, IN(DAEMON))                                       \
    X(LOG_LEVEL, "log_level", w, IN(DAEMON) | IN(PROCESS))                             \
    X(LOG, "log", r, 0)                                                                \
    X(LOG_1, "log.1", r, 0)                                                            \
    X(LOG_PIPE, "log_pipe", r, IN(ROOT))                                               \
    X(PROCESS_LOG, "log", o, IN(PROCESS))                                              \
    X(PROCESS_LOG_PIPE, "log_pipe", o, IN(PROCESS))                                    \
    X(EVENTS_PIPE, "events_pipe", o, IN(PROCESS))                                      \
    X(ENABLE, "enable", w, IN(TRACE))                                                  \
    X(LOST, "lost", r, IN(TRACE))                                                      \
    X(LEAKS, "leaks", o, IN(PROCESS))                                                  \
    X(UUID, "uuid", r, IN_GPU)                                                         \
    X(PCI_BUS_ID, "pci_bus_id", r, IN_GPU)                                             \
    X(NAME, "name", r, IN_GPU)                                                         \
    X(CAPACITY_BYTES, "capacity_bytes", r, IN_GPU)                                     \
    X(DEVICE_FREE_BYTES, "device_free_bytes", r, IN_GPU)                               \
    X(CURRENT_COUNT, "current_count", r, IN_EACH_LEVEL)                                \
    X(CACHED_BYTES, "cached_bytes", r, IN_EACH_LEVEL)                                  \
    X(FRAGMENTATION, "fragmentation", r, IN_EACH_LEVEL)                                \
    X(PEAK_UPPER_BYTES, "peak_upper_bytes", r, IN(DEVICE))                             \
    X(STAT, "stat", r, IN_EACH_LEVEL | IN(PROCESS) | IN(DIAG))                         \
    X(EVENTS, "events", r, IN_EACH_LOCATION)                                           \
    X(PROCESSES, "processes", r, IN(DEVICE))                                           \
    X(COMM, "comm", r, IN(PROCESS))                                                    \
    X(CMDLINE, "cmdline", r, IN(PROCESS))                                              \
    X(UID, "uid", r, IN(PROCESS) | IN_UNREADABLE)                                      \
    X(STATE, "state", r, IN(PROCESS) | IN_UNREADABLE)                                  \
    X(START_TIME_NS, "start_time_ns", r, IN(PROCESS))                                  \
    X(TYPE, "type", r, IN(RESOURCE))                                                   \
    X(CUPTI, "cupti", r, IN(DIAG))                                                     \
    X(USAGE, "usage", o, IN(DIAG))                                                     \
    X(KERNELS, "kernels", o, IN(DIAG))

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
    uint32_t serial, id;
} node_t;

typedef struct node_info {
    mode_t mode; /* with the type */
    uid_t uid;
    gid_t gid;
    uint64_t changed_ns; /* CLOCK_REALTIME; 0: now, as in /proc */
} node_info_t;

extern const node_t tree_root;

uint64_t node_to_inode(node_t node);
/* False: not one of ours. */
bool node_from_inode(uint64_t inode, node_t *node_out);

/* False: there is nothing of that name, or no directory any more. */
bool tree_lookup(const model_t *model, node_t dir, const char *name, node_t *node_out);

/* False: gone. */
bool tree_info(const model_t *model, node_t node, node_info_t *info_out);

/* Everything in a directory; false: it is gone. */
typedef void (*tree_list_fn)(const char *name, node_t node, void *arg);
bool tree_list(const model_t *model, node_t dir, tree_list_fn visit, void *arg);

/* Whether directories of this kind have the file. */
bool tree_dir_has(dir_kind_t dir, uint8_t file);

node_t tree_parent(const model_t *model, node_t node);

/* The node's log or its predecessor: a text with a true size, that only grows. */
static inline bool node_is_spool(node_t node)
{
    return node.file == FILE_LOG || node.file == FILE_LOG_1;
}

/* Where a link points; false: gone. */
bool tree_link(const model_t *model, node_t node, char target[TREE_NAME_BYTES * 2]);

/* "gpu0", "host" */
void tree_device_name(uint32_t device, char name[16]);

#endif /* RMM_FUSEFS_TREE_H */
