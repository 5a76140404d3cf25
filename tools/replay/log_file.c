/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A log may consist of several gzip members and of plain text behind them, as `cat` joins logs of
 * several runs. gzread() of zlib ignores what is no member behind one, so the members are
 * inflated here. Plain text ends at the end of the file only.
 *
 * A compressed log that ends early is read up to there, like a plain log whose last row is cut, and
 * this is a problem with its line. One that is damaged is an error: its rows could be any.
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

#include "common/input.h"
#include "replay/snapshot.h"

#define CHUNK_BYTES 65536
#define GZIP_ONLY (16 + MAX_WBITS)
#define GZIP_MAGIC_BYTES 2

/* A file that is being read. */
typedef struct reading {
    int fd;
    z_stream stream; /* next_in and avail_in: bytes of the file that are not used yet */
    bool in_member;  /* else plain text, or no byte of the file was looked at */
    bool is_plain;
    bool has_ended; /* the file has */
    bool is_cut;    /* it ends amid a member */
    Bytef *input;
    char *chunk;
    size_t length; /* of what the chunk has */
    char *error;
    bool is_first;   /* the chunk was read and not passed on */
    bool has_failed; /* the error says why */
} reading_t;

static int open_log(const char *path, char error[LOG_FILE_ERROR_MAX])
{
    struct stat st;
    int fd = input_open(path);
    if (fd < 0) {
        snprintf(error, LOG_FILE_ERROR_MAX, "%s", strerror(errno));
        return -1;
    }
    if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)) {
        snprintf(error, LOG_FILE_ERROR_MAX, "it is a directory, not a log");
        close(fd);
        return -1;
    }
    return fd;
}

static bool fail(reading_t *reading, const char *text)
{
    snprintf(reading->error, LOG_FILE_ERROR_MAX, "%s", text);
    reading->has_failed = true;
    return false;
}

/* Appends bytes of the file to those that are not used yet. False: the error says why. */
static bool read_more(reading_t *reading)
{
    z_stream *stream = &reading->stream;
    ssize_t got;
    memmove(reading->input, stream->next_in, stream->avail_in);
    stream->next_in = reading->input;
    do {
        got = read(
            reading->fd, reading->input + stream->avail_in,
            CHUNK_BYTES - stream->avail_in);
    } while (got < 0 && errno == EINTR);
    if (got < 0) {
        return fail(reading, strerror(errno));
    }
    reading->has_ended = got == 0;
    stream->avail_in += (uInt)got;
    return true;
}

/* Whether a member or plain text begins at the next byte. */
static bool begin_part(reading_t *reading)
{
    static const Bytef magic[GZIP_MAGIC_BYTES] = {0x1f, 0x8b};
    z_stream *stream = &reading->stream;
    while (stream->avail_in < GZIP_MAGIC_BYTES && !reading->has_ended) {
        if (!read_more(reading)) {
            return false;
        }
    }
    reading->is_plain = stream->avail_in < GZIP_MAGIC_BYTES ||
                        memcmp(stream->next_in, magic, GZIP_MAGIC_BYTES) != 0;
    if (reading->is_plain) {
        return true;
    }
    reading->in_member = true;
    return inflateReset(stream) == Z_OK || fail(reading, "no host memory to read it");
}

static void copy_plain(reading_t *reading)
{
    z_stream *stream = &reading->stream;
    size_t room = CHUNK_BYTES - reading->length;
    size_t bytes = stream->avail_in < room ? stream->avail_in : room;
    memcpy(reading->chunk + reading->length, stream->next_in, bytes);
    reading->length += bytes;
    stream->next_in += bytes;
    stream->avail_in -= (uInt)bytes;
}

static bool inflate_some(reading_t *reading)
{
    z_stream *stream = &reading->stream;
    stream->next_out = (Bytef *)reading->chunk + reading->length;
    stream->avail_out = (uInt)(CHUNK_BYTES - reading->length);
    int result = inflate(stream, Z_NO_FLUSH);
    reading->length = CHUNK_BYTES - stream->avail_out;
    if (result == Z_STREAM_END) {
        reading->in_member = false;
    } else if (result == Z_BUF_ERROR && reading->has_ended) {
        reading->is_cut = true;
        return fail(reading, "the compressed file ends too early");
    } else if (result != Z_OK && result != Z_BUF_ERROR) {
        snprintf(
            reading->error, LOG_FILE_ERROR_MAX, "the compressed file is damaged: %s",
            stream->msg != NULL ? stream->msg : zError(result));
        reading->has_failed = true;
    }
    return !reading->has_failed;
}

/* Adds to the chunk. False: the error says why. */
static bool read_some(reading_t *reading)
{
    if (reading->stream.avail_in == 0 && !reading->has_ended && !read_more(reading)) {
        return false;
    }
    if (!reading->in_member && !reading->is_plain && !begin_part(reading)) {
        return false;
    }
    if (reading->in_member) {
        return inflate_some(reading);
    }
    copy_plain(reading);
    return true;
}

/* Fills the chunk; 0 bytes at the end. What was read before a failure comes out first. */
static bool read_chunk(reading_t *reading)
{
    bool is_more = true;
    reading->length = 0;
    while (!reading->has_failed && is_more && reading->length < CHUNK_BYTES) {
        (void)read_some(reading);
        is_more =
            reading->in_member || reading->stream.avail_in > 0 || !reading->has_ended;
    }
    return reading->length > 0 || !reading->has_failed;
}

/* The unfinished line of a cut file is no row. False: the sink stopped the reading. */
static bool report_cut(const reading_t *reading, const log_sink_t *sink, uint64_t lines)
{
    char problem[LOG_PROBLEM_MAX];
    snprintf(
        problem, sizeof(problem), "%.100s: the rows from here on are missing",
        reading->error);
    return sink->problem(sink->context, lines + 1, problem);
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
        if (read_chunk(reading)) {
            continue;
        }
        if (!reading->is_cut || reader.line == 0) {
            return LOG_FILE_FAILED;
        }
        return report_cut(reading, sink, reader.line) ? LOG_FILE_OK : LOG_FILE_STOPPED;
    }
    return log_reader_end(&reader) ? LOG_FILE_OK : LOG_FILE_STOPPED;
}

/* The first piece is the chunk that was read. */
static size_t next_piece(void *context, const char **piece_out)
{
    reading_t *reading = context;
    bool is_read = reading->is_first || read_chunk(reading);
    reading->is_first = false;
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
    static Bytef input[CHUNK_BYTES];
    static char chunk[CHUNK_BYTES];
    reading_t reading = {
        .fd = open_log(path, error), .input = input, .chunk = chunk, .error = error};
    log_file_result_t result = LOG_FILE_FAILED;
    if (reading.fd < 0) {
        return LOG_FILE_FAILED;
    }
    reading.stream.next_in = input;
    if (inflateInit2(&reading.stream, GZIP_ONLY) == Z_OK) {
        result = read_all(&reading, sink);
        inflateEnd(&reading.stream);
    } else {
        (void)fail(&reading, "no host memory to read it");
    }
    close(reading.fd);
    return result;
}
