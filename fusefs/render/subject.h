/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The data that the text of a file is made of, collected before it is printed. A row of
 * tree_files.def says which of it the printer gets:
 *
 *   MODEL        the model
 *   DEVICE       the device
 *   PROCESS      the process
 *   PROGRAM      the process, and a segment of it that can be read
 *   RESOURCE     the resource
 *   FIGURES      the device, process or resource with its figures; MARKS, FREE, ALL_FIGURES: also
 *                those that cost more (figures.h)
 *   LEAKS        the side files of a process's tracking adaptors
 *   DIAG         the side file of its diagnosis
 *   BLOCKS       the report of blocks that a resource is in
 *   ALLOCATIONS  all these of a process
 *   NODE         a snapshot of all programs
 *
 * Side files are opened with the model's lock held, and read without it, because there may be much
 * in them; a snapshot refers to no part of the model. So a printer of one of the last five holds no
 * lock, and uses nothing of the model but its budget.
 */
#ifndef RMM_FUSEFS_SUBJECT_H
#define RMM_FUSEFS_SUBJECT_H

#include "diag/diag_reader.h"
#include "model/level_figures.h"
#include "model/slots.h"
#include "model/snapshot.h"
#include "model/tree.h"
#include "segment/segment_blocks_reader.h"
#include "segment/segment_leaks_reader.h"

#define SUBJECT_FILES_MAX 8u    /* segments of one process whose side files are shown */
#define SUBJECT_PLACES_MAX 256u /* resources of which is known where they are */

typedef struct resource_place {
    uint32_t resource_id, upstream_id;
    int32_t device; /* CUDA ordinal; -1: host memory */
} resource_place_t;

typedef struct subject {
    model_t *model;
    node_t node;
    const device_t *device;
    const process_t *process;
    const member_t *readable; /* a segment of the process; NULL: none is */
    slot_view_t slot;         /* of the resource */
    figures_t figures;
    const snapshot_t *snapshot;

    uint32_t resource_id; /* whose blocks are shown */
    uint32_t leaks_count, blocks_count, places_count;
    bool has_diag, has_ended; /* the program that wrote `diag` has ended */
    uint64_t ended_ns_ago;    /* 0: it has not */
    rmm_leaks_file_t
        leaks[SUBJECT_FILES_MAX]; /* here and below: only the counted ones are set */
    rmm_diag_file_t diag;
    rmm_blocks_file_t blocks[SUBJECT_FILES_MAX];
    resource_place_t
        places[SUBJECT_PLACES_MAX]; /* of the segments in `blocks`, by id */
} subject_t;

typedef enum collect {
    COLLECT_NOTHING, /* a directory, link, pipe or log */
    COLLECT_MODEL,
    COLLECT_DEVICE,
    COLLECT_PROCESS,
    COLLECT_PROGRAM,
    COLLECT_RESOURCE,
    COLLECT_FIGURES,
    COLLECT_MARKS,
    COLLECT_FREE,
    COLLECT_ALL_FIGURES,
    COLLECT_LEAKS,
    COLLECT_DIAG,
    COLLECT_BLOCKS,
    COLLECT_ALLOCATIONS,
    COLLECT_NODE
} collect_t;

/* With the model's lock held. 0 or a negative errno: -ENOENT it is gone, or not of this kind. Of
 * BLOCKS also why there is no report: -ETIMEDOUT, -EIO. After a 0 subject_close() follows. */
int subject_collect(model_t *model, node_t node, collect_t what, subject_t *subject);
/* True: the printer holds the model's lock. */
bool collect_reads_model(collect_t what);
/* Close the side files. */
void subject_close(subject_t *subject);

/* The last report of the blocks of a segment; false: there is none that is consistent. */
bool block_report_open(const member_t *member, rmm_blocks_file_t *file);

#endif /* RMM_FUSEFS_SUBJECT_H */
