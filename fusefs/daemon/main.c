/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rmmfs: shows the segments of all processes as the file tree /rmm. See rmm(5) and
 * docs/filesystem.md for the tree, rmmfs(8) for the program.
 */
#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/check.h"
#include "daemon/daemon.h"
#include "daemon/mountpoint.h"
#include "daemon/options.h"
#include "support/daemon_log.h"

#define EXIT_USAGE 2 /* as of the programs rmm-... */

/* A page that a full disk cut must not pass for a whole one. */
static int end_of_output(void)
{
    if (fflush(stdout) != 0) {
        log_reason("cannot write to standard output: %s", strerror(errno));
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}

/* Texts are large, and are freed by another thread than the next one is made by: each is
 * mapped by itself, so that its memory goes back to the system. */
static void return_freed_memory(void)
{
    (void)mallopt(M_MMAP_THRESHOLD, 128 << 10);
}

static int clear(const options_t *options)
{
    char reason[512];
    if (!mountpoint_clear(options->mountpoint, reason, sizeof(reason))) {
        log_reason("%s", reason);
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    options_t options;
    (void)argc;
    return_freed_memory();
    (void)signal(
        SIGCHLD, SIG_DFL); /* ignored, the ends of children could not be waited for */
    if (!options_parse(&options, argv)) {
        return EXIT_USAGE;
    }
    if (options.help) {
        options_print_help();
        return end_of_output();
    }
    if (options.version) {
        (void)printf("rmmfs %s\n", RMMFS_VERSION);
        return end_of_output();
    }
    if (options.check || options.ping) {
        int status = options.check ? check_run(&options) : check_ping(&options);
        return end_of_output() == EXIT_SUCCESS ? status : EXIT_FAILURE;
    }
    return options.clear ? clear(&options) : daemon_run(&options);
}
