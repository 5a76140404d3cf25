/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests about open files: texts that are read, commands that are written, and what
 * waits: reads at the end of a stream, polls, writes.
 *
 * A request that waits occupies no thread: the thread that takes it out of the waiters, or of the
 * writes, answers it.
 *
 * Locking: as in ll_ops.c.
 */
#include "session/ll_session.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "render/stream.h"

/* --- files ---------------------------------------------------------------------------- */

void answer_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    node_t node;
    file_t *file;
    opened_list_t *list = list_of(req);
    int error =
        node_from_inode(ino, &node)
            ? file_open(list, watch_of(req), node, fi->flags, reader_of(req), &file)
            : -ENOENT;
    if (error != 0) {
        fuse_reply_err(req, -error);
        return;
    }
    fi->fh = (uintptr_t)file;
    fi->direct_io = 1;
    fi->noflush = 1;
    if (fuse_reply_open(req, fi) == -ENOENT) {
        file_close(list, file); /* the open was interrupted: no release will come */
    }
}

/* --- streams -------------------------------------------------------------------------- */

/* False: another reader of the same descriptor was faster. No answer then: none at all
 * would be the end of the file. */
static bool reply_stream(fuse_req_t req, stream_t *stream, size_t size)
{
    text_t text;
    text_init(&text);
    stream_take(stream, size, &text);
    bool answered = text.failed != TEXT_GOOD || text.length != 0 || size == 0;
    if (text.failed != TEXT_GOOD) {
        fuse_reply_err(req, -text_error(&text));
    } else if (answered) {
        fuse_reply_buf(req, text.data, text.length);
    }
    text_fini(&text);
    return answered;
}

static bool is_interrupted(void *request)
{
    return fuse_req_interrupted(request) != 0;
}

/* The reader got a signal. The thread that takes the request out of the waiters answers it. */
static void give_up_read(fuse_req_t req, void *data)
{
    session_t *session = data;
    if (waiters_take(&session->waiters, req)) {
        fuse_reply_err(req, EINTR);
    }
}

static void park_read(session_t *session, fuse_req_t req, stream_t *stream, size_t size)
{
    const waiter_t waiter = {.request = req, .stream = stream, .size = size};
    fuse_req_interrupt_func(req, give_up_read, session);
    if (!waiters_add(&session->waiters, &waiter, is_interrupted)) {
        fuse_reply_err(req, is_interrupted(req) ? EINTR : ENOMEM);
    }
}

static stream_state_t fetch(session_t *session, stream_t *stream)
{
    const model_t *model = watch_begin(session->watch);
    stream_state_t state = stream_fetch(stream, model);
    watch_end(session->watch);
    return state;
}

static void read_stream(fuse_req_t req, stream_t *stream, size_t size, bool may_wait)
{
    session_t *session = fuse_req_userdata(req);
    stream_state_t state = fetch(session, stream);
    while (state == STREAM_DATA && !reply_stream(req, stream, size)) {
        state = fetch(session, stream);
    }
    if (state == STREAM_END) {
        fuse_reply_buf(req, NULL, 0);
    } else if (state == STREAM_WAIT && !may_wait) {
        fuse_reply_err(req, EAGAIN);
    } else if (state == STREAM_WAIT) {
        park_read(session, req, stream, size);
    }
}

/* The result of a poll of a file now. */
static unsigned poll_events(session_t *session, file_t *file)
{
    stream_t *stream = file_stream_of(file);
    if (stream != NULL) {
        return fetch(session, stream) == STREAM_WAIT ? 0 : POLLIN | POLLRDNORM;
    }
    unsigned always = POLLIN | POLLRDNORM | POLLOUT | POLLWRNORM;
    bool is_urgent = file_has_counters(file) && file_is_outdated(file, session->watch);
    return always | (is_urgent ? POLLPRI : 0);
}

