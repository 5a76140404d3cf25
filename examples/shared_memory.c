/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two processes share a block of a pool. The importer is made first: a process that used the
 * driver cannot fork one that does.
 */
#include <rmm/rmm.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BYTES = 5000000 };

static void check(rmm_status_t status)
{
    if (status != RMM_OK) {
        fprintf(stderr, "%s\n", rmm_last_error_message());
        exit(1);
    }
}

static void importer(int peer)
{
    rmm_pool_exported_t exported = RMM_POOL_EXPORTED_INIT;
    rmm_pool_imported_t *block;
    unsigned char last;

    check(rmm_pool_export_receive(peer, &exported));
    check(rmm_pool_import(&exported, &block));
    rmm_pool_export_release(&exported);
    check(rmm_memcpy(
        &last, (char *)block->ptr + block->bytes - 1, 1, RMM_STREAM_DEFAULT));
    printf("importer: %d bytes, the last is %d\n", (int)block->bytes, last);
    fflush(stdout);
    check(rmm_memset_async(block->ptr, 43, BYTES, RMM_STREAM_DEFAULT));
    check(rmm_stream_synchronize(RMM_STREAM_DEFAULT));
    rmm_pool_import_release(block);
}

static void exporter(int peer)
{
    rmm_pool_exported_t exported = RMM_POOL_EXPORTED_INIT;
    rmm_pool_options_t options = RMM_POOL_OPTIONS_INIT;
    rmm_resource_t *pool;
    unsigned char first;
    void *block;

    options.flags = RMM_POOL_VIRTUAL | RMM_POOL_EXPORTABLE;
    check(rmm_pool_resource_create(NULL, &options, &pool));
    check(rmm_resource_alloc(pool, BYTES, 0, RMM_STREAM_DEFAULT, &block));
    check(rmm_memset_async(block, 42, BYTES, RMM_STREAM_DEFAULT));
    check(rmm_stream_synchronize(RMM_STREAM_DEFAULT)); /* before the other looks */
    check(rmm_pool_export(pool, block, BYTES, 0, &exported));
    check(rmm_pool_export_send(&exported, peer));
    rmm_pool_export_release(&exported);
    wait(NULL); /* the importer is done */
    check(rmm_memcpy(&first, block, 1, RMM_STREAM_DEFAULT));
    printf("exporter: the first byte is %d now\n", first);
    rmm_resource_dealloc(pool, block, BYTES, 0, RMM_STREAM_DEFAULT);
    rmm_resource_release(pool);
}

int main(void)
{
    int pair[2];
    pid_t child;

    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0 || (child = fork()) < 0) {
        perror("shared_memory");
        return 1;
    }
    close(child == 0 ? pair[0] : pair[1]);
    if (child == 0) {
        importer(pair[1]);
    } else {
        exporter(pair[0]);
    }
    return 0;
}
