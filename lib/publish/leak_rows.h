/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The writer's side of "<segment>.leaks": rows in which a tracking adaptor shows its live
 * blocks. All adaptors of the process share the rows, in chunks. An adaptor uses its own
 * chunks without synchronisation. There is no row if nothing is published or no chunk is left.
 *
 * Locking: the owner's, around every call. Cost: a dozen stores a block.
 */
#ifndef RMM_PUBLISH_LEAK_ROWS_H
#define RMM_PUBLISH_LEAK_ROWS_H

#include <stddef.h>
#include <stdint.h>

#define RMM_LEAK_CHUNK_ROWS 256u
#define RMM_LEAK_CHUNKS 64u
#define RMM_NO_LEAK_ROW UINT32_MAX

typedef struct rmm_leak_rows {
    uint32_t resource_id;
    uint64_t chunks; /* bit i: chunk i is this one's */
    uint32_t *free;  /* rows of its chunks that show nothing */
    size_t free_count, free_capacity;
} rmm_leak_rows_t;

typedef struct rmm_leak {
    const void *ptr;
    size_t bytes;
    void *stream;
    int device;
    void *const *frames;
    size_t frame_count;
} rmm_leak_t;

/* All zero before. Makes the file, once a process; a failure is logged as a warning. */
void rmm__leak_rows_open(rmm_leak_rows_t *rows, uint32_t resource_id);

/* Every row was cleared. */
void rmm__leak_rows_close(rmm_leak_rows_t *rows);

/* The row that shows it now, or RMM_NO_LEAK_ROW. */
uint32_t rmm__leak_row_show(rmm_leak_rows_t *rows, const rmm_leak_t *leak);

/* Clear a row that show() returned; none is fine. */
void rmm__leak_row_clear(rmm_leak_rows_t *rows, uint32_t row);

#endif /* RMM_PUBLISH_LEAK_ROWS_H */