/* Something that the poll may wait for has not come. */
static bool is_awaited(const file_t *file, unsigned events)
{
    return file_has_counters(file) ? (events & POLLPRI) == 0 : events == 0;
}

void ll_poll(
    fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi,
    struct fuse_pollhandle *handle)
{
    session_t *session = fuse_req_userdata(req);
    file_t *file = file_of(fi);
    unsigned events = poll_events(session, file);
    (void)ino;
    if (handle != NULL) {
        const waiter_t waiter = {
            .request = handle,
            .stream = file_stream_of(file),
            .file = file_stream_of(file) == NULL ? file : NULL,
            .is_poll = true};
        void *unused = NULL;
        if (!is_awaited(file, events) ||
            !waiters_add_poll(&session->waiters, &waiter, &unused)) {
            unused = handle;
        }
        if (unused != NULL) {
            fuse_pollhandle_destroy(unused);
        }
    }
    fuse_reply_poll(req, events);
}

/* Those of a list. */
static void drop_waiters(waiter_t *waiter)
{
    while (waiter != NULL) {
        waiter_t *next = waiter->next;
        if (waiter->is_poll) {
            fuse_pollhandle_destroy(waiter->request);
        } else {
            fuse_reply_err(waiter->request, ENODEV);
        }
        free(waiter);
        waiter = next;
    }
}

/* watch_tick() has collected the journal a moment ago: once for all waiters. */
static bool is_ready(const waiter_t *waiter, void *arg)
{
    return waiter->stream != NULL
               ? stream_fetch_collected(waiter->stream, arg) != STREAM_WAIT
               : file_may_be_outdated(waiter->file, arg);
}

static void answer_waiter(waiter_t *waiter)
{
    if (waiter->is_poll) {
        (void)fuse_lowlevel_notify_poll(waiter->request);
        fuse_pollhandle_destroy(waiter->request);
    } else {
        read_stream(waiter->request, waiter->stream, waiter->size, true);
    }
    free(waiter);
}

/* --- writes that wait ----------------------------------------------------------------- */

/* `wait` is a list. */
static void answer_writes(waiting_write_t *wait)
{
    while (wait != NULL) {
        waiting_write_t *next = wait->next;
        if (wait->error != 0) {
            fuse_reply_err(wait->request, -wait->error);
        } else {
            fuse_reply_write(wait->request, wait->size);
        }
        waiting_write_free(wait);
        wait = next;
    }
}

static void look_at_writes(session_t *session)
{
    if (waiting_writes_any(&session->writes)) {
        model_t *model = watch_begin_change(session->watch);
        waiting_write_t *over = waiting_writes_take_over(&session->writes, model);
        watch_end(session->watch);
        answer_writes(over);
    }
}

static void
write_waiting(fuse_req_t req, const file_t *file, const file_bytes_t *written)
{
    session_t *session = fuse_req_userdata(req);
    uid_t uid = fuse_req_ctx(req)->uid;
    int error;
    waiting_write_t *wait =
        waiting_write_new(&watch_model(session->watch)->budget, uid, &error);
    if (wait == NULL) {
        fuse_reply_err(req, -error);
        return;
    }
    wait->request = req;
    wait->size = written->length;
    error = file_write(file, session->watch, uid, written, wait);
    if (error != 0) {
        waiting_write_free(wait);
        fuse_reply_err(req, error == -ENOENT ? ENODEV : -error);
        return;
    }
    waiting_writes_add(&session->writes, wait);
    waiters_wake(&session->waiters);
}

int session_news_fd(const session_t *session)
{
    return session->waiters.news_fd;
}

/* When to come again. */
static session_due_t when_due(session_t *session)
{
    if (waiting_writes_any(&session->writes) || reports_any(&session->reports) ||
        waiters_any_urgent(&session->waiters)) {
        return SESSION_SOON;
    }
    return waiters_any(&session->waiters) ? SESSION_LATER : SESSION_IDLE;
}

