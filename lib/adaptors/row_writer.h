/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buffers the rows of an allocation log and writes them to a file and a sink function, in
 * order, and never under the lock that other threads need to add rows.
 *
 * Two buffers: threads fill one; the thread that finds it full writes it while the others fill the
 * second. If both are full, the other threads wait for the writing thread: no row is dropped
 * because a disk is slow.
 *
 * Locking: `lock` protects everything. The thread that has set `writing` uses the spare buffer,
 * the file and the sink without the lock. A sink function may use the adaptor that calls it, and
 * must not wait for itself: if there is no room for a row that it causes, the row is dropped. With
 * auto_flush such a row is written together with the next row of another thread.
 *
 * What the exit handler did not see, because the program allocates in handlers of its own that run
 * later or in destructors of static objects, is written row by row.
 */
#ifndef RMM_ADAPTORS_ROW_WRITER_H
#define RMM_ADAPTORS_ROW_WRITER_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rmm/logging_adaptor.h>

#include "adaptors/log_file.h"
#include "segment/event_csv.h"

#define RMM_ROW_BYTES 512 /* no row is longer */

typedef struct rmm_row_writer {
    pthread_mutex_t lock;
    pthread_cond_t idle; /* `writing` became false */
    char *active, *spare;
    size_t active_length;
    bool writing, has_more;   /* has_more: rows came meanwhile, write again */
    pthread_t writing_thread; /* if writing */
    bool auto_flush;
    uint64_t interval_ns; /* rows are not kept for longer while there are others */
    uint64_t oldest_ns;   /* the time of the first in `active` */
    bool failed;          /* said so once */
    uint64_t lost_rows;
    rmm_event_clock_t clock;
    rmm_log_file_t file;
    char *path; /* NULL: no file */
    rmm_logging_sink_fn sink;
    void *sink_arg;
    rmm_resource_t *owner; /* borrowed: the adaptor that it is part of */
    bool flushed_at_exit;  /* under the lock of the list, as the next two: */
    struct rmm_row_writer *next, *previous; /* of all, for the process's exit */
} rmm_row_writer_t;

/*
 * Opens the file and writes `header` to the sink, and to a file that has none. `self` is zeroed
 * memory that stays where it is, part of `owner`, which is retained while it is flushed at the
 * process's exit.
 * RMM_OK, RMM_ERR_INVALID_ARGUMENT (the path), RMM_ERR_IO, RMM_ERR_OUT_OF_HOST_MEMORY; after
 * a failure nothing is left but the file.
 */
rmm_status_t rmm__row_writer_init(
    rmm_row_writer_t *self, rmm_resource_t *owner, const rmm_logging_options_t *options,
    const char *header);
/* Writes out what is there. */
void rmm__row_writer_fini(rmm_row_writer_t *self);

/*
 * Between begin and end a row is printed to where begin says, and its length and time
 * (CLOCK_REALTIME) given to end. NULL: no room for this row (see above); then no end.
 */
char *rmm__row_begin(rmm_row_writer_t *self);
void rmm__row_end(rmm_row_writer_t *self, size_t length, uint64_t time_ns);

/* RMM_OK, or RMM_ERR_IO if rows were ever lost. */
rmm_status_t rmm__row_writer_flush(rmm_row_writer_t *self);

#endif /* RMM_ADAPTORS_ROW_WRITER_H */
