/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of a log on their way to a file; see row_writer.h.
 */
#include "adaptors/row_writer.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/resource_impl.h"
#include "core/error.h"
#include "core/fork.h"
#include "core/host_memory.h"
#include "core/local_time.h"
#include "core/mutex.h"
#include "core/uncancelled.h"
#include "log/log.h"

#define BUFFER_BYTES ((size_t)64 * 1024)
#define DEFAULT_INTERVAL_MS UINT64_C(1000)
#define NS_OF_MS UINT64_C(1000000)

/* --- all of them -------------------------------------------------------------------- */

static rmm_mutex_t list_lock = RMM_MUTEX_INITIALIZER; /* protects: */
static rmm_row_writer_t *all;
static bool flushes_at_exit;
static atomic_bool is_exiting; /* rows are written one by one */

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

/* At exit() and quick_exit(). Without the lock: a sink may use the library, and end the log that
 * it is the sink of. */
static void flush_all(void)
{
    rmm_row_writer_t *writer;

    atomic_store_explicit(&is_exiting, true, memory_order_relaxed);
    writer = next_to_flush();
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
        flushes_at_exit = atexit(flush_all) == 0 && at_quick_exit(flush_all) == 0;
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

static uint64_t count_rows(const char *bytes, size_t length)
{
    uint64_t rows = 0;

    for (size_t i = 0; i < length; i++) {
        rows += bytes[i] == '\n';
    }
    return rows;
}

/* Returns how much was written. What the thread's last error is stays. */
static size_t put_in_file(rmm_row_writer_t *self, const char *bytes, size_t length)
{
    rmm_error_kept_t kept;
    size_t written;

    rmm__error_keep(&kept);
    if (rmm__log_file_write(&self->file, bytes, length, &written) != RMM_OK &&
        !self->failed) {
        self->failed = true;
        rmm__log_error(
            "%s; rows are dropped until it can be written", rmm_last_error_message());
    }
    rmm__error_restore(&kept);
    return written;
}

/* Without the lock, by the thread that writes. Returns the rows that were lost. */
static uint64_t put_out(rmm_row_writer_t *self, const char *bytes, size_t length)
{
    size_t written = self->path != NULL ? put_in_file(self, bytes, length) : length;

    if (self->sink != NULL) {
        self->sink(bytes, length, self->sink_arg);
    }
    return count_rows(bytes + written, length - written);
}

/* A sink that uses the adaptor, maybe through the sink of another one. Lock held. */
static bool is_in_own_sink_locked(const rmm_row_writer_t *self)
{
    return self->writing && pthread_equal(self->writing_thread, pthread_self());
}

static void end_writing_locked(rmm_row_writer_t *self)
{
    self->writing = false;
    pthread_cond_broadcast(&self->idle);
}

/* An exception of a sink leaves put_out(). NULL: none does. */
static void end_unwound(rmm_row_writer_t *const *unwound)
{
    if (*unwound != NULL) {
        pthread_mutex_lock(&(*unwound)->lock);
        end_writing_locked(*unwound);
        pthread_mutex_unlock(&(*unwound)->lock);
    }
}

/* Lock held, and not at the end; no other thread writes. */
static void write_out_and_unlock(rmm_row_writer_t *self)
{
    RMM_UNCANCELLED;
    RMM_AT_END(end_unwound) rmm_row_writer_t *unwound = self;

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
    end_writing_locked(self);
    unwound = NULL;
    pthread_mutex_unlock(&self->lock);
}

/* Lock held. */
static void wait_until_idle_locked(rmm_row_writer_t *self)
{
    RMM_UNCANCELLED;

    pthread_cond_wait(&self->idle, &self->lock);
}

char *rmm__row_begin(rmm_row_writer_t *self)
{
    pthread_mutex_lock(&self->lock);
    while (self->active_length + RMM_ROW_BYTES > BUFFER_BYTES) {
        if (!self->writing) {
            write_out_and_unlock(self);
            pthread_mutex_lock(&self->lock);
        } else if (is_in_own_sink_locked(self)) {
            self->lost_rows++;
            pthread_mutex_unlock(&self->lock);
            return NULL;
        } else {
            wait_until_idle_locked(self);
        }
    }
    return self->active + self->active_length;
}

/* Unsigned: a clock that was set back makes them due. */
static bool are_due_locked(const rmm_row_writer_t *self, uint64_t time_ns)
{
    return self->auto_flush || time_ns - self->oldest_ns >= self->interval_ns ||
           atomic_load_explicit(&is_exiting, memory_order_relaxed);
}

void rmm__row_end(rmm_row_writer_t *self, size_t length, uint64_t time_ns)
{
    self->oldest_ns = self->active_length == 0 ? time_ns : self->oldest_ns;
    self->active_length += length;
    if (are_due_locked(self, time_ns)) {
        if (!self->writing) {
            write_out_and_unlock(self);
            return;
        }
        /* not for a sink's own rows: there is no end of them */
        self->has_more |= !is_in_own_sink_locked(self);
    }
    pthread_mutex_unlock(&self->lock);
}

rmm_status_t rmm__row_writer_flush(rmm_row_writer_t *self)
{
    uint64_t lost;

    pthread_mutex_lock(&self->lock);
    while (self->writing && !is_in_own_sink_locked(self)) {
        wait_until_idle_locked(self);
    }
    if (self->active_length != 0 && !self->writing) {
        write_out_and_unlock(self);
        pthread_mutex_lock(&self->lock);
    }
    lost = self->lost_rows;
    pthread_mutex_unlock(&self->lock);
    return lost == 0
               ? RMM_OK
               : rmm__error(
                     RMM_ERR_IO, "allocation log %s: %" PRIu64 " rows were dropped",
                     self->path != NULL ? self->path : "(sink)", lost);
}

/* --- life --------------------------------------------------------------------------- */

static void free_parts(rmm_row_writer_t *self)
{
    if (self->path != NULL) {
        rmm__log_file_close(&self->file);
    }
    rmm__free(self->active);
    rmm__free(self->spare);
    rmm__free(self->path);
}

static rmm_status_t take_memory(rmm_row_writer_t *self)
{
    self->active = rmm__calloc(1, BUFFER_BYTES);
    self->spare = self->active != NULL ? rmm__calloc(1, BUFFER_BYTES) : NULL;
    return self->spare != NULL ? RMM_OK : RMM_ERR_OUT_OF_HOST_MEMORY;
}

/* A file may have its header already; a sink is new to this log. */
static rmm_status_t open_ends(
    rmm_row_writer_t *self, const rmm_logging_options_t *options, const char *header)
{
    char line[RMM_ROW_BYTES];
    int length = snprintf(line, sizeof(line), "%s\n", header);
    rmm_status_t status = RMM_OK;

    if (options->path != NULL) {
        status = rmm__log_file_name(options->path, self->owner->device, &self->path);
    }
    if (status == RMM_OK && self->path != NULL) {
        status = rmm__log_file_open(&self->file, self->path, line);
    }
    if (status == RMM_OK && self->sink != NULL) {
        self->sink(line, (size_t)length, self->sink_arg);
    }
    return status;
}

static uint64_t interval_ns_of(const rmm_logging_options_t *options)
{
    uint64_t ms = options->flush_interval_ms;

    return ms == RMM_LOGGING_NO_INTERVAL ? UINT64_MAX
           : ms == 0                     ? DEFAULT_INTERVAL_MS * NS_OF_MS
                                         : ms * NS_OF_MS;
}

rmm_status_t rmm__row_writer_init(
    rmm_row_writer_t *self, rmm_resource_t *owner, const rmm_logging_options_t *options,
    const char *header)
{
    RMM_UNCANCELLED;
    rmm_status_t status;

    self->clock.local_time = rmm__local_time;
    self->owner = owner;
    self->auto_flush = options->auto_flush;
    self->interval_ns = interval_ns_of(options);
    self->sink = options->sink;
    self->sink_arg = options->sink_arg;
    status = take_memory(self);
    if (status == RMM_OK) {
        status = open_ends(self, options, header);
    }
    if (status != RMM_OK) {
        free_parts(self);
        return status;
    }
    pthread_mutex_init(&self->lock, NULL);
    pthread_cond_init(&self->idle, NULL);
    if (!enlist(self)) {
        rmm__row_writer_fini(self);
        return rmm__error(
            RMM_ERR_OUT_OF_HOST_MEMORY,
            "cannot register an exit handler: no host memory");
    }
    return RMM_OK;
}

void rmm__row_writer_fini(rmm_row_writer_t *self)
{
    RMM_UNCANCELLED;

    delist(self);
    (void)rmm__row_writer_flush(self);
    if (self->lost_rows != 0) {
        rmm__log_warn(
            "allocation log %s: %" PRIu64 " rows were dropped in all",
            self->path != NULL ? self->path : "(sink)", self->lost_rows);
    }
    pthread_cond_destroy(&self->idle);
    pthread_mutex_destroy(&self->lock);
    free_parts(self);
}
