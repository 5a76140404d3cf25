/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ends with a pool and a block of it, which nobody frees (exit), or which a handler frees that
 * is called after the tool's (late), as the static objects of a C++ program are.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rmm/rmm.h>

static rmm_resource_t *pool;
static void *block;

static void release_late(void)
{
    void *another = NULL;

    rmm_resource_dealloc(pool, block, 1000, 0, NULL);
    if (rmm_resource_alloc(pool, 2000, 0, NULL, &another) == RMM_OK) {
        rmm_resource_dealloc(pool, another, 2000, 0, NULL);
    }
    rmm_resource_release(pool);
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "late") == 0 && atexit(release_late) != 0) {
        return 2;
    }
    if (rmm_resource_create_from_spec("pool:8MiB", &pool) != RMM_OK ||
        rmm_resource_alloc(pool, 1000, 0, NULL, &block) != RMM_OK) {
        fprintf(stderr, "%s\n", rmm_last_error_message());
        return 2;
    }
    return 0;
}
