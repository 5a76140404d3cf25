/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory pools of the simulated GPU that processes share. An exported pool has a file, in which
 * each byte lies at its address in the exporter. A segment moves there when its first block is
 * exported, and stays where it is mapped.
 *
 * An imported pool gives no memory: its blocks are mapped one by one, each in an address range of
 * its own, and a free unmaps it. The pool's own end, and that of its process, takes none away.
 *
 * Locking: all under rmm__sim_lock.
 */
#include "driver/sim/mempool.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "core/assert.h"
#include "core/round.h"

#define FILE_KIND "pool"
#define FILE_BYTES (UINT64_C(1) << 47) /* more than any address */
#define PAGE UINT64_C(4096)
#define DATA_MAGIC UINT64_C(0x4d4d522d4d495353) /* "SSIM-RMM" */

/* The simulated GPU's cudaMemPoolPtrExportData. */
typedef struct pointer_data {
    uint64_t magic, address, bytes;
} pointer_data_t;

/* A block of an imported pool. */
typedef struct imported {
    struct imported *next;
    char *ptr, *begin; /* begin: of its first page */
    uint64_t mapped_bytes;
    int device;
} imported_t;

static imported_t *imports;

/* ---- export ---- */

int rmm__sim_mempool_export(
    rmm_driver_mempool_t handle, uint32_t type, rmm_driver_handle_t *handle_out)
{
    int error = rmm__sim_enter_unsafe("mempool_export");
    sim_mempool_t *pool;

    if (error != RMM_DRIVER_OK) {
        return error;
    }
    pool = rmm__sim_mempool_find_locked(handle, "mempool_export", &error);
    if (pool != NULL && (type != RMM_DRIVER_HANDLE_POSIX || pool->is_imported ||
                         (pool->handle_types & type) == 0)) {
        rmm__sim_violation_locked(
            "mempool_export: the pool was not made for such a handle");
        error = RMM_DRIVER_INVALID_VALUE;
    }
    if (error == RMM_DRIVER_OK && pool->file.bytes == 0) {
        error = rmm__sim_file_create(FILE_KIND, pool->device, FILE_BYTES, &pool->file);
    }
    if (error == RMM_DRIVER_OK) {
        error = rmm__sim_file_give(&pool->file, type, handle_out);
    }
    rmm__sim_leave();
    return error;
}

static int move_to_file(const sim_mempool_t *pool, sim_segment_t *segment)
{
    uint64_t at = (uintptr_t)segment->begin;

    if (segment->is_shared) {
        return RMM_DRIVER_OK;
    }
    if (!rmm__sim_file_fill(&pool->file, segment->begin, segment->bytes, at) ||
        !rmm__sim_memory_share_locked(&pool->file, segment->begin, segment->bytes)) {
        return SIM_ERROR_OPERATING_SYSTEM;
    }
    segment->is_shared = true;
    return RMM_DRIVER_OK;
}

static int export_pointer_locked(const void *ptr, pointer_data_t *data)
{
    sim_piece_t piece;
    const sim_mempool_t *pool = rmm__sim_async_find_locked(ptr, &piece);
    int error;

    if (pool == NULL || pool->file.bytes == 0) {
        rmm__sim_violation_locked(
            "mempool_export_pointer: %p is no block of a pool that was exported", ptr);
        return RMM_DRIVER_INVALID_VALUE;
    }
    error = move_to_file(pool, piece.segment);
    *data = (pointer_data_t){
        .magic = DATA_MAGIC, .address = (uintptr_t)ptr, .bytes = piece.bytes};
    return error;
}

int rmm__sim_mempool_export_pointer(
    const void *ptr, unsigned char data_out[RMM_DRIVER_HANDLE_BYTES])
{
    int error = rmm__sim_enter_unsafe("mempool_export_pointer");
    pointer_data_t data;

    if (error != RMM_DRIVER_OK) {
        return error;
    }
    error = export_pointer_locked(ptr, &data);
    if (error == RMM_DRIVER_OK) {
        memset(data_out, 0, RMM_DRIVER_HANDLE_BYTES);
        memcpy(data_out, &data, sizeof(data));
    }
    rmm__sim_leave();
    return error;
}

/* ---- import ---- */

int rmm__sim_mempool_import(
    const rmm_driver_handle_t *handle, rmm_driver_mempool_t *pool_out)
{
    int error = handle->type == RMM_DRIVER_HANDLE_POSIX
                    ? rmm__sim_enter_unsafe("mempool_import")
                    : RMM_DRIVER_NOT_SUPPORTED;
    sim_file_t file;
    int device;

    if (error != RMM_DRIVER_OK) {
        return error;
    }
    error = rmm__sim_file_take(handle, FILE_KIND, &file, &device);
    if (error == RMM_DRIVER_OK) {
        error = rmm__sim_mempool_add_import_locked(&file, device, pool_out);
        if (error != RMM_DRIVER_OK) {
            rmm__sim_file_close(&file);
        }
    }
    rmm__sim_leave();
    return error;
}

static int import_pointer_locked(
    const sim_mempool_t *pool, const pointer_data_t *data, void **ptr_out)
{
    uint64_t first = data->address / PAGE * PAGE;
    imported_t *import;
    char *begin;

    if (!pool->is_imported || data->magic != DATA_MAGIC || data->bytes == 0 ||
        data->address >= FILE_BYTES || data->bytes > rmm__sim_device_bytes() ||
        data->bytes > FILE_BYTES - PAGE - data->address) {
        return RMM_DRIVER_INVALID_VALUE;
    }
    import = calloc(1, sizeof(*import));
    if (import == NULL) {
        return RMM_DRIVER_MEMORY_ALLOCATION;
    }
    import->mapped_bytes = rmm__round_up(data->address + data->bytes - first, PAGE);
    begin = mmap(
        NULL, import->mapped_bytes, PROT_NONE,
        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (begin == MAP_FAILED ||
        !rmm__sim_file_map(&pool->file, begin, import->mapped_bytes, first)) {
        if (begin != MAP_FAILED) {
            munmap(begin, import->mapped_bytes);
        }
        free(import);
        return RMM_DRIVER_MEMORY_ALLOCATION;
    }
    import->begin = begin;
    import->ptr = begin + (data->address - first);
    import->device = pool->device;
    import->next = imports;
    imports = import;
    *ptr_out = import->ptr;
    return RMM_DRIVER_OK;
}

int rmm__sim_mempool_import_pointer(
    rmm_driver_mempool_t handle, const unsigned char data[RMM_DRIVER_HANDLE_BYTES],
    void **ptr_out)
{
    int error = rmm__sim_enter_unsafe("mempool_import_pointer");
    const sim_mempool_t *pool;
    pointer_data_t words;

    if (error != RMM_DRIVER_OK) {
        return error;
    }
    memcpy(&words, data, sizeof(words));
    pool = rmm__sim_mempool_find_locked(handle, "mempool_import_pointer", &error);
    if (pool != NULL) {
        error = import_pointer_locked(pool, &words, ptr_out);
    }
    rmm__sim_leave();
    return error;
}

bool rmm__sim_mempool_end_import_locked(const void *ptr)
{
    imported_t **link = &imports;
    imported_t *gone;

    RMM_ASSERT_LOCKED(&rmm__sim_lock);
    while (*link != NULL && (*link)->ptr != ptr) {
        link = &(*link)->next;
    }
    gone = *link;
    if (gone == NULL) {
        return false;
    }
    *link = gone->next;
    rmm__sim_finish_device_locked(gone->device); /* CUDA would wait in the stream */
    munmap(gone->begin, gone->mapped_bytes);
    free(gone);
    return true;
}
