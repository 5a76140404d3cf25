/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of `index.html`: page.c has the devices and programs, page_jobs.c the users and jobs,
 * page_refusals.c the refused allocations. Only for this folder.
 */
#ifndef RMM_FUSEFS_RENDER_PAGE_H
#define RMM_FUSEFS_RENDER_PAGE_H

#include "model/history.h"
#include "model/snapshot.h"
#include "page/node_page.h"
#include "page/order.h"
#include "render/user_names.h"
#include "support/text.h"

#define PAGE_USER_BYTES 32
#define PAGE_JOBS_OF_KIND 12u /* the largest; the others are in `jobs` */

typedef struct drawing {
    const snapshot_t *snapshot;
    model_t *model;
    text_t *text;
    rmm_page_order_t *order; /* of the processes */
    user_names_t users;
    uint64_t gpu_bytes; /* of all GPUs */
    rmm_page_t page;
} drawing_t;

/* A name, or "uid 42" in `number`. */
const char *
page_user(const drawing_t *drawing, uid_t uid, char number[PAGE_USER_BYTES]);

/* A history with its samples. */
typedef struct past {
    float samples[RMM_PAGE_SERIES_MAX][HISTORY_SAMPLES];
    rmm_page_history_t shown;
} past_t;

/* Adds a series; the model's lock is held. */
void past_add(past_t *past, const char *name, const history_t *history);

void page_put_jobs(drawing_t *drawing);

/* Those that the reader may see. Both take the model's lock. */
uint32_t page_count_refusals(const drawing_t *drawing);
void page_put_refusals(drawing_t *drawing);

#endif /* RMM_FUSEFS_RENDER_PAGE_H */
