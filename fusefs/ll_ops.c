/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests of the kernel, translated: inode numbers to nodes, errors to errno, texts to
 * replies. The only file that knows FUSE.
 *
 * Inode numbers carry everything (tree.h), so lookups are not counted and forget has
 * nothing to do. Files have size 0 and direct_io, as in /proc: without it the kernel
 * believes the size and `cat` prints nothing.
 *
 * Entries may be cached for a second; names that are not there never are, so that a new
 * process is found at once, and a process that left is taken back (session_forget).
 *
 * Locking: each look at the model is between watch_begin and watch_end, and replies are
 * sent after it. Once a reply is sent the request is gone, and what it was about may be
 * closed by another thread.
 */
#define FUSE_USE_VERSION 312

#include "ll_ops.h"

#include <errno.h>
#include <fcntl.h>
#include <fuse_lowlevel.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "control.h"
#include "journal.h"
#include "opened.h"
#include "stream.h"
#include "tree.h"
#include "waiters.h"

#define CACHE_SECONDS 1.0
#define THREADS_MAX 10
#define NAME_BYTES_MAX 255

struct session {
    struct fuse_session *fuse;
    watch_t *watch;
    opened_list_t opened;
    waiters_t waiters;
    bool mounted;
};

static watch_t *watch_of(fuse_req_t req)
{
    const session_t *session = fuse_req_userdata(req);
    return session->watch;
}

/* --- attributes ----------------------------------------------------------------------- */

static void fill_times(struct stat *attributes, uint64_t changed_ns)
{
    struct timespec time;
    if (changed_ns == 0) {
        clock_gettime(CLOCK_REALTIME, &time);
    } else {
        time.tv_sec = (time_t)(changed_ns / 1000000000u);
        time.tv_nsec = (long)(changed_ns % 1000000000u);
    }
    attributes->st_atim = time;
    attributes->st_mtim = time;
    attributes->st_ctim = time;
}

/* Of the node's log: what this user may read of it. */
static void
fill_spool(const model_t *model, node_t node, uid_t uid, struct stat *attributes)
{
    journal_collect(model->journal, model);
    journal_extent_t extent = journal_extent(model->journal, node.id, uid);
    attributes->st_size = (off_t)extent.bytes;
    fill_times(
        attributes,
        extent.changed_ns != 0 ? extent.changed_ns : model->started_real_ns);
}

/* Its attributes change as it grows, and another file takes its name. */
static double cache_seconds(node_t node)
{
    return node_is_spool(node) ? 0.0 : CACHE_SECONDS;
}

/* False: gone. */
static bool
fill_attributes(const model_t *model, node_t node, uid_t uid, struct stat *attributes)
{
    node_info_t info;
    memset(attributes, 0, sizeof(*attributes));
    if (!tree_info(model, node, &info)) {
        return false;
    }
    attributes->st_ino = node_to_inode(node);
    attributes->st_mode = info.mode;
    attributes->st_nlink = S_ISDIR(info.mode) ? 2 : 1;
    attributes->st_uid = info.uid;
    attributes->st_gid = info.gid;
    attributes->st_blksize = 4096;
    fill_times(attributes, info.changed_ns);
    if (node_is_spool(node)) {
        fill_spool(model, node, uid, attributes);
    }
    return true;
}

static bool
fill_entry(const model_t *model, node_t node, uid_t uid, struct fuse_entry_param *entry)
{
    memset(entry, 0, sizeof(*entry));
    entry->ino = node_to_inode(node);
    entry->attr_timeout = cache_seconds(node);
    entry->entry_timeout = cache_seconds(node);
    return fill_attributes(model, node, uid, &entry->attr);
}

static void ll_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    struct fuse_entry_param entry;
    node_t dir, node;
    bool found = false;
    if (strlen(name) > NAME_BYTES_MAX) {
        fuse_reply_err(req, ENAMETOOLONG);
        return;
    }
    if (node_from_inode(parent, &dir)) {
        const model_t *model = watch_begin(watch_of(req));
        found = tree_lookup(model, dir, name, &node) &&
                fill_entry(model, node, fuse_req_ctx(req)->uid, &entry);
        watch_end(watch_of(req));
    }
    if (found) {
        fuse_reply_entry(req, &entry);
    } else {
        fuse_reply_err(req, ENOENT);
    }
}

