/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a log from a file, or from standard input where the path is "-": CSV (log.h) or a snapshot
 * of PyTorch (snapshot.h), as its first bytes tell. Both may be compressed, also in several parts.
 */
#ifndef RMM_TOOLS_REPLAY_LOG_FILE_H
#define RMM_TOOLS_REPLAY_LOG_FILE_H

#include "replay/alloc_log.h"

#define LOG_FILE_ERROR_MAX 256

typedef enum log_file_result {
    LOG_FILE_OK,
    LOG_FILE_STOPPED, /* by the sink */
    LOG_FILE_FAILED   /* one line in error, without the path */
} log_file_result_t;

log_file_result_t
log_file_read(const char *path, const log_sink_t *sink, char error[LOG_FILE_ERROR_MAX]);

#endif /* RMM_TOOLS_REPLAY_LOG_FILE_H */
