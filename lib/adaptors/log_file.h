/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file of an allocation log: its name, and how several writers share it.
 */
#ifndef RMM_ADAPTORS_LOG_FILE_H
#define RMM_ADAPTORS_LOG_FILE_H

#include <stddef.h>

#include <rmm/status.h>

/*
 * `pattern` with %d replaced by the device ("host" for a negative one), %p by the process,
 * %% by a per cent sign. The caller frees it with rmm__free().
 * RMM_OK, RMM_ERR_INVALID_ARGUMENT (another letter follows a %), RMM_ERR_OUT_OF_HOST_MEMORY.
 */
rmm_status_t rmm__log_file_name(const char *pattern, int device, char **path_out);

/*
 * Opens `path` to append. A file that is new or empty gets `header`, a line with its newline;
 * any other file must begin with it. RMM_OK or RMM_ERR_IO; after a failure nothing is open.
 */
rmm_status_t rmm__log_file_open(const char *path, const char *header, int *fd_out);

/*
 * Returns how much of it was written: all, or errno says why not. EFBIG, and nothing is written:
 * the file would become larger than RLIMIT_FSIZE. Where another writer makes it so large at that
 * moment, the kernel still sends SIGXFSZ. EPIPE: a pipe without a reader; there is no SIGPIPE.
 */
size_t rmm__log_file_write(int fd, const char *bytes, size_t length);

#endif /* RMM_ADAPTORS_LOG_FILE_H */
