/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rmmfs: shows the segments of all processes as the file tree /rmm. See docs/filesystem.md
 * for the tree and rmmfs(8) for the program.
 */
#include <stdio.h>
#include <stdlib.h>

#include "daemon.h"
#include "options.h"

int main(int argc, char **argv)
{
    options_t options;
    if (!options_parse(&options, argc, argv)) {
        return EXIT_FAILURE;
    }
    if (options.help) {
        options_print_help();
        return EXIT_SUCCESS;
    }
    if (options.version) {
        (void)printf("rmmfs %s\n", RMMFS_VERSION);
        return EXIT_SUCCESS;
    }
    return daemon_run(&options);
}
