/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests for reports of a program's blocks, and the opens that wait for them. A program
 * makes a report at its next allocation (lib/segment/segment_blocks.h), so one that does not
 * allocate makes none: after REPORT_WAIT_NS the request is withdrawn.
 *
 * One report is of all pools of a process, and all who open one of the files that show it
 * wait for the same one. Within REPORT_FRESH_NS no other is requested, whether the program
 * made it or not: so reading all files of an idle program waits once, and no reader makes a
 * program work more often than once a second.
 *
 * A waiting open holds no thread, and each user may have a few (budget.h). Only users who may read
 * the file, its owner and root, make the daemon ask.
 *
 * Knows no FUSE: a request is an opaque pointer of the owner. Threads: any; where a model is
 * passed the caller holds its lock alone. The lock here is taken inside of that.
 */
#ifndef RMM_FUSEFS_REPORTS_H
#define RMM_FUSEFS_REPORTS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "model/model.h"
#include "model/tree.h"

#define REPORT_WAIT_NS 100000000u
#define REPORT_FRESH_NS 1000000000u

/* An open that may wait: by which user, of which file. */
typedef struct report_open {
    node_t node;
    uid_t uid;
    int flags;
} report_open_t;

typedef struct report_wait {
    struct report_wait *next;
    void *request;
    report_open_t open;
    uint64_t serial;  /* of its process */
    budget_t *budget; /* that it is charged to */
} report_wait_t;

typedef struct reports {
    pthread_mutex_t answering; /* held while waits are taken out and answered */
    bool is_over;              /* under `answering`: the session ends */
    pthread_mutex_t lock;
    report_wait_t *first;
} reports_t;

void reports_init(reports_t *reports);
void reports_fini(reports_t *reports);

/* True: of a file that shows a report, which is to be requested before the file is opened. */
bool reports_are_shown_in(node_t node);

/*
 * Before a file is opened: request a report from its process, unless one was made or requested
 * lately, or the user may not. 1: it is under way, and `request` is parked; 0: open it now; or
 * a negative errno: -EDQUOT, -ENOMEM.
 */
int reports_ask(
    reports_t *reports, model_t *model, const report_open_t *open, void *request);

/* Take out those whose process has answered, or did not in time. */
report_wait_t *reports_take_over(reports_t *reports, model_t *model);
/* Take out all, and withdraw the requests: the session ends. */
report_wait_t *reports_take_all(reports_t *reports, model_t *model);
void report_wait_free(report_wait_t *wait);

bool reports_any(reports_t *reports);

#endif /* RMM_FUSEFS_REPORTS_H */