static bool get_attributes(fuse_req_t req, fuse_ino_t ino, struct stat *attributes)
{
    node_t node;
    if (!node_from_inode(ino, &node)) {
        return false;
    }
    const model_t *model = watch_begin(watch_of(req));
    bool found = fill_attributes(model, node, fuse_req_ctx(req)->uid, attributes);
    watch_end(watch_of(req));
    return found;
}

static void ll_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct stat attributes;
    (void)fi;
    node_t node = tree_root;
    (void)node_from_inode(ino, &node);
    if (get_attributes(req, ino, &attributes)) {
        fuse_reply_attr(req, &attributes, cache_seconds(node));
    } else {
        fuse_reply_err(req, ENOENT);
    }
}

/* truncate(1) before a write is well meant and changes nothing; owner and mode are those
 * of the process. */
static void ll_setattr(
    fuse_req_t req, fuse_ino_t ino, struct stat *wanted, int to_set,
    struct fuse_file_info *fi)
{
    struct stat attributes;
    node_t node = tree_root;
    (void)wanted;
    (void)fi;
    if (!get_attributes(req, ino, &attributes)) {
        fuse_reply_err(req, ENOENT);
    } else if (
        (to_set & (FUSE_SET_ATTR_MODE | FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID)) != 0) {
        fuse_reply_err(req, EPERM);
    } else if (
        (to_set & FUSE_SET_ATTR_SIZE) != 0 && (attributes.st_mode & S_IWUSR) == 0) {
        fuse_reply_err(req, EACCES);
    } else {
        (void)node_from_inode(ino, &node);
        fuse_reply_attr(req, &attributes, cache_seconds(node));
    }
}

static void ll_readlink(fuse_req_t req, fuse_ino_t ino)
{
    char target[TREE_NAME_BYTES * 2];
    node_t node;
    bool found = false;
    if (node_from_inode(ino, &node)) {
        const model_t *model = watch_begin(watch_of(req));
        found = tree_link(model, node, target);
        watch_end(watch_of(req));
    }
    if (found) {
        fuse_reply_readlink(req, target);
    } else {
        fuse_reply_err(req, ENOENT);
    }
}

static void ll_statfs(fuse_req_t req, fuse_ino_t ino)
{
    const struct statvfs status = {
        .f_bsize = 4096, .f_frsize = 4096, .f_namemax = NAME_BYTES_MAX};
    (void)ino;
    fuse_reply_statfs(req, &status);
}

/* --- files ---------------------------------------------------------------------------- */

static opened_list_t *list_of(fuse_req_t req)
{
    session_t *session = fuse_req_userdata(req);
    return &session->opened;
}

static file_t *file_of(const struct fuse_file_info *fi)
{
    return (file_t *)(uintptr_t)fi->fh;
}

