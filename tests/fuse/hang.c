/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A FUSE file system that never answers, mounted over a folder or a file: whoever touches it
 * waits until this program ends.
 *
 *   rmmfs_hang PATH         prints "ok" when it is mounted
 *   rmmfs_hang PATH file    over a file, which can be opened and mapped, but is never read
 *   rmmfs_hang PATH tree    over a folder, with the type of rmmfs: takes each request, whose sender
 *                           then cannot be killed
 */
#define FUSE_USE_VERSION 312

#include <fuse_lowlevel.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_BYTES 65536

static void getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    const struct stat status = {
        .st_ino = ino, .st_mode = S_IFREG | 0666, .st_nlink = 1, .st_size = FILE_BYTES};
    (void)fi;
    fuse_reply_attr(req, &status, 3600.0);
}

static void never_read(
    fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
    struct fuse_file_info *fi)
{
    (void)req, (void)ino, (void)size, (void)offset, (void)fi;
}

static void never_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    (void)req, (void)ino, (void)fi;
}

static void never_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    (void)req, (void)parent, (void)name;
}

static void never_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    (void)req, (void)ino, (void)fi;
}

static void never_statfs(fuse_req_t req, fuse_ino_t ino)
{
    (void)req, (void)ino;
}

int main(int argc, char **argv)
{
    static const struct fuse_lowlevel_ops of_file = {
        .getattr = getattr, .read = never_read};
    static const struct fuse_lowlevel_ops of_tree = {
        .getattr = never_getattr,
        .lookup = never_lookup,
        .opendir = never_opendir,
        .statfs = never_statfs};
    const bool is_tree = argc == 3 && strcmp(argv[2], "tree") == 0;
    const bool takes_requests = argc == 3;
    char program[] = "hang", option[] = "-o", list[] = "allow_other";
    char tree_list[] = "allow_other,subtype=rmmfs";
    char *arguments[] = {program, option, is_tree ? tree_list : list, NULL};
    struct fuse_args args = FUSE_ARGS_INIT(3, arguments);
    struct fuse_session *session =
        fuse_session_new(&args, is_tree ? &of_tree : &of_file, sizeof(of_file), NULL);
    fuse_opt_free_args(&args);
    if (argc < 2 || session == NULL || fuse_session_mount(session, argv[1]) != 0) {
        return 1;
    }
    (void)printf("ok\n");
    (void)fflush(stdout);
    if (takes_requests) {
        return fuse_session_loop(session) == 0 ? 0 : 1;
    }
    for (;;) {
        (void)pause();
    }
}
