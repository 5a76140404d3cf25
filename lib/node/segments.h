/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The segments of the programs of a node, found in directories and kept open from one snapshot to
 * the next: opening one costs some 100 system calls, reading one some 10.
 *
 * Others write there. A file that rmm__segment_open() refuses is counted, and at most SEGMENTS_MAX
 * are kept. A directory must be root's or this user's, and no link, unless it was named: no other
 * user can make this program read a directory of theirs.
 *
 * rmmfs finds programs by itself (fusefs/segments, fusefs/programs), because it shows those of all
 * users: it lists their directories in bounded steps, of which each user gets as many, hears of
 * changes, and charges names to a budget. It uses this library for GPUs and figures.
 *
 * Threads: one at a time.
 */
#ifndef RMM_NODE_SEGMENTS_H
#define RMM_NODE_SEGMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "node/cgroup.h"
#include "segment/segment_reader.h"

#define SEGMENTS_MAX 4096u
#define SEGMENTS_DIRS 2u

/* A location that a program uses; device: set by sampler.c. */
typedef struct open_location {
    uint32_t index, device;
} open_location_t;

typedef struct open_segment {
    rmm_segment_t segment;
    uint64_t id;
    pid_t pid;     /* 0: not known, or the program has ended */
    uint32_t path; /* the directory that it is in */
    char user[32];
    cgroup_t group; /* when it was found */
    bool is_seen;   /* in the listing under way */
    bool is_live;   /* its program has not ended */
    bool is_odd;    /* holds what cannot be true */
    open_location_t locations[RMM_SEGMENT_LOCATIONS];
    uint32_t location_count;
    bool has_locations;        /* they were looked for, */
    uint32_t locations_opened; /* when this was their number: segment_format.h */
} open_segment_t;

typedef struct segments {
    char paths[SEGMENTS_DIRS][256];
    uint32_t path_count;
    bool is_given;         /* the directory was named */
    bool keeps_ended;      /* also those whose program has ended */
    open_segment_t **list; /* sorted by name */
    uint32_t count, room;
    uint64_t last_id;
    uint32_t forbidden, refused, left_out; /* of the last listing */
} segments_t;

/* Where programs publish: $RMM_RUNTIME_DIR, else this user's directory and /run/rmm. False with
 * one line in message: there is none. */
bool segments_init(segments_t *segments, char *message, size_t message_bytes);
/* One directory, which need not be writable. Returns 0 or an errno. */
int segments_init_at(segments_t *segments, const char *path);
void segments_fini(segments_t *segments);

/* Brings the list up to date: programs that began are added, those that ended leave. False: no
 * memory. */
bool segments_list(segments_t *segments);

/* By open_segment_t.id; NULL: it has ended. */
open_segment_t *segments_find(const segments_t *segments, uint64_t id);

/* The directory of a segment, for the files beside it; -1: it is gone. The caller closes it. */
int segments_open_dir(const segments_t *segments, const open_segment_t *one);

#endif /* RMM_NODE_SEGMENTS_H */
