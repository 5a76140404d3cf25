/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests of the kernel, translated: inode numbers to nodes, errors to errno, texts to
 * replies. Here those about names and attributes, and the session itself; ll_session.h
 * tells where the others are. Only these files know FUSE.
 *
 * Inode numbers carry everything (tree.h), so lookups are not counted and forget has
 * nothing to do. Files have direct_io: a read gets the text of its own open, whatever their
 * size says, and nothing goes through the page cache (ll_read).
 *
 * Entries may be cached for a second; names that are not there never are, so that a new
 * process is found at once, and a process that left is taken back.
 *
 * Locking: each look at the model is between watch_begin and watch_end, and replies are
 * sent after it. Once a reply is sent the request is gone, and what it was about may be
 * closed by another thread.
 */
#include "session/ll_session.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "model/tree.h"
#include "session/attributes.h"
#include "session/listing.h"
#include "support/daemon_log.h"
#include "support/group_members.h"

#define CACHE_SECONDS 1.0
#define THREADS_MAX 10
#define NAME_BYTES_MAX 255

/* --- attributes ----------------------------------------------------------------------- */

/* The user is in the group that sees everything. */
static bool is_member(fuse_req_t req)
{
    const hiding_t *hiding = &watch_model(watch_of(req))->hiding;
    const struct fuse_ctx *context = fuse_req_ctx(req);
    return hiding->level != HIDING_OFF && hiding->has_group && context->uid != 0 &&
           (context->gid == hiding->group || groups_have(context->pid, hiding->group));
}

reader_t reader_of(fuse_req_t req)
{
    const struct fuse_ctx *context = fuse_req_ctx(req);
    return (reader_t){context->uid, context->pid, is_member(req)};
}

/* All but the attributes. */
static void
begin_entry(const model_t *model, node_t node, struct fuse_entry_param *entry)
{
    memset(entry, 0, sizeof(*entry));
    entry->ino = node_to_inode(node);
    entry->attr_timeout = attributes_seconds(node);
    entry->entry_timeout = attributes_entry_seconds(model, node);
}

static bool
fill_entry(const model_t *model, node_t node, struct fuse_entry_param *entry)
{
    begin_entry(model, node, entry);
    return attributes_fill(model, node, &entry->attr);
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
        const reader_t reader = reader_of(req);
        const model_t *model = watch_begin(watch_of(req));
        found = tree_lookup(model, dir, reader.uid, name, &node) &&
                tree_shows(model, node, reader.uid, reader.is_member) &&
                fill_entry(model, node, &entry);
        watch_end(watch_of(req));
    }
    if (found) {
        fuse_reply_entry(req, &entry);
    } else {
        fuse_reply_err(req, ENOENT);
    }
}

/* False: gone. */
static bool find_attributes(
    fuse_req_t req, fuse_ino_t ino, node_t *node_out, struct stat *attributes)
{
    return node_from_inode(ino, node_out) &&
           attributes_of(
               watch_of(req), list_of(req), *node_out, reader_of(req), attributes);
}

/* Only lseek with SEEK_END comes with a descriptor. For a text it fails with EINVAL, as for most
 * of /proc: the kernel seeks by the size in the inode, which all readers share. If another reader
 * had a shorter text, tail would begin in the middle of its own text and end before its end. */
void answer_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct stat attributes;
    node_t node;
    if (!find_attributes(req, ino, &node, &attributes)) {
        fuse_reply_err(req, ENOENT);
    } else if (fi != NULL && tree_is_text(node)) {
        fuse_reply_err(req, EINVAL);
    } else {
        fuse_reply_attr(req, &attributes, attributes_seconds(node));
    }
}

/* truncate(1) before a write is well meant and changes nothing; owner and mode are those
 * of the process. */
