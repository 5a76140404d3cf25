/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A FUSE file system that never answers, mounted over a folder or a file: whoever touches it
 * waits until this program ends.
 *
 *   rmmfs_hang PATH      prints "ok" when it is mounted
 */
#define FUSE_USE_VERSION 312

#include <fuse_lowlevel.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    static const struct fuse_lowlevel_ops operations;
    char program[] = "hang", option[] = "-o", list[] = "allow_other";
    char *arguments[] = {program, option, list, NULL};
    struct fuse_args args = FUSE_ARGS_INIT(3, arguments);
    struct fuse_session *session =
        fuse_session_new(&args, &operations, sizeof(operations), NULL);
    if (argc != 2 || session == NULL || fuse_session_mount(session, argv[1]) != 0) {
        return 1;
    }
    (void)printf("ok\n");
    (void)fflush(stdout);
    for (;;) {
        (void)pause();
    }
}