session_due_t session_wake(session_t *session)
{
    uint64_t count;
    (void)!read(session->waiters.news_fd, &count, sizeof(count));
    look_at_writes(session);
    look_at_reports(session);
    if (!waiters_any(&session->waiters)) {
        return when_due(session);
    }
    const model_t *model = watch_begin(session->watch);
    waiter_t *waiter =
        waiters_take_ready(&session->waiters, is_ready, (void *)(uintptr_t)model);
    watch_end(session->watch);
    while (waiter != NULL) {
        waiter_t *next = waiter->next;
        answer_waiter(waiter);
        waiter = next;
    }
    return when_due(session);
}

/* --- reading and writing -------------------------------------------------------------- */

/* To a descriptor of what is gone: ENODEV, as in /proc and sysfs. */
static void reply_access_error(fuse_req_t req, int error)
{
    fuse_reply_err(req, error == -ENOENT ? ENODEV : -error);
}

bool answer_read(
    fuse_req_t req, const file_part_t *part, struct fuse_file_info *fi, bool may_wait)
{
    opened_list_t *list = list_of(req);
    file_t *file = file_of(fi);
    const char *bytes;
    size_t length;
    /* splice, sendfile and a mapping read a page, which would be every reader's, and would
     * stay as it is. They know EINVAL, and read(2) instead. */
    if (fi->lock_owner == 0) {
        fuse_reply_err(req, EINVAL);
        return true;
    }
    if (!file_may_read(file, fuse_req_ctx(req)->uid)) {
        fuse_reply_err(req, EACCES);
        return true;
    }
    if (file_stream_of(file) != NULL) {
        read_stream(
            req, file_stream_of(file), part->size, (fi->flags & O_NONBLOCK) == 0);
        return true;
    }
    int error = file_read(file, watch_of(req), part, may_wait, &bytes, &length);
    if (error == -EWOULDBLOCK) {
        return false;
    }
    if (error != 0) {
        reply_access_error(req, error);
        return true;
    }
    fuse_reply_buf(req, bytes, length);
    file_read_end(list, file); /* req is gone: not list_of(req) here */
    return true;
}

/* Only SEEK_HOLE and SEEK_DATA come here. Without an answer the kernel takes what lies between
 * the text of this open and a longer one, rendered since, for a hole: grep calls the file binary
 * and prints nothing. All that look for holes know EINVAL. */
void ll_lseek(
    fuse_req_t req, fuse_ino_t ino, off_t offset, int whence, struct fuse_file_info *fi)
{
    (void)ino;
    (void)offset;
    (void)whence;
    (void)fi;
    fuse_reply_err(req, EINVAL);
}

/* Each write is a command of its own, wherever the descriptor stands: `>` and `>>` mean
 * the same. */
void ll_write(
    fuse_req_t req, fuse_ino_t ino, const char *bytes, size_t size, off_t offset,
    struct fuse_file_info *fi)
{
    (void)ino;
    (void)offset;
    const file_bytes_t written = {bytes, size};
    if (file_write_waits(file_of(fi))) {
        write_waiting(req, file_of(fi), &written);
        return;
    }
    int error =
        file_write(file_of(fi), watch_of(req), fuse_req_ctx(req)->uid, &written, NULL);
    if (error != 0) {
        reply_access_error(req, error);
    } else {
        fuse_reply_write(req, size);
    }
}

void ll_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    (void)ino;
    session_t *session = fuse_req_userdata(req);
    file_t *file = file_of(fi);
    stream_t *stream = file_stream_of(file);
    if (stream != NULL || file_has_counters(file)) {
        drop_waiters(
            waiters_take_all(&session->waiters, stream, stream == NULL ? file : NULL));
    }
    file_close(&session->opened, file);
    fuse_reply_err(req, 0);
}

void files_end(session_t *session)
{
    drop_waiters(waiters_take_all(&session->waiters, NULL, NULL));
    answer_writes(waiting_writes_take_all(&session->writes, -ENODEV));
}