static void ll_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    node_t node;
    file_t *file;
    opened_list_t *list = list_of(req);
    int error = node_from_inode(ino, &node) ? file_open(
                                                  list, watch_of(req), node, fi->flags,
                                                  fuse_req_ctx(req)->uid, &file)
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
    bool answered = text.failed || text.length != 0 || size == 0;
    if (text.failed) {
        fuse_reply_err(req, ENOMEM);
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

/* The reader got a signal. Whoever takes the request out of the waiters answers it. */
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

static void ll_poll(
    fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi,
    struct fuse_pollhandle *handle)
{
    session_t *session = fuse_req_userdata(req);
    stream_t *stream = file_stream_of(file_of(fi));
    unsigned events = POLLIN | POLLRDNORM | (stream == NULL ? POLLOUT | POLLWRNORM : 0);
    (void)ino;
    if (stream != NULL && fetch(session, stream) == STREAM_WAIT) {
        events = 0;
    }
    if (handle != NULL) {
        const waiter_t waiter = {.request = handle, .stream = stream, .is_poll = true};
        void *unused = NULL;
        if (events != 0 || !waiters_add_poll(&session->waiters, &waiter, &unused)) {
            unused = handle;
        }
        if (unused != NULL) {
            fuse_pollhandle_destroy(unused);
        }
    }
    fuse_reply_poll(req, events);
}

/* Polls of a file that is closed; `with` NULL: everything, because the session ends. */
static void drop_waiters(session_t *session, const stream_t *with)
{
    waiter_t *waiter = waiters_take_all(&session->waiters, with);
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

/* watch_tick() has collected the journal a moment ago: once for all who wait. */
static bool is_ready(const waiter_t *waiter, void *arg)
{
    return stream_fetch_collected(waiter->stream, arg) != STREAM_WAIT;
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

int session_news_fd(const session_t *session)
{
    return session->waiters.news_fd;
}

bool session_wake(session_t *session)
{
    uint64_t count;
    (void)!read(session->waiters.news_fd, &count, sizeof(count));
    if (!waiters_any(&session->waiters)) {
        return false;
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
    return waiters_any(&session->waiters);
}

/* --- reading and writing -------------------------------------------------------------- */

static void ll_read(
    fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
    struct fuse_file_info *fi)
{
    opened_list_t *list = list_of(req);
    file_t *file = file_of(fi);
    const char *bytes;
    size_t length;
    (void)ino;
    atomic_fetch_add_explicit(
        &watch_model(watch_of(req))->reads_total, 1, memory_order_relaxed);
    if (file_stream_of(file) != NULL) {
        read_stream(req, file_stream_of(file), size, (fi->flags & O_NONBLOCK) == 0);
        return;
    }
    int error = file_read(file, watch_of(req), size, offset, &bytes, &length);
    if (error != 0) {
        fuse_reply_err(req, error == -ENOENT ? ENODEV : -error);
        return;
    }
    fuse_reply_buf(req, bytes, length);
    file_read_end(list, file); /* req is gone: not list_of(req) here */
}

/* Each write is a command of its own, wherever the descriptor stands: `>` and `>>` mean
 * the same. */
static void ll_write(
    fuse_req_t req, fuse_ino_t ino, const char *bytes, size_t size, off_t offset,
    struct fuse_file_info *fi)
{
    (void)ino;
    (void)offset;
    node_t node = file_node_of(file_of(fi));
    model_t *model = watch_begin_change(watch_of(req));
    int error = control_write(model, node, fuse_req_ctx(req)->uid, bytes, size);
    watch_end(watch_of(req));
    if (error != 0) {
        fuse_reply_err(req, -error);
    } else {
        fuse_reply_write(req, size);
    }
}

static void ll_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    (void)ino;
    if (file_stream_of(file_of(fi)) != NULL) {
        drop_waiters(fuse_req_userdata(req), file_stream_of(file_of(fi)));
    }
    file_close(list_of(req), file_of(fi));
    fuse_reply_err(req, 0);
}

/* --- directories ---------------------------------------------------------------------- */

static void ll_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    node_t node;
    listing_t *listing;
    opened_list_t *list = list_of(req);
    int error = node_from_inode(ino, &node)
                    ? listing_open(list, watch_of(req), node, &listing)
                    : -ENOENT;
    if (error != 0) {
        fuse_reply_err(req, -error);
        return;
    }
    fi->fh = (uintptr_t)listing;
    if (fuse_reply_open(req, fi) == -ENOENT) {
        listing_close(list, listing);
    }
}

static listing_t *listing_of(const struct fuse_file_info *fi)
{
    return (listing_t *)(uintptr_t)fi->fh;
}

/* A part of a listing, as it is written into the reply. */
typedef struct reply {
    char *bytes;
    size_t used, size;
    bool plus; /* with attributes, which saves the lookups of `ls -l` */
} reply_t;

/* False: it does not fit. One that is gone meanwhile is left out. */
static bool add_entry(
    fuse_req_t req, const model_t *model, reply_t *reply, const char *name, node_t node,
    off_t next)
{
    struct fuse_entry_param entry;
    if (!fill_entry(model, node, fuse_req_ctx(req)->uid, &entry)) {
        return true;
    }
    char *to = reply->bytes + reply->used;
    size_t room = reply->size - reply->used;
    size_t bytes = reply->plus
                       ? fuse_add_direntry_plus(req, to, room, name, &entry, next)
                       : fuse_add_direntry(req, to, room, name, &entry.attr, next);
    if (bytes > room) {
        return false;
    }
    reply->used += bytes;
    return true;
}

static void read_entries(
    fuse_req_t req, size_t size, off_t offset, const listing_t *listing, bool plus)
{
    reply_t reply = {.bytes = malloc(size), .size = size, .plus = plus};
    size_t position = (size_t)offset;
    const char *name;
    node_t node;
    if (reply.bytes == NULL) {
        fuse_reply_err(req, ENOMEM);
        return;
    }
    const model_t *model = watch_begin(watch_of(req));
    while ((name = listing_at(listing, position, &node)) != NULL &&
           add_entry(req, model, &reply, name, node, (off_t)position + 1)) {
        position++;
    }
    watch_end(watch_of(req));
    fuse_reply_buf(req, reply.bytes, reply.used);
    free(reply.bytes);
}

static void ll_readdir(
    fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
    struct fuse_file_info *fi)
{
    (void)ino;
    read_entries(req, size, offset, listing_of(fi), false);
}

static void ll_readdirplus(
    fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
    struct fuse_file_info *fi)
{
    (void)ino;
    read_entries(req, size, offset, listing_of(fi), true);
}

static void ll_releasedir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    (void)ino;
    listing_close(list_of(req), listing_of(fi));
    fuse_reply_err(req, 0);
}

/* --- what the tree does not do -------------------------------------------------------- */

/* Without these the kernel would hear ENOSYS, as if rmmfs were not finished. */

static void
ll_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t rdev)
{
    (void)parent, (void)name, (void)mode, (void)rdev;
    fuse_reply_err(req, EPERM);
}

