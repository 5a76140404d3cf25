/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The least that libfuse can do: one file, /value, whose text never changes, served as
 * rmmfs serves its files (low-level API, several threads, direct_io, noflush, a second of
 * caching). What rmmfs costs above this is its own.
 *
 *   bench_bare MOUNTPOINT
 */
#define FUSE_USE_VERSION 312

#include <errno.h>
#include <fuse_lowlevel.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VALUE_INODE 2

static const char text[] = "1234567890\n";

static int fill(fuse_ino_t ino, struct stat *attributes)
{
    memset(attributes, 0, sizeof(*attributes));
    attributes->st_ino = ino;
    attributes->st_mode = ino == FUSE_ROOT_ID ? S_IFDIR | 0555 : S_IFREG | 0444;
    attributes->st_nlink = ino == FUSE_ROOT_ID ? 2 : 1;
    return ino == FUSE_ROOT_ID || ino == VALUE_INODE ? 0 : ENOENT;
}

static void do_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    struct fuse_entry_param entry = {
        .ino = VALUE_INODE, .attr_timeout = 1.0, .entry_timeout = 1.0};
    if (parent != FUSE_ROOT_ID || strcmp(name, "value") != 0) {
        fuse_reply_err(req, ENOENT);
        return;
    }
    (void)fill(VALUE_INODE, &entry.attr);
    fuse_reply_entry(req, &entry);
}

static void do_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct stat attributes;
    (void)fi;
    if (fill(ino, &attributes) != 0) {
        fuse_reply_err(req, ENOENT);
    } else {
        fuse_reply_attr(req, &attributes, 1.0);
    }
}

static void do_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    (void)ino;
    fi->direct_io = 1;
    fi->noflush = 1;
    fuse_reply_open(req, fi);
}

static void do_read(
    fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
    struct fuse_file_info *fi)
{
    size_t length = sizeof(text) - 1;
    size_t at = offset < (off_t)length ? (size_t)offset : length;
    (void)ino;
    (void)fi;
    fuse_reply_buf(req, text + at, length - at < size ? length - at : size);
}

static const struct fuse_lowlevel_ops operations = {
    .lookup = do_lookup,
    .getattr = do_getattr,
    .open = do_open,
    .read = do_read,
};

int main(int argc, char **argv)
{
    struct fuse_args args = FUSE_ARGS_INIT(1, argv);
    struct fuse_session *session;
    int status = EXIT_FAILURE;
    if (argc != 2) {
        (void)fprintf(stderr, "usage: bench_bare MOUNTPOINT\n");
        return status;
    }
    session = fuse_session_new(&args, &operations, sizeof(operations), NULL);
    if (session == NULL || fuse_set_signal_handlers(session) != 0 ||
        fuse_session_mount(session, argv[1]) != 0) {
        (void)fprintf(stderr, "bench_bare: cannot mount on %s\n", argv[1]);
        return status;
    }
    struct fuse_loop_config *config = fuse_loop_cfg_create();
    fuse_loop_cfg_set_max_threads(config, 10);
    status = fuse_session_loop_mt(session, config) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
    fuse_loop_cfg_destroy(config);
    fuse_session_unmount(session);
    fuse_session_destroy(session);
    return status;
}
