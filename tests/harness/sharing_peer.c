/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The other process of a test of shared memory (sharing_peer.h). Its socket is descriptor 3. With
 * the argument "import" it imports what comes and obeys commands of one byte:
 *
 *     s    answers with the sum of the bytes
 *     w N  writes the byte N everywhere
 *     q    releases the import, and ends
 *
 * With "export SPEC BYTES" it makes a resource of the spec, fills a block with the byte 7, and
 * sends it; with "export-fabric" by a fabric handle. Then `f` frees the block, `t` trims the
 * resource, and `q` ends. Each is answered with 8 bytes; the first answer says what became of the
 * import or export: a rmm_status_t.
 */
#include "harness/sharing_peer.h"

#include <rmm/rmm.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SOCKET 3

static void answer(int64_t value)
{
    if (write(SOCKET, &value, sizeof(value)) != sizeof(value)) {
        exit(3);
    }
}

static char command(void)
{
    char byte = 'q'; /* also if the other process is gone */

    return read(SOCKET, &byte, 1) == 1 ? byte : 'q';
}

static int failed(const char *call, rmm_status_t status)
{
    fprintf(stderr, "peer: %s: %s\n", call, rmm_last_error_message());
    answer(status);
    return 2;
}

static int64_t sum_of(const rmm_pool_imported_t *import)
{
    unsigned char *bytes = malloc((size_t)import->bytes);
    int64_t sum = 0;

    if (bytes == NULL ||
        rmm_memcpy(bytes, import->ptr, (size_t)import->bytes, RMM_STREAM_LEGACY) !=
            RMM_OK) {
        free(bytes);
        return -1;
    }
    for (uint64_t i = 0; i < import->bytes; i++) {
        sum += bytes[i];
    }
    free(bytes);
    return sum;
}

static int64_t fill(const rmm_pool_imported_t *import, char byte)
{
    rmm_status_t status =
        rmm_memset_async(import->ptr, byte, (size_t)import->bytes, RMM_STREAM_LEGACY);

    return status == RMM_OK ? rmm_stream_synchronize(RMM_STREAM_LEGACY) : status;
}

static int import_memory(void)
{
    rmm_pool_exported_t exported = RMM_POOL_EXPORTED_INIT;
    rmm_pool_imported_t *import;
    rmm_status_t status = rmm_pool_export_receive(SOCKET, &exported);

    if (status != RMM_OK) {
        return failed("receive", status);
    }
    status = rmm_pool_import(&exported, &import);
    rmm_pool_export_release(&exported);
    if (status != RMM_OK) {
        return failed("import", status);
    }
    answer(RMM_OK);
    for (char byte = command(); byte != 'q'; byte = command()) {
        answer(byte == 's' ? sum_of(import) : fill(import, command()));
    }
    rmm_pool_import_release(import);
    answer(0);
    return 0;
}

/* A block of a fresh resource, sent to the other process. */
static rmm_status_t share(rmm_resource_t *mr, void *block, size_t bytes, uint64_t flags)
{
    rmm_pool_exported_t exported = RMM_POOL_EXPORTED_INIT;
    rmm_status_t status = rmm_memset_async(block, 7, bytes, RMM_STREAM_LEGACY);

    if (status == RMM_OK) {
        status = rmm_stream_synchronize(RMM_STREAM_LEGACY);
    }
    if (status == RMM_OK) {
        status = rmm_pool_export(mr, block, bytes, flags, &exported);
    }
    if (status == RMM_OK) {
        status = rmm_pool_export_send(&exported, SOCKET);
    }
    rmm_pool_export_release(&exported);
    return status;
}

static int export_memory(const char *spec, size_t bytes, uint64_t flags)
{
    rmm_resource_t *mr;
    void *block;
    rmm_status_t status = rmm_resource_create_from_spec(spec, &mr);

    if (status != RMM_OK) {
        return failed("create", status);
    }
    status =
        rmm_resource_alloc(mr, bytes, RMM_ALIGN_DEFAULT, RMM_STREAM_LEGACY, &block);
    if (status == RMM_OK) {
        status = share(mr, block, bytes, flags);
    }
    if (status != RMM_OK) {
        return failed("export", status);
    }
    for (char byte = command(); byte != 'q'; byte = command()) {
        if (byte == 'f') {
            rmm_resource_dealloc(
                mr, block, bytes, RMM_ALIGN_DEFAULT, RMM_STREAM_LEGACY);
            block = NULL;
        }
        answer(byte == 't' ? rmm_resource_trim(mr, 0) : RMM_OK);
    }
    if (block != NULL) {
        rmm_resource_dealloc(mr, block, bytes, RMM_ALIGN_DEFAULT, RMM_STREAM_LEGACY);
    }
    rmm_resource_release(mr);
    answer(0);
    return 0;
}

bool sharing_peer_runs(int argc, char **argv, int *status_out)
{
    bool imports = argc == 2 && strcmp(argv[1], "import") == 0;
    bool exports = argc == 4 && strcmp(argv[1], "export") == 0;
    bool is_fabric = argc == 4 && strcmp(argv[1], "export-fabric") == 0;

    if (imports) {
        *status_out = import_memory();
    } else if (exports || is_fabric) {
        *status_out = export_memory(
            argv[2], strtoul(argv[3], NULL, 10),
            is_fabric ? RMM_POOL_EXPORT_FABRIC : 0);
    }
    return imports || exports || is_fabric;
}
