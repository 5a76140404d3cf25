/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The record of an export: see sharing.h. What is decoded comes from another process, which may be
 * of another version, broken or hostile: every number is checked before it is used, and whoever
 * maps the memory needs no check of his own.
 */
#include "resources/sharing.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "core/error.h"
#include "core/host_memory.h"

static_assert(sizeof(rmm_sharing_header_t) == 176, "no hidden padding");
static_assert(sizeof(rmm_sharing_part_t) == 72, "no hidden padding");

static bool is_handle_type(uint32_t type)
{
    return type == RMM_DRIVER_HANDLE_POSIX || type == RMM_DRIVER_HANDLE_FABRIC;
}

static uint32_t descriptors_of(uint32_t handle_type, uint32_t part_count)
{
    return handle_type == RMM_DRIVER_HANDLE_POSIX ? part_count : 0;
}

static uint64_t record_bytes(uint32_t part_count)
{
    return sizeof(rmm_sharing_header_t) +
           (uint64_t)part_count * sizeof(rmm_sharing_part_t);
}

void *rmm__sharing_encode(const rmm_shared_t *shared, size_t *bytes_out)
{
    size_t bytes = (size_t)record_bytes(shared->count);
    unsigned char *record = rmm__calloc(1, bytes);
    rmm_sharing_header_t header = {
        .magic = RMM_SHARING_MAGIC,
        .major = RMM_SHARING_MAJOR,
        .header_bytes = sizeof(header),
        .record_bytes = bytes,
        .kind = shared->kind,
        .handle_type = shared->handle_type,
        .part_count = shared->count,
        .descriptor_count = descriptors_of(shared->handle_type, shared->count),
        .offset = shared->offset,
        .bytes = shared->bytes,
        .exporter = shared->exporter};

    if (record == NULL) {
        return NULL;
    }
    memcpy(header.uuid, shared->uuid, sizeof(header.uuid));
    memcpy(header.pointer, shared->pointer, sizeof(header.pointer));
    memcpy(record, &header, sizeof(header));
    for (uint32_t i = 0; i < shared->count; i++) {
        rmm_sharing_part_t part = {.bytes = shared->parts[i].bytes};

        if (shared->handle_type == RMM_DRIVER_HANDLE_FABRIC) {
            memcpy(part.handle, shared->parts[i].handle.bytes, sizeof(part.handle));
        }
        memcpy(record + record_bytes(i), &part, sizeof(part));
    }
    *bytes_out = bytes;
    return record;
}

static rmm_status_t malformed(const char *what)
{
    return rmm__error(
        RMM_ERR_INVALID_ARGUMENT, "the record of the export is malformed: %s", what);
}

/* It ends, and may stand in a message. */
static bool is_name(const char *text, size_t bytes)
{
    const char *end = memchr(text, '\0', bytes);

    for (const char *at = text; end != NULL && at < end; at++) {
        if (*at <= ' ' || *at > '~') {
            return false;
        }
    }
    return end != NULL && end != text;
}

static const char *look_at_header(const rmm_sharing_header_t *header)
{
    if (header->header_bytes != sizeof(*header) || header->part_count == 0 ||
        header->part_count > RMM_SHARING_PARTS_MAX ||
        header->record_bytes != record_bytes(header->part_count)) {
        return "its sizes do not fit each other";
    }
    if ((header->kind != RMM_SHARING_PIECES && header->kind != RMM_SHARING_MEMPOOL) ||
        (header->kind == RMM_SHARING_MEMPOOL && header->part_count != 1)) {
        return "no such kind of memory";
    }
    if (!is_handle_type(header->handle_type) ||
        header->descriptor_count !=
            descriptors_of(header->handle_type, header->part_count)) {
        return "its handles do not fit its parts";
    }
    if (header->bytes == 0 || header->offset > UINT64_MAX / 2 ||
        header->bytes > UINT64_MAX / 2) {
        return "the block has no size that can be";
    }
    return is_name(header->uuid, sizeof(header->uuid))
               ? NULL
               : "the name of its device is no name";
}

