/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A report of the blocks in the process's pools, while it is made, and how it becomes the file
 * "<segment>.blocks" (segment/segment_blocks.h).
 *
 * Memory is taken by reserve, outside of every lock; add only fills what is there. What finds
 * no room is counted. Each resource may have an equal part of the rows that are left.
 *
 * Threads: one at a time; add is called under a resource's lock.
 */
#ifndef RMM_PUBLISH_BLOCK_LIST_H
#define RMM_PUBLISH_BLOCK_LIST_H

#include <stdbool.h>
#include <stdint.h>

#include "segment/segment_blocks.h"

typedef struct rmm_block_list {
    rmm_blocks_row_t *rows;
    uint32_t row_count, row_capacity;
    uint32_t row_limit; /* of the resource that is being listed */
    uint32_t most_rows; /* of all */
    uint32_t resource_count;
    rmm_blocks_resource_t resources[RMM_BLOCKS_RESOURCES_MAX];
} rmm_block_list_t;

/* NULL without host memory. Rows: at most RMM_BLOCKS_ROWS_MAX. */
rmm_block_list_t *rmm__block_list_create(uint32_t most_rows);
void rmm__block_list_destroy(rmm_block_list_t *list);

/* Begin the blocks of this resource, with so many more resources behind it. False: no room. */
bool rmm__block_list_begin(
    rmm_block_list_t *list, uint32_t resource_id, uint32_t more_resources);

/* Room for so many more rows, or as many as the resource may have; less without host memory. */
void rmm__block_list_reserve(rmm_block_list_t *list, uint32_t rows);

static inline void rmm__block_list_add(rmm_block_list_t *list, rmm_blocks_row_t row)
{
    rmm_blocks_resource_t *resource = &list->resources[list->resource_count - 1];

    if (list->row_count < list->row_limit && list->row_count < list->row_capacity) {
        list->rows[list->row_count++] = row;
        resource->row_count++;
    } else if (row.state != RMM_BLOCK_CHUNK) {
        resource->left_out_count++;
        resource->left_out_bytes += row.bytes;
    }
}

/* So many bytes of it have no row: they are being mapped elsewhere, or given back. */
static inline void rmm__block_list_moving(rmm_block_list_t *list, uint64_t bytes)
{
    list->resources[list->resource_count - 1].moving_bytes += bytes;
}

/* Give the file its name. 0, or a negative errno with *step_out a phrase that says what failed:
 * then nothing is left behind, and an earlier report stays. */
int rmm__block_list_publish(
    const rmm_block_list_t *list, uint32_t number, const char **step_out);

/* Where: for messages. */
const char *rmm__block_list_directory(void);

#endif /* RMM_PUBLISH_BLOCK_LIST_H */
