/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zlib reads plain files as they are, so that both kinds take one path. A compressed
 * file that ends early is an error: half a log would give wrong figures.
 */
#include "replay/log_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "replay/snapshot.h"

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
        snprintf(error, LOG_FILE_ERROR_MAX, "it is a directory, not a log");
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

/* A file that is being read. */
typedef struct reading {
    gzFile file;
    char *chunk;
    size_t length; /* of what the chunk has */
    char *error;
    bool is_first;   /* the chunk was read and not passed on */
    bool has_failed; /* the error says why */
} reading_t;

/* Fills the chunk; 0 bytes at the end. The last bytes of a damaged file may still come out. */
static bool read_chunk(reading_t *reading)
{
    int got = gzread(reading->file, reading->chunk, CHUNK_BYTES);
    int code;
    gzerror(reading->file, &code);
    if (got < 0 || (got == 0 && code != Z_OK)) {
        describe_failure(reading->file, reading->error);
        return false;
    }
    reading->length = (size_t)got;
    return true;
}

/* CSV, from the chunk on that was read. A line without an end, as /dev/zero is, would be read for
 * ever. */
static log_file_result_t read_rows(reading_t *reading, const log_sink_t *sink)
{
    log_reader_t reader;
    log_reader_init(&reader, sink);
    while (reading->length > 0) {
        if (!log_reader_feed(&reader, reading->chunk, reading->length)) {
            return LOG_FILE_STOPPED;
        }
        if (reader.line == 0 && reading->length == CHUNK_BYTES) {
            snprintf(
                reading->error, LOG_FILE_ERROR_MAX,
                "not an allocation log: its first %d bytes are one line", CHUNK_BYTES);
            return LOG_FILE_FAILED;
        }
        if (!read_chunk(reading)) {
            return LOG_FILE_FAILED;
        }
    }
    return log_reader_end(&reader) ? LOG_FILE_OK : LOG_FILE_STOPPED;
}

/* The first piece is the chunk that was read. */
static size_t next_piece(void *context, const char **piece_out)
{
    reading_t *reading = context;
    bool is_read = !reading->has_failed && (reading->is_first || read_chunk(reading));
    reading->is_first = false;
    reading->has_failed = !is_read;
    *piece_out = reading->chunk;
    return is_read ? reading->length : 0;
}

static log_file_result_t read_snapshot(reading_t *reading, const log_sink_t *sink)
{
    char problem[LOG_PROBLEM_MAX];
    reading->is_first = true;
    switch (snapshot_read(next_piece, reading, sink, problem)) {
    case SNAPSHOT_OK:
        return LOG_FILE_OK;
    case SNAPSHOT_STOPPED:
        return LOG_FILE_STOPPED;
    case SNAPSHOT_FAILED:
        break;
    }
    if (!reading->has_failed) { /* else that is why */
        snprintf(reading->error, LOG_FILE_ERROR_MAX, "%s", problem);
    }
    return LOG_FILE_FAILED;
}

/* By its first bytes. */
static log_file_result_t read_all(reading_t *reading, const log_sink_t *sink)
{
    if (!read_chunk(reading)) {
        return LOG_FILE_FAILED;
    }
    if (reading->length > 1 && reading->chunk[0] == '\x80' && reading->chunk[1] < 6) {
        snprintf(
            reading->error, LOG_FILE_ERROR_MAX,
            "a pickle is not read, because it can contain code: write the snapshot "
            "as JSON (see rmm-replay(1))");
        return LOG_FILE_FAILED;
    }
    return snapshot_begins(reading->chunk, reading->length)
               ? read_snapshot(reading, sink)
               : read_rows(reading, sink);
}

log_file_result_t
log_file_read(const char *path, const log_sink_t *sink, char error[LOG_FILE_ERROR_MAX])
{
    static char chunk[CHUNK_BYTES];
    reading_t reading = {.file = open_log(path, error), .chunk = chunk, .error = error};
    if (reading.file == NULL) {
        return LOG_FILE_FAILED;
    }
    log_file_result_t result = read_all(&reading, sink);
    gzclose(reading.file);
    return result;
}