rmm_status_t rmm__sharing_check(const rmm_sharing_header_t *header)
{
    const char *wrong;

    if (memcmp(header->magic, RMM_SHARING_MAGIC, sizeof(header->magic)) != 0) {
        return malformed("it does not begin with " RMM_SHARING_MAGIC);
    }
    if (header->major != RMM_SHARING_MAJOR) {
        return rmm__error(
            RMM_ERR_UNSUPPORTED,
            "the export is of version %" PRIu32 ", and this library knows version %d: "
            "use the same version of rmm-c in both processes",
            header->major, RMM_SHARING_MAJOR);
    }
    wrong = look_at_header(header);
    return wrong == NULL ? RMM_OK : malformed(wrong);
}

/* Each part as the block needs it: none is without memory, and the block ends in the last. */
static rmm_status_t check_parts(const rmm_shared_t *shared)
{
    uint64_t end = shared->offset + shared->bytes;
    uint64_t total = 0;

    for (uint32_t i = 0; i < shared->count; i++) {
        uint64_t bytes = shared->parts[i].bytes;

        if (bytes == 0 || bytes > UINT64_MAX / 4 / RMM_SHARING_PARTS_MAX) {
            return malformed("a part has no size that can be");
        }
        if (i == 0 && shared->offset >= bytes) {
            return malformed("the block does not begin in its first part");
        }
        if (total >= end) {
            return malformed("the block does not reach its last part");
        }
        total += bytes;
    }
    return end <= total ? RMM_OK : malformed("the block is larger than its parts");
}

static rmm_status_t
decode_parts(const rmm_pool_exported_t *exported, rmm_shared_t *shared)
{
    for (uint32_t i = 0; i < shared->count; i++) {
        rmm_shared_part_t *part = &shared->parts[i];
        rmm_sharing_part_t bytes;

        memcpy(
            &bytes, (const unsigned char *)exported->record + record_bytes(i),
            sizeof(bytes));
        part->bytes = bytes.bytes;
        part->handle.type = shared->handle_type;
        part->handle.fd = shared->handle_type == RMM_DRIVER_HANDLE_POSIX
                              ? exported->descriptors[i]
                              : -1;
        memcpy(part->handle.bytes, bytes.handle, sizeof(bytes.handle));
    }
    return check_parts(shared);
}

rmm_status_t
rmm__sharing_decode(const rmm_pool_exported_t *exported, rmm_shared_t *shared_out)
{
    rmm_sharing_header_t header;
    rmm_shared_t shared = {.count = 0};
    rmm_status_t status;

    if (exported->record == NULL || exported->record_bytes < sizeof(header)) {
        return malformed("it is too short");
    }
    memcpy(&header, exported->record, sizeof(header));
    status = rmm__sharing_check(&header);
    if (status != RMM_OK) {
        return status;
    }
    if (header.record_bytes != exported->record_bytes) {
        return malformed("it has not the size that it says");
    }
    if (header.descriptor_count != exported->descriptor_count ||
        (header.descriptor_count != 0 && exported->descriptors == NULL)) {
        return rmm__error(
            RMM_ERR_INVALID_ARGUMENT,
            "the export has %" PRIu32 " descriptors, and %zu came with it",
            header.descriptor_count, exported->descriptor_count);
    }
    status = rmm__shared_init(&shared, header.part_count);
    if (status != RMM_OK) {
        return status;
    }
    shared.kind = header.kind;
    shared.handle_type = header.handle_type;
    shared.offset = header.offset;
    shared.bytes = header.bytes;
    shared.exporter = header.exporter;
    memcpy(shared.uuid, header.uuid, sizeof(shared.uuid));
    memcpy(shared.pointer, header.pointer, sizeof(shared.pointer));
    status = decode_parts(exported, &shared);
    if (status != RMM_OK) {
        rmm__free(shared.parts);
        return status;
    }
    *shared_out = shared;
    return RMM_OK;
}