void answer_setattr(fuse_req_t req, fuse_ino_t ino, int to_set)
{
    struct stat attributes;
    node_t node;
    if (!find_attributes(req, ino, &node, &attributes)) {
        fuse_reply_err(req, ENOENT);
    } else if (
        (to_set & (FUSE_SET_ATTR_MODE | FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID)) != 0) {
        fuse_reply_err(req, EPERM);
    } else if (
        (to_set & FUSE_SET_ATTR_SIZE) != 0 && (attributes.st_mode & S_IWUSR) == 0) {
        fuse_reply_err(req, EACCES);
    } else {
        fuse_reply_attr(req, &attributes, attributes_seconds(node));
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

/* --- directories ---------------------------------------------------------------------- */

void answer_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    node_t node;
    listing_t *listing;
    opened_list_t *list = list_of(req);
    int error = node_from_inode(ino, &node)
                    ? listing_open(list, watch_of(req), node, reader_of(req), &listing)
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
    bool plus;  /* with attributes, which saves the lookups of `ls -l` */
    node_t dir; /* is there: checked once for all its files */
} reply_t;

/* A name of the directory `dir`, which is there. False: gone meanwhile. */
static bool fill_listed(
    const model_t *model, node_t dir, node_t node, struct fuse_entry_param *entry)
{
    if (!tree_is_in(node, dir)) {
        return fill_entry(model, node, entry);
    }
    begin_entry(model, node, entry);
    attributes_fill_listed(model, node, &entry->attr);
    return true;
}

/* False: it does not fit. One that is gone meanwhile is left out. */
static bool add_entry(
    fuse_req_t req, const model_t *model, reply_t *reply, const char *name, node_t node,
    off_t next)
{
    struct fuse_entry_param entry;
    if (!fill_listed(model, reply->dir, node, &entry)) {
        return true;
    }
    if (node_is_of_reader(node)) {
        entry.ino = 0; /* each reader looks it up, and gets an inode of its own */
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

/* A directory that is gone has no further entries. */
static void add_entries(
    fuse_req_t req, const model_t *model, const listing_t *listing, reply_t *reply,
    size_t position)
{
    const char *name;
    node_t node;
    node_info_t info;
    (void)listing_at(listing, 0, &reply->dir);
    if (!tree_info(model, reply->dir, &info)) {
        return;
    }
    while ((name = listing_at(listing, position, &node)) != NULL &&
           add_entry(req, model, reply, name, node, (off_t)position + 1)) {
        position++;
    }
}

static void read_entries(
    fuse_req_t req, size_t size, off_t offset, const listing_t *listing, bool plus)
{
    reply_t reply = {.bytes = malloc(size), .size = size, .plus = plus};
    if (reply.bytes == NULL) {
        fuse_reply_err(req, ENOMEM);
        return;
    }
    const model_t *model = watch_begin(watch_of(req));
    add_entries(req, model, listing, &reply, (size_t)offset);
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

/* --- what the kernel is offered --------------------------------------------------------- */

/* A read of io_submit(2) or io_uring would be one of the few (12) background requests that the
 * kernel has under way at a time, and closes are such requests, too: a user with 12 reads that
 * wait for a pipe would keep every file of all users open. Without this they are reads like
 * others. */
static void ll_init(void *session, struct fuse_conn_info *connection)
{
    (void)session;
    connection->want &= ~(unsigned)FUSE_CAP_ASYNC_DIO;
    /* The kernel takes it for reads as well, and splits longer ones. */
    connection->max_write = OPENED_READ_BYTES_MAX;
}

static const struct fuse_lowlevel_ops operations = {
    .init = ll_init,
    .lookup = ll_lookup,
    .getattr = ll_getattr,
    .setattr = ll_setattr,
    .readlink = ll_readlink,
    .statfs = ll_statfs,
    .open = ll_open_reporting,
    .poll = ll_poll,
    .read = ll_read,
    .lseek = ll_lseek,
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
        waiting_writes_fini(&session->writes);
        reports_fini(&session->reports);
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
        waiting_writes_init(&session->writes);
        reports_init(&session->reports);
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

/* Keeps what libfuse and fusermount3 print: the last line says why a mount failed. */
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
    bool good = user_queue_start(&session->queue);
    if (good) {
        good = fuse_session_loop_mt(session->fuse, config) == 0;
        end_reports(session);
        user_queue_stop(&session->queue);
    } else {
        log_error("cannot start threads");
    }
    fuse_loop_cfg_destroy(config);
    return good;
}

void session_exit(session_t *session)
{
    fuse_session_exit(session->fuse);
}

void session_forget(session_t *session, uint32_t serial)
{
    const node_t dir = {DIR_PROCESS, FILE_SELF, serial, 0};
    /* ENOENT: the kernel did not know it. Not the name in proc/ (notify_inval_entry): for that the
     * kernel locks proc/, which a user may keep locked for ever, by a listing into memory that is
     * mapped from a file system that never answers. Without attributes the kernel requests them
     * at the next use of the name, and learns that it is gone. */
    (void)fuse_lowlevel_notify_inval_inode(session->fuse, node_to_inode(dir), -1, 0);
}

bool session_is_connected(const session_t *session)
{
    if (session == NULL || !session->mounted) {
        return false;
    }
    struct pollfd device = {.fd = fuse_session_fd(session->fuse)};
    return poll(&device, 1, 0) == 0;
}

void session_leave_mounted(session_t *session)
{
    session->mounted = false;
}

void session_close(session_t *session)
{
    if (session == NULL) {
        return;
    }
    files_end(session);
    if (session->mounted) {
        fuse_session_unmount(session->fuse);
    }
    fuse_session_destroy(session->fuse);
    session_free(session);
}