static void ll_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
    (void)parent, (void)name, (void)mode;
    fuse_reply_err(req, EPERM);
}

static void ll_create(
    fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
    struct fuse_file_info *fi)
{
    (void)parent, (void)name, (void)mode, (void)fi;
    fuse_reply_err(req, EPERM);
}

/* unlink and rmdir */
static void ll_remove(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    (void)parent, (void)name;
    fuse_reply_err(req, EPERM);
}

static void
ll_symlink(fuse_req_t req, const char *link, fuse_ino_t parent, const char *name)
{
    (void)link, (void)parent, (void)name;
    fuse_reply_err(req, EPERM);
}

static void ll_rename(
    fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t new_parent,
    const char *new_name, unsigned flags)
{
    (void)parent, (void)name, (void)new_parent, (void)new_name, (void)flags;
    fuse_reply_err(req, EPERM);
}

static void
ll_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t new_parent, const char *new_name)
{
    (void)ino, (void)new_parent, (void)new_name;
    fuse_reply_err(req, EPERM);
}

static const struct fuse_lowlevel_ops operations = {
    .lookup = ll_lookup,
    .getattr = ll_getattr,
    .setattr = ll_setattr,
    .readlink = ll_readlink,
    .statfs = ll_statfs,
    .open = ll_open,
    .poll = ll_poll,
    .read = ll_read,
    .write = ll_write,
    .release = ll_release,
    .opendir = ll_opendir,
    .readdir = ll_readdir,
    .readdirplus = ll_readdirplus,
    .releasedir = ll_releasedir,
    .mknod = ll_mknod,
    .mkdir = ll_mkdir,
    .create = ll_create,
    .unlink = ll_remove,
    .rmdir = ll_remove,
    .symlink = ll_symlink,
    .rename = ll_rename,
    .link = ll_link,
};

/* --- the session ---------------------------------------------------------------------- */

static void session_free(session_t *session)
{
    if (session != NULL) {
        opened_list_fini(&session->opened);
        waiters_fini(&session->waiters);
        free(session);
    }
}

