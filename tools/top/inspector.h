/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks at one program each interval (detail.h). Never waits: the report of blocks that one look
 * requests is read by the next.
 *
 * While a user looks, each allocation of the program reads its control page, as while rmmfs
 * has a request. The request is withdrawn when the user looks elsewhere.
 *
 * Cost: some 20 system calls a look; the report is at most 2 MB.
 */
#ifndef RMM_TOP_INSPECTOR_H
#define RMM_TOP_INSPECTOR_H

#include "node/segments.h"
#include "segment/segment_log.h"
#include "top/detail.h"

typedef struct inspector {
    detail_t detail;
    rmm_control_t control;
    bool has_control, is_asked;
    uint32_t number; /* of the report that was requested */
    rmm_ring_cursor_t log_cursor;
} inspector_t;

void inspector_init(inspector_t *inspector);
void inspector_fini(inspector_t *inspector);

/* The program and resource that the user looks at; id 0: none. */
typedef struct look {
    uint64_t id;
    uint32_t resource_id, slot; /* 0: no resource */
    uint32_t location;          /* of the program's limit */
} look_t;

/* After a listing of the segments. */
void inspector_look(
    inspector_t *inspector, const segments_t *segments, const look_t *look);

#endif /* RMM_TOP_INSPECTOR_H */
