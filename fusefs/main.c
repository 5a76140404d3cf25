/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rmmfs: shows the segments of all processes as the file tree /rmm. See docs/filesystem.md
 * for the tree and rmmfs(8) for the program.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon.h"
#include "options.h"

#define EXIT_USAGE 2 /* as of the programs rmm-... */

/* A page that a full disk cut must not pass for a whole one. */
static int end_of_output(void)
{
    if (fflush(stdout) != 0) {
        (void)fprintf(
            stderr, "rmmfs: cannot write to standard output: %s\n", strerror(errno));
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    options_t options;
    if (!options_parse(&options, argc, argv)) {
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
    return daemon_run(&options);
}
