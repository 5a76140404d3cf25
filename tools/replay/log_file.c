/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zlib reads plain files as they are, so that both kinds take one path. A compressed
 * file that ends early is an error: half a log would give wrong figures.
 */
#include "replay/log_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#define CHUNK_BYTES 65536

static gzFile open_log(const char *path, char error[LOG_FILE_ERROR_MAX])
{
    struct stat st;
    gzFile file = NULL;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        snprintf(error, LOG_FILE_ERROR_MAX, "%s", strerror(errno));
        return NULL;
    }
    if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)) {
        snprintf(error, LOG_FILE_ERROR_MAX, "is a directory, not a log");
    } else {
        file = gzdopen(fd, "rb");
        if (file == NULL) {
            snprintf(error, LOG_FILE_ERROR_MAX, "no host memory to read it");
        }
    }
    if (file == NULL) {
        close(fd);
    }
    return file;
}

static void describe_failure(gzFile file, char error[LOG_FILE_ERROR_MAX])
{
    int code;
    int saved = errno;
    const char *text = gzerror(file, &code);
    if (code == Z_BUF_ERROR) {
        snprintf(error, LOG_FILE_ERROR_MAX, "the compressed file ends too early");
    } else if (code == Z_ERRNO) {
        snprintf(error, LOG_FILE_ERROR_MAX, "%s", strerror(saved));
    } else {
        snprintf(error, LOG_FILE_ERROR_MAX, "the compressed file is damaged: %s", text);
    }
}

/* The last bytes of a damaged file may still come out: gzclose tells. */
static log_file_result_t
read_all(gzFile file, log_reader_t *reader, char error[LOG_FILE_ERROR_MAX])
{
    static char chunk[CHUNK_BYTES];
    for (;;) {
        int got = gzread(file, chunk, sizeof chunk);
        int code;
        gzerror(file, &code);
        if (got < 0 || (got == 0 && code != Z_OK)) {
            describe_failure(file, error);
            return LOG_FILE_FAILED;
        }
        if (got == 0) {
            return log_reader_end(reader) ? LOG_FILE_OK : LOG_FILE_STOPPED;
        }
        if (!log_reader_feed(reader, chunk, (size_t)got)) {
            return LOG_FILE_STOPPED;
        }
    }
}

log_file_result_t
log_file_read(const char *path, const log_sink_t *sink, char error[LOG_FILE_ERROR_MAX])
{
    log_reader_t reader;
    log_reader_init(&reader, sink);
    gzFile file = open_log(path, error);
    if (file == NULL) {
        return LOG_FILE_FAILED;
    }
    log_file_result_t result = read_all(file, &reader, error);
    gzclose(file);
    return result;
}