session_t *
session_open(const session_config_t *config, char *reason, size_t reason_bytes)
{
    char program[] = "rmmfs", option[] = "-o", debug[] = "-d", list[512];
    (void)snprintf(
        list, sizeof(list),
        "fsname=rmmfs,subtype=rmmfs,nosuid,nodev,noexec,default_permissions%s%s",
        config->allow_other ? ",allow_other" : "", config->mount_options);
    char *argv[] = {program, option, list, config->debug ? debug : NULL, NULL};
    struct fuse_args args = FUSE_ARGS_INIT(config->debug ? 4 : 3, argv);
    session_t *session = calloc(1, sizeof(*session));
    if (session != NULL) {
        opened_list_init(&session->opened);
        (void)waiters_init(&session->waiters); /* without: news come with the tick */
        session->fuse =
            fuse_session_new(&args, &operations, sizeof(operations), session);
    }
    fuse_opt_free_args(&args);
    if (session == NULL || session->fuse == NULL) {
        (void)snprintf(reason, reason_bytes, "libfuse refuses the options %s", list);
        session_free(session);
        return NULL;
    }
    return session;
}

/* What libfuse and fusermount3 print goes here instead: the last line says why. */
static int divert_stderr(int *saved_out)
{
    int capture = memfd_create("rmmfs-stderr", MFD_CLOEXEC);
    *saved_out = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
    if (capture >= 0 && *saved_out >= 0) {
        (void)dup2(capture, STDERR_FILENO);
    }
    return capture;
}

static void restore_stderr(int capture, int saved, char *line, size_t bytes)
{
    if (saved >= 0) {
        (void)dup2(saved, STDERR_FILENO);
        (void)close(saved);
    }
    ssize_t got = capture >= 0 ? pread(capture, line, bytes - 1, 0) : 0;
    line[got > 0 ? (size_t)got : 0] = '\0';
    line[strcspn(line, "\n")] = '\0';
    if (capture >= 0) {
        (void)close(capture);
    }
}

bool session_mount(
    session_t *session, const char *path, char *reason, size_t reason_bytes)
{
    char line[256];
    int saved;
    int capture = divert_stderr(&saved);
    session->mounted = fuse_session_mount(session->fuse, path) == 0;
    restore_stderr(capture, saved, line, sizeof(line));
    if (!session->mounted) {
        const char *advice = strstr(line, "not permitted") != NULL
                                 ? ": a container needs CAP_SYS_ADMIN for it"
                                 : "";
        (void)snprintf(
            reason, reason_bytes, "cannot mount on %s: %s%s", path,
            line[0] != '\0' ? line : "mount failed", advice);
    }
    return session->mounted;
}

bool session_daemonize(void)
{
    return fuse_daemonize(0) == 0;
}

void session_serve(session_t *session, watch_t *watch)
{
    session->watch = watch;
}

bool session_loop(session_t *session)
{
    struct fuse_loop_config *config = fuse_loop_cfg_create();
    if (config == NULL) {
        return false;
    }
    fuse_loop_cfg_set_clone_fd(config, 0);
    fuse_loop_cfg_set_max_threads(config, THREADS_MAX);
    int result = fuse_session_loop_mt(session->fuse, config);
    fuse_loop_cfg_destroy(config);
    return result == 0;
}

void session_exit(session_t *session)
{
    fuse_session_exit(session->fuse);
}

void session_forget(session_t *session, const char *name)
{
    const node_t dir = {DIR_PROCESSES, FILE_SELF, 0, 0};
    /* ENOENT: the kernel did not know the name. */
    (void)fuse_lowlevel_notify_inval_entry(
        session->fuse, node_to_inode(dir), name, strlen(name));
}

void session_close(session_t *session)
{
    if (session == NULL) {
        return;
    }
    drop_waiters(session, NULL);
    if (session->mounted) {
        fuse_session_unmount(session->fuse);
    }
    fuse_session_destroy(session->fuse);
    session_free(session);
}
