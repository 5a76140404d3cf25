/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file of an allocation log: its name, and how several writers share it.
 */
#ifndef RMM_ADAPTORS_LOG_FILE_H
#define RMM_ADAPTORS_LOG_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include <rmm/status.h>

#include "core/output.h"

#define RMM_LOG_HEADER_BYTES 256 /* no header is longer */

/*
 * `pattern` with %d replaced by the device ("host" for a negative one), %p by the process,
 * %% by a per cent sign. The caller frees it with rmm__free().
 * RMM_OK, RMM_ERR_INVALID_ARGUMENT (another letter follows a %), RMM_ERR_OUT_OF_HOST_MEMORY.
 */
rmm_status_t rmm__log_file_name(const char *pattern, int device, char **path_out);

typedef struct rmm_log_file {
    rmm_output_t output;
    const char *path; /* as messages name it; borrowed */
    char header[RMM_LOG_HEADER_BYTES];
    bool has_begun; /* its first line is there */
} rmm_log_file_t;

/*
 * Opens `path` to append. A file that is new or empty gets `header`, a line with its newline;
 * any other file must begin with it. A FIFO without a reader is opened by a later write.
 * RMM_OK or RMM_ERR_IO; after a failure nothing is open.
 */
rmm_status_t
rmm__log_file_open(rmm_log_file_t *self, const char *path, const char *header);

/* RMM_OK, or RMM_ERR_IO with how much of it was written. The next write tries again. */
rmm_status_t rmm__log_file_write(
    rmm_log_file_t *self, const char *rows, size_t length, size_t *done_out);

void rmm__log_file_close(rmm_log_file_t *self);

#endif /* RMM_ADAPTORS_LOG_FILE_H */
