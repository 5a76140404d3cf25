/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The segments of the programs that run, found in directories and kept open from one snapshot to
 * the next: opening one costs some 100 system calls, reading one some 10.
 *
 * Others write there. What rmm_segment_open() refuses is counted, and at most SEGMENTS_MAX are
 * kept. A directory must be root's or this user's, and no link, unless $RMM_RUNTIME_DIR names it:
 * no other user can make this program read a directory of theirs.
 */
#ifndef RMM_TOP_SEGMENTS_H
#define RMM_TOP_SEGMENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "segment/segment_reader.h"
#include "top/node.h"

#define SEGMENTS_MAX 4096u
#define SEGMENTS_DIRS 2u

/* A location that a program uses; device: set by sample.c. */
typedef struct open_location {
    uint32_t index, device;
} open_location_t;

typedef struct open_segment {
    rmm_segment_t segment;
    uint64_t id;
    pid_t pid;
    uint32_t path; /* the directory that it is in */
    char user[32];
    bool is_seen; /* in the listing under way */
    bool is_odd;  /* holds what cannot be true */
    open_location_t locations[RMM_SEGMENT_LOCATIONS];
    uint32_t location_count;
    bool has_locations;        /* they were looked for, */
    uint32_t locations_opened; /* when this was their number: segment_format.h */
} open_segment_t;

typedef struct segments {
    char paths[SEGMENTS_DIRS][256];
    uint32_t path_count;
    bool is_given;         /* by $RMM_RUNTIME_DIR */
    open_segment_t **list; /* sorted by name */
    uint32_t count, room;
    uint64_t last_id;
    uint32_t forbidden, refused, left_out; /* of the last listing */
} segments_t;

/* Where programs publish: $RMM_RUNTIME_DIR, else this user's directory and /run/rmm. False with
 * one line in message: there is none. */
bool segments_init(segments_t *segments, char *message, size_t message_bytes);
void segments_fini(segments_t *segments);

/* Brings the list up to date: programs that began are added, those that ended leave. False: no
 * memory. */
bool segments_list(segments_t *segments);

/* By open_segment_t.id; NULL: it has ended. */
open_segment_t *segments_find(const segments_t *segments, uint64_t id);

/* The directory of a segment, for the files beside it; -1: it is gone. The caller closes it. */
int segments_open_dir(const segments_t *segments, const open_segment_t *one);

#endif /* RMM_TOP_SEGMENTS_H */
