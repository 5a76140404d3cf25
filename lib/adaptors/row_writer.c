/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of a log on their way to a file; see row_writer.h.
 */
#include "adaptors/row_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/resource_impl.h"
#include "core/descriptor.h"
#include "core/error.h"
#include "core/fork.h"
#include "core/host_memory.h"
#include "core/local_time.h"
#include "core/mutex.h"
#include "log/log.h"

#define BUFFER_BYTES ((size_t)64 * 1024)

/* --- all of them -------------------------------------------------------------------- */

static rmm_mutex_t list_lock = RMM_MUTEX_INITIALIZER; /* protects: */
static rmm_row_writer_t *all;
static bool flushes_at_exit;

/* The logs of before the fork, and the rows in their buffers, are the parent's. */
static void forget_in_child(void)
{
    list_lock = (rmm_mutex_t)RMM_MUTEX_INITIALIZER;
    all = NULL;
}

RMM_AT_LOAD static void join_forks(void)
{
    rmm__fork_join(RMM_FORK_ROW_WRITERS, NULL, forget_in_child);
}

/* The next that was not flushed at exit, and its owner retained; NULL: all were. One whose
 * owner ends just now writes out what it has itself. */
static rmm_row_writer_t *next_to_flush(void)
{
    rmm_row_writer_t *writer;

    rmm__mutex_lock(&list_lock);
    writer = all;
    while (writer != NULL &&
           (writer->flushed_at_exit || !rmm__resource_try_retain(writer->owner))) {
        writer = writer->next;
    }
    if (writer != NULL) {
        writer->flushed_at_exit = true;
    }
    rmm__mutex_unlock(&list_lock);
    return writer;
}

/* Without the lock: a sink may use the library, and end the log that it is the sink of. */
static void flush_all(void)
{
    rmm_row_writer_t *writer = next_to_flush();

    while (writer != NULL) {
        (void)rmm__row_writer_flush(writer);
        rmm_resource_release(writer->owner);
        writer = next_to_flush();
    }
}

static bool enlist(rmm_row_writer_t *self)
{
    rmm__mutex_lock(&list_lock);
    if (!flushes_at_exit) {
        flushes_at_exit = atexit(flush_all) == 0;
    }
    if (flushes_at_exit) {
        self->next = all;
        if (all != NULL) {
            all->previous = self;
        }
        all = self;
    }
    rmm__mutex_unlock(&list_lock);
    return flushes_at_exit;
}

static void delist(rmm_row_writer_t *self)
{
    rmm__mutex_lock(&list_lock);
    if (self->next != NULL) {
        self->next->previous = self->previous;
    }
    if (self->previous != NULL) {
        self->previous->next = self->next;
    } else if (all == self) {
        all = self->next;
    }
    rmm__mutex_unlock(&list_lock);
}

/* --- writing out -------------------------------------------------------------------- */

/* Returns how much of it was written: all, or errno says why not. */
static size_t write_whole(int fd, const char *bytes, size_t length)
{
    size_t done = 0;

    while (done < length) {
        ssize_t put = write(fd, bytes + done, length - done);

        if (put < 0 && errno != EINTR) {
            break;
        }
        done += put > 0 ? (size_t)put : 0;
    }
    return done;
}

static uint64_t count_rows(const char *bytes, size_t length)
{
    uint64_t rows = 0;

    for (size_t i = 0; i < length; i++) {
        rows += bytes[i] == '\n';
    }
    return rows;
}

/* Without the lock, by the one who writes. Returns the rows that were lost. */
static uint64_t put_out(rmm_row_writer_t *self, const char *bytes, size_t length)
{
    size_t written = self->fd >= 0 ? 0 : length;
    int error = 0;

    if (self->fd >= 0 && !self->failed) {
        written = write_whole(self->fd, bytes, length);
        error = written < length ? errno : 0;
    }
    if (self->sink != NULL) {
        self->sink(bytes, length, self->sink_arg);
    }
    if (error != 0) {
        self->failed = true;
        rmm__log_error(
            "allocation log %s: cannot write: %s (%d); rows are dropped from here on",
            self->path, strerror(error), error);
    }
    return count_rows(bytes + written, length - written);
}

/* A sink that uses the adaptor, maybe through the sink of another one. Lock held. */
static bool is_in_own_sink_locked(const rmm_row_writer_t *self)
{
    return self->writing && pthread_equal(self->writing_thread, pthread_self());
}

/* Lock held, and again at the end; nobody else writes. */
static void write_out_locked(rmm_row_writer_t *self)
{
    self->writing = true;
    self->writing_thread = pthread_self();
    do {
        char *bytes = self->active;
        size_t length = self->active_length;
        uint64_t lost;

        self->active = self->spare;
        self->active_length = 0;
        self->has_more = false;
        self->spare = bytes;
        pthread_mutex_unlock(&self->lock);
        lost = put_out(self, bytes, length);
        pthread_mutex_lock(&self->lock);
        self->lost_rows += lost;
    } while (self->has_more);
    self->writing = false;
    pthread_cond_broadcast(&self->idle);
}

