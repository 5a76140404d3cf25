/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports of blocks; see block_report.h. A request is answered in any case: if no file could
 * be made, by a warning in the log, and the reader finds none with the request's number.
 */
#include "base/block_report.h"

#include <stdio.h>
#include <string.h>

#include "base/resource_impl.h"
#include "log/log.h"
#include "publish/block_list.h"
#include "publish/requests.h"

typedef void (*list_blocks_fn)(rmm_resource_t *mr, rmm_block_list_t *list);

static list_blocks_fn lister_of(const rmm_resource_t *mr)
{
    return atomic_load_explicit(&mr->ops, memory_order_relaxed)->list_blocks;
}

static uint32_t count_listers(void)
{
    rmm_resource_t *mr = NULL;
    uint32_t count = 0;

    while ((mr = rmm__resource_next_used(mr)) != NULL) {
        count += lister_of(mr) != NULL;
    }
    return count;
}

static void list_all(rmm_block_list_t *list)
{
    uint32_t more = count_listers();
    rmm_resource_t *mr = NULL;

    while ((mr = rmm__resource_next_used(mr)) != NULL) {
        list_blocks_fn list_blocks = lister_of(mr);

        if (list_blocks != NULL) {
            more -= more > 0;
            if (rmm__block_list_begin(list, mr->instance_id, more)) {
                list_blocks(mr, list);
            }
        }
    }
}

static void report(const rmm_report_request_t *request)
{
    rmm_block_list_t *list = rmm__block_list_create(request->rows);
    const char *step;
    int error;

    if (list == NULL) {
        rmm__log_warn("/rmm will not show this program's blocks: no host memory");
        return;
    }
    list_all(list);
    error = rmm__block_list_publish(list, request->number, &step);
    if (error != 0) {
        rmm__log_warn(
            "/rmm will not show this program's blocks: cannot %s in %s: %s (%d)", step,
            rmm__block_list_directory(), strerror(-error), -error);
    }
    rmm__block_list_destroy(list);
}

void rmm__block_report_obey(void)
{
    rmm_report_request_t request;
    rmm_error_kept_t kept;

    if (!rmm__requests_take_report(&request)) {
        return;
    }
    rmm__error_keep(&kept); /* of a report that fails the caller learns nothing */
    if (request.rows != 0) {
        report(&request);
    }
    rmm__error_restore(&kept);
    rmm__requests_reported(&request);
}
