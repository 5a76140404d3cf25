/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The least that libfuse can do, served as rmmfs serves its files (low-level API, several
 * threads, direct_io, noflush, a second of caching, readdirplus). What rmmfs costs above this
 * is its own.
 *
 *   bench_bare MOUNTPOINT [DIRECTORIES FILES BYTES]
 *
 * /value is a short text that never changes, /text has BYTES, and /tree has DIRECTORIES with
 * FILES each.
 */
#define FUSE_USE_VERSION 312

#include <errno.h>
#include <fuse_lowlevel.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Inode numbers. Those of the directories below /tree are multiples of 2^FILE_BITS, and their
 * files are the numbers behind. */
enum { ROOT = FUSE_ROOT_ID, VALUE, TEXT, TREE };
#define FILE_BITS 16u
#define FILE_MASK ((1u << FILE_BITS) - 1)

static const char value[] = "1234567890\n";
static char *text;
static size_t text_bytes;
static uint32_t directories, files;

static bool is_directory(fuse_ino_t ino)
{
    return ino == ROOT || ino == TREE || (ino > TREE && (ino & FILE_MASK) == 0);
}

static void fill(fuse_ino_t ino, struct stat *attributes)
{
    memset(attributes, 0, sizeof(*attributes));
    attributes->st_ino = ino;
    attributes->st_mode = is_directory(ino) ? S_IFDIR | 0555 : S_IFREG | 0444;
    attributes->st_nlink = is_directory(ino) ? 2 : 1;
    attributes->st_size = is_directory(ino) ? 0
                          : ino == TEXT     ? (off_t)text_bytes
                                            : 4096;
}

static void fill_entry(fuse_ino_t ino, struct fuse_entry_param *entry)
{
    *entry = (struct fuse_entry_param){
        .ino = ino, .attr_timeout = 1.0, .entry_timeout = 1.0};
    fill(ino, &entry->attr);
}

/* The Nth name in a directory, from 0. False: it has not so many. */
static bool entry_at(fuse_ino_t dir, size_t n, char name[16], fuse_ino_t *ino_out)
{
    static const char *const names[] = {"value", "text", "tree"};
    if (dir == ROOT && n < 3) {
        (void)snprintf(name, 16, "%s", names[n]);
        *ino_out = VALUE + n;
        return true;
    }
    if (dir == TREE && n < directories) {
        *ino_out = (fuse_ino_t)(n + 1) << FILE_BITS;
    } else if (dir > TREE && n < files) {
        *ino_out = dir + n + 1;
    } else {
        return false;
    }
    (void)snprintf(name, 16, "%zu", n);
    return true;
}

static void do_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    struct fuse_entry_param entry;
    char candidate[16];
    fuse_ino_t ino;
    size_t n = parent == ROOT ? 0 : strtoull(name, NULL, 10);
    while (entry_at(parent, n, candidate, &ino)) {
        if (strcmp(candidate, name) == 0) {
            fill_entry(ino, &entry);
            fuse_reply_entry(req, &entry);
            return;
        }
        n++;
    }
    fuse_reply_err(req, ENOENT);
}

static void do_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct stat attributes;
    (void)fi;
    fill(ino, &attributes);
    fuse_reply_attr(req, &attributes, 1.0);
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
    size_t length = ino == TEXT ? text_bytes : sizeof(value) - 1;
    size_t at = offset < (off_t)length ? (size_t)offset : length;
    (void)fi;
    fuse_reply_buf(
        req, (ino == TEXT ? text : value) + at,
        length - at < size ? length - at : size);
}

static void do_readdirplus(
    fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
    struct fuse_file_info *fi)
{
    char name[16], *bytes = malloc(size);
    struct fuse_entry_param entry;
    fuse_ino_t child;
    size_t used = 0;
    (void)fi;
    for (size_t n = (size_t)offset; bytes != NULL && entry_at(ino, n, name, &child);
         n++) {
        fill_entry(child, &entry);
        size_t length = fuse_add_direntry_plus(
            req, bytes + used, size - used, name, &entry, (off_t)n + 1);
        if (length > size - used) {
            break;
        }
        used += length;
    }
    fuse_reply_buf(req, bytes, used);
    free(bytes);
}

static const struct fuse_lowlevel_ops operations = {
    .lookup = do_lookup,
    .getattr = do_getattr,
    .open = do_open,
    .opendir = do_open,
    .read = do_read,
    .readdirplus = do_readdirplus,
};

static bool read_sizes(int argc, char **argv)
{
    if (argc == 5) {
        directories = (uint32_t)strtoul(argv[2], NULL, 10);
        files = (uint32_t)strtoul(argv[3], NULL, 10);
        text_bytes = strtoull(argv[4], NULL, 10);
    }
    text = calloc(1, text_bytes + 1);
    return (argc == 2 || argc == 5) && files < FILE_MASK && text != NULL;
}

int main(int argc, char **argv)
{
    struct fuse_args args = FUSE_ARGS_INIT(1, argv);
    struct fuse_session *session;
    int status = EXIT_FAILURE;
    if (!read_sizes(argc, argv)) {
        (void)fprintf(
            stderr, "usage: bench_bare MOUNTPOINT [DIRECTORIES FILES BYTES]\n");
        return status;
    }
    memset(text, '7', text_bytes);
    session = fuse_session_new(&args, &operations, sizeof(operations), NULL);
    fuse_opt_free_args(&args); /* libfuse has copied the argument */
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
    free(text);
    return status;
}