char *rmm__row_begin(rmm_row_writer_t *self)
{
    pthread_mutex_lock(&self->lock);
    while (self->active_length + RMM_ROW_BYTES > BUFFER_BYTES) {
        if (!self->writing) {
            write_out_locked(self);
        } else if (is_in_own_sink_locked(self)) {
            self->lost_rows++;
            pthread_mutex_unlock(&self->lock);
            return NULL;
        } else {
            pthread_cond_wait(&self->idle, &self->lock);
        }
    }
    return self->active + self->active_length;
}

void rmm__row_end(rmm_row_writer_t *self, size_t length)
{
    self->active_length += length;
    if (self->auto_flush && !self->writing) {
        write_out_locked(self);
    } else if (self->auto_flush && !is_in_own_sink_locked(self)) {
        self->has_more = true; /* not for a sink's own rows: there is no end of them */
    }
    pthread_mutex_unlock(&self->lock);
}

rmm_status_t rmm__row_writer_flush(rmm_row_writer_t *self)
{
    uint64_t lost;

    pthread_mutex_lock(&self->lock);
    while (self->writing && !is_in_own_sink_locked(self)) {
        pthread_cond_wait(&self->idle, &self->lock);
    }
    if (self->active_length != 0 && !self->writing) {
        write_out_locked(self);
    }
    lost = self->lost_rows;
    pthread_mutex_unlock(&self->lock);
    return lost == 0 ? RMM_OK
                     : rmm__error(
                           RMM_ERR_IO,
                           "allocation log %s: %" PRIu64
                           " rows are lost; see the debug log for why",
                           self->path != NULL ? self->path : "", lost);
}

/* --- life --------------------------------------------------------------------------- */

static rmm_status_t open_file(rmm_row_writer_t *self, const char *path)
{
    self->fd = rmm__descriptor_above_standard(
        open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644));
    return self->fd >= 0 ? RMM_OK
                         : rmm__error(
                               RMM_ERR_IO, "cannot open the allocation log %.300s: %s",
                               path, strerror(errno));
}

static void free_parts(rmm_row_writer_t *self)
{
    if (self->fd >= 0) {
        close(self->fd);
    }
    rmm__free(self->active);
    rmm__free(self->spare);
    rmm__free(self->path);
}

static rmm_status_t
take_memory(rmm_row_writer_t *self, const rmm_logging_options_t *options)
{
    self->fd = -1;
    self->active = rmm__calloc(1, BUFFER_BYTES);
    self->spare = self->active != NULL ? rmm__calloc(1, BUFFER_BYTES) : NULL;
    if (self->spare != NULL && options->path != NULL) {
        self->path = rmm__strdup(options->path);
    }
    return self->spare != NULL && (options->path == NULL || self->path != NULL)
               ? RMM_OK
               : RMM_ERR_OUT_OF_HOST_MEMORY;
}

static void put_header(rmm_row_writer_t *self, const char *header)
{
    char *row = rmm__row_begin(self);
    size_t length = strlen(header);

    memcpy(row, header, length);
    row[length] = '\n';
    rmm__row_end(self, length + 1);
}

rmm_status_t rmm__row_writer_init(
    rmm_row_writer_t *self, rmm_resource_t *owner, const rmm_logging_options_t *options,
    const char *header)
{
    rmm_status_t status = take_memory(self, options);

    if (status == RMM_OK && options->path != NULL) {
        status = open_file(self, options->path);
    }
    if (status != RMM_OK) {
        free_parts(self);
        return status;
    }
    pthread_mutex_init(&self->lock, NULL);
    pthread_cond_init(&self->idle, NULL);
    self->clock.local_time = rmm__local_time;
    self->owner = owner;
    self->auto_flush = options->auto_flush;
    self->sink = options->sink;
    self->sink_arg = options->sink_arg;
    put_header(self, header);
    status = rmm__row_writer_flush(self); /* a disk that is full already */
    if (status == RMM_OK && !enlist(self)) {
        status = rmm__error(RMM_ERR_OUT_OF_HOST_MEMORY, "no room for an exit handler");
    }
    if (status != RMM_OK) {
        pthread_cond_destroy(&self->idle);
        pthread_mutex_destroy(&self->lock);
        free_parts(self);
    }
    return status;
}

void rmm__row_writer_fini(rmm_row_writer_t *self)
{
    delist(self);
    (void)rmm__row_writer_flush(self);
    pthread_cond_destroy(&self->idle);
    pthread_mutex_destroy(&self->lock);
    free_parts(self);
}
