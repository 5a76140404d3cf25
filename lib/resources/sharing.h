/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory for other processes (rmm/pool_sharing.h), between the resources that have it, the record
 * that is sent, and the import.
 *
 *   sharing.c         export and import
 *   sharing_record.c  the record: bytes of another process, which are not trusted
 *   sharing_socket.c  an export over a Unix socket
 *
 * The record is this machine's: numbers are in its byte order. It is a header, then a part for each
 * piece of memory. Another major version is refused, and so is any size that is not as expected.
 */
#ifndef RMM_RESOURCES_SHARING_H
#define RMM_RESOURCES_SHARING_H

#include <rmm/pool_sharing.h>

#include "driver/driver.h"

#define RMM_SHARING_MAGIC "RMMSHARE"
#define RMM_SHARING_MAJOR 1
#define RMM_SHARING_PARTS_MAX (UINT32_C(1) << 20)

/* How the memory is shared. */
enum {
    RMM_SHARING_PIECES = 1, /* mapped pieces, each with a handle */
    RMM_SHARING_MEMPOOL = 2 /* a block of a CUDA memory pool, which has one */
};

typedef struct rmm_sharing_header {
    char magic[8];
    uint32_t major;
    uint32_t header_bytes;
    uint64_t record_bytes;
    uint32_t kind;
    uint32_t handle_type;
    uint32_t part_count;
    uint32_t descriptor_count;
    uint64_t
        offset; /* of the block in the first part; in a pool, from the block's first byte */
    uint64_t bytes;    /* of the block */
    uint64_t exporter; /* a pid, for messages */
    char uuid[48];     /* of the device; ends with a NUL */
    unsigned char
        pointer[RMM_DRIVER_HANDLE_BYTES]; /* of a pool: cudaMemPoolPtrExportData */
} rmm_sharing_header_t;

typedef struct rmm_sharing_part {
    uint64_t bytes;
    unsigned char handle[RMM_DRIVER_HANDLE_BYTES]; /* a fabric handle, else zeros */
} rmm_sharing_part_t;

/* An exported block, as its resource describes it, or the record does. */
typedef struct rmm_shared_part {
    uint64_t bytes;
    rmm_driver_handle_t handle;
} rmm_shared_part_t;

typedef struct rmm_shared {
    uint32_t kind, handle_type;
    uint64_t offset, bytes;
    uint64_t exporter;
    char uuid[48];
    unsigned char pointer[RMM_DRIVER_HANDLE_BYTES];
    uint32_t count;
    rmm_shared_part_t *parts; /* owned; their descriptors are an export's */
    /* After a failure: the resource's block is not exported. NULL: nothing to do. */
    void (*withdraw)(struct rmm_shared *shared);
    void *owner; /* these two for withdraw(); `found` is owned */
    void *found;
    uint32_t found_count;
} rmm_shared_t;

/* --- what resources do ----------------------------------------------------------------- */

/* A request to a resource (rmm_resource_ops_t.share). */
typedef struct rmm_sharing_request {
    const void *ptr;
    uint64_t bytes;       /* 0: to the end of the block */
    uint32_t handle_type; /* RMM_DRIVER_HANDLE_* */
} rmm_sharing_request_t;

/* The device's identity is in the export; other members are the resource's to set. A part's
 * descriptor is -1 until there is one. */
rmm_status_t rmm__shared_init(rmm_shared_t *shared, uint32_t count);
/* Closes the descriptors that are left, and frees the parts. */
void rmm__shared_fini(rmm_shared_t *shared);

/* Cut the block down to what is asked for; INVALID_ARGUMENT if it has less. */
rmm_status_t rmm__sharing_cut(
    const rmm_resource_t *mr, const rmm_sharing_request_t *request, uint64_t rest,
    uint64_t *bytes_out);

/* The error of an export that the driver refused. */
rmm_status_t rmm__sharing_export_error(const rmm_driver_t *driver, int error);
/* No descriptor can be opened now. */
bool rmm__sharing_is_table_full(void);
rmm_status_t rmm__sharing_table_full(size_t count);

/* --- sharing_record.c -------------------------------------------------------------------- */

/* The record of an export. NULL without host memory. */
void *rmm__sharing_encode(const rmm_shared_t *shared, size_t *bytes_out);
/* Look at the header alone: the record and the descriptors that belong to it. */
rmm_status_t rmm__sharing_check(const rmm_sharing_header_t *header);
/* From a record and descriptors, which stay the caller's; fini() must not close them. */
rmm_status_t
rmm__sharing_decode(const rmm_pool_exported_t *exported, rmm_shared_t *shared_out);

#endif /* RMM_RESOURCES_SHARING_H */
