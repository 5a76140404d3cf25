/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/pool_sharing.h
 *
 * Memory of a pool for other processes of the node. The exporter describes a block of a pool with
 * RMM_POOL_EXPORTABLE, or of an async resource with RMM_ASYNC_HANDLE_POSIX_FD, and sends what
 * rmm_pool_export() gives; the importer maps it. docs/sharing.md has a whole example.
 *
 *     exporter                                        importer
 *     rmm_pool_export(mr, ptr, bytes, 0, &exported);  rmm_pool_export_receive(socket, &exported);
 *     rmm_pool_export_send(&exported, socket);        rmm_pool_import(&exported, &imported);
 *     rmm_pool_export_release(&exported);             rmm_pool_export_release(&exported);
 *                                                     ... imported->ptr, imported->bytes ...
 *                                                     rmm_pool_import_release(imported);
 *
 * Order: streams of two processes know nothing of each other. The exporter synchronises what has
 * written the block before it sends; the importer does before it says that it is done.
 *
 * Lifetime. An export keeps nothing in the pool: it is a description and descriptors, which can
 * be sent, kept or released at any time. An import keeps the memory, not the block:
 *  - The exporter frees the block: the pool uses the memory for other blocks, and the importer
 *    sees what they write, and overwrites it. So the importer releases first, as with
 *    cudaIpcOpenMemHandle(). An async resource even requires it.
 *  - The pool is trimmed, released, or its process ends or is killed: the importer keeps the
 *    memory and its bytes; the device gets it back when the last importer has released it or
 *    ended. So does an export whose descriptors are still open. Where an export holds a fabric
 *    handle (RMM_POOL_EXPORT_FABRIC) or is of an async resource, an import after the exporter's
 *    end fails.
 *  - The pool compacts: a block stays where it is, and so does what an importer sees.
 *  - A pool with memory that was exported refuses to sleep (rmm/pool_sleep.h): the block and those
 *    beside it in the same pieces must be freed, and the pool trimmed, so that the memory is no
 *    longer its own.
 *
 * What is shared are whole pieces of physical memory: an importer can reach its neighbours in the
 * pool, too. Export to processes that you trust.
 *
 * Statistics: the memory counts where it was allocated; an importer holds nothing.
 *
 * Threads: any. Fork: a child of a process that used the driver can neither export nor import.
 */
#ifndef RMM_POOL_SHARING_H
#define RMM_POOL_SHARING_H

#include <rmm/resource.h>

