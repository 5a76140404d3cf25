/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads another process's "<segment>.timeline" (timeline_format.h), and trusts nothing in it. For
 * a process that has ended: events of one that goes on may be replaced while they are read.
 *
 * Threads: as diag_reader.h.
 */
#ifndef RMM_DIAG_TIMELINE_READER_H
#define RMM_DIAG_TIMELINE_READER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "diag/timeline_format.h"

typedef struct rmm_timeline_file {
    int fd;
    rmm_timeline_header_t header; /* checked copy */
} rmm_timeline_file_t;

/* 0 or a negative errno, as rmm__diag_open(). */
int rmm__timeline_open(
    rmm_timeline_file_t *file, int dirfd, const char *segment, uid_t owner);
/* The same on an open descriptor, which is kept on success. */
int rmm__timeline_attach(rmm_timeline_file_t *file, int fd);
void rmm__timeline_close(rmm_timeline_file_t *file);

/* Events that can be read, and those that newer ones have replaced. */
uint64_t rmm__timeline_kept(const rmm_timeline_file_t *file);
uint64_t rmm__timeline_lost(const rmm_timeline_file_t *file);

/* False ends the walk. */
typedef bool (*rmm_timeline_fn)(const rmm_timeline_event_t *event, void *arg);

/* Every event, oldest first. False: the file could not be read to its end. */
bool rmm__timeline_each(
    const rmm_timeline_file_t *file, rmm_timeline_fn visit, void *arg);

#endif /* RMM_DIAG_TIMELINE_READER_H */