#ifdef __cplusplus
extern "C" {
#endif

/** For rmm_pool_export(): a fabric handle instead of descriptors. It may be sent as bytes, and
 * to other nodes of an NVLink fabric; where the system is set up for it (IMEX). */
#define RMM_POOL_EXPORT_FABRIC (RMM_CAST(uint64_t, 1) << 0)

/**
 * Describes a block for another process. All of it may be sent by other means than
 * rmm_pool_export_send(): the record as it is, the descriptors by SCM_RIGHTS (or
 * pidfd_getfd()), in their order. Then the importer fills the struct with its own memory, and
 * does not call rmm_pool_export_release().
 */
typedef struct rmm_pool_exported {
    size_t struct_size;  /**< set by RMM_POOL_EXPORTED_INIT; do not touch */
    void *record;        /**< describes the block and its pieces; owned */
    size_t record_bytes; /**< its size */
    int *descriptors;    /**< closed by an exec, and above 2; owned, as is the array */
    size_t descriptor_count; /**< one for each piece of memory; 0 of a fabric handle */
} rmm_pool_exported_t;

#define RMM_POOL_EXPORTED_INIT                                                         \
    {                                                                                  \
        sizeof(rmm_pool_exported_t), NULL, 0, NULL, 0                                  \
    }

/** Imported memory. Read only. */
typedef struct rmm_pool_imported {
    void *ptr;      /**< the block, in this process */
    uint64_t bytes; /**< that were exported */
    int device;     /**< where the memory is: a device of this process */
} rmm_pool_imported_t;

/**
 * Describe a block for other processes. The block stays the exporter's.
 *
 * A block that spans several pieces of physical memory takes a descriptor for each: a pool of
 * 80 GiB has pieces of 2 to 32 MiB, so that a block of 1 GiB takes up to 512. RLIMIT_NOFILE
 * bounds what a process may have.
 *
 * @param mr     a pool with RMM_POOL_EXPORTABLE, an async resource with
 *               RMM_ASYNC_HANDLE_POSIX_FD, or adaptors over one. Not a resource that divides
 *               the memory of one (an arena, another pool, binning)
 * @param ptr    the block, or any byte of it. It must not be freed meanwhile
 * @param bytes  how many from there; 0: to the end of the block
 * @param flags  RMM_POOL_EXPORT_*, or-ed
 * @param out    from RMM_POOL_EXPORTED_INIT; receives the description, owned by the caller
 *               (rmm_pool_export_release()); untouched on failure
 * @return RMM_OK, or
 *         RMM_ERR_INVALID_ARGUMENT    an argument is NULL, out was not made with _INIT, a flag is
 *                                     unknown, or mr has no live block there with so many bytes
 *         RMM_ERR_UNSUPPORTED         mr was not made for it, or its memory has no fabric handle
 *         RMM_ERR_ASLEEP              the pool sleeps
 *         RMM_ERR_IO                  no file descriptor is left
 *         RMM_ERR_OUT_OF_HOST_MEMORY
 *         RMM_ERR_CUDA                the driver failed
 */
RMM_API RMM_NODISCARD rmm_status_t rmm_pool_export(
    rmm_resource_t *mr, const void *ptr, size_t bytes, uint64_t flags,
    rmm_pool_exported_t *out);

/**
 * Close the descriptors and free the record. What was sent or imported stays.
 *
 * @param exported  of rmm_pool_export() or rmm_pool_export_receive(); NULL is allowed, and one
 *                  that was released
 */
RMM_API void rmm_pool_export_release(rmm_pool_exported_t *exported);

/**
 * Send an export over a connected Unix socket, of type SOCK_STREAM or SOCK_SEQPACKET. Waits while
 * the socket is full. The export stays the caller's. After a failure the connection is of no more
 * use.
 *
 * @param exported  what to send
 * @param socket    its descriptor
 * @return RMM_OK, or
 *         RMM_ERR_INVALID_ARGUMENT    exported is NULL, or none
 *         RMM_ERR_IO                  the socket failed, the peer closed it, or more descriptors
 *                                     are on their way than RLIMIT_NOFILE allows
 *         RMM_ERR_OUT_OF_HOST_MEMORY
 */
RMM_API RMM_NODISCARD rmm_status_t
rmm_pool_export_send(const rmm_pool_exported_t *exported, int socket);

/**
 * Receive what rmm_pool_export_send() sent; waits for it. After a failure the connection is of no
 * more use.
 *
 * @param socket  its descriptor
 * @param out     from RMM_POOL_EXPORTED_INIT; receives the export, owned by the caller
 * @return RMM_OK, or
 *         RMM_ERR_INVALID_ARGUMENT    out is NULL or was not made with _INIT, or what came is no
 *                                     export
 *         RMM_ERR_UNSUPPORTED         it is of another version of the library
 *         RMM_ERR_IO                  the socket failed, the peer closed it before all had come,
 *                                     or no file descriptor is left
 *         RMM_ERR_OUT_OF_HOST_MEMORY
 */
RMM_API RMM_NODISCARD rmm_status_t
rmm_pool_export_receive(int socket, rmm_pool_exported_t *out);

/**
 * Map exported memory into this process. The devices of the process that can access the memory
 * of its device may use it. The export stays the caller's, and may be released.
 *
 * Nothing in the record is trusted: it may come from anybody. One thing cannot be checked: CUDA
 * does not tell how large a block of an async resource is, so where its end is, and what the offset
 * into it is, is the exporter's word.
 *
 * @param exported  what the exporter sent
 * @param out       receives the import (rmm_pool_import_release()); untouched on failure
 * @return RMM_OK, or
 *         RMM_ERR_INVALID_ARGUMENT    an argument is NULL, or the record is malformed or does not
 *                                     fit the descriptors
 *         RMM_ERR_UNSUPPORTED         it is of another version, of a device that this process does
 *                                     not see, or the device cannot import it
 *         RMM_ERR_OUT_OF_MEMORY       no addresses are left
 *         RMM_ERR_OUT_OF_HOST_MEMORY
 *         RMM_ERR_NO_DEVICE           no usable GPU
 *         RMM_ERR_CUDA                the driver refuses it: the exporter has ended, a descriptor
 *                                     is no memory of this size, or the driver failed
 */
RMM_API RMM_NODISCARD rmm_status_t
rmm_pool_import(const rmm_pool_exported_t *exported, rmm_pool_imported_t **out);

/**
 * Wait for the devices, and unmap imported memory.
 *
 * @param imported  of rmm_pool_import(); NULL is allowed
 */
RMM_API void rmm_pool_import_release(rmm_pool_imported_t *imported);

#ifdef __cplusplus
}
#endif

#endif /* RMM_POOL_SHARING_H */
