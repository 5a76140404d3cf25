/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks of a report; see block_list.h. The file is written with write(2), not mapped: on a
 * full file system that is an error, where a mapping would be a SIGBUS in an
 * allocation. It is as long as its rows need.
 *
 * The space that programs need to start is not for it: on /run/rmm the last 32 MiB.
 */
#include "publish/block_list.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/descriptor.h"
#include "core/host_memory.h"
#include "core/uncancelled.h"
#include "publish/publisher.h"
#include "segment/segment_reader.h"
#include "segment/temporary_file.h"

#define LEFT_SHARE 4                    /* this part of the file system stays free, */
#define LEFT_BYTES (UINT64_C(32) << 20) /* or so much, if that is less */

rmm_block_list_t *rmm__block_list_create(uint32_t most_rows)
{
    rmm_block_list_t *list = rmm__calloc(1, sizeof(*list));

    if (list != NULL) {
        list->most_rows =
            most_rows < RMM_BLOCKS_ROWS_MAX ? most_rows : RMM_BLOCKS_ROWS_MAX;
    }
    return list;
}

void rmm__block_list_destroy(rmm_block_list_t *list)
{
    rmm__free(list->rows);
    rmm__free(list);
}

bool rmm__block_list_begin(
    rmm_block_list_t *list, uint32_t resource_id, uint32_t more_resources)
{
    const uint32_t rows_left = list->most_rows - list->row_count;

    if (list->resource_count == RMM_BLOCKS_RESOURCES_MAX) {
        return false;
    }
    list->resources[list->resource_count++] = (rmm_blocks_resource_t){
        .resource_id = resource_id, .first_row = list->row_count};
    list->row_limit = list->row_count + rows_left / (more_resources + 1);
    return true;
}

void rmm__block_list_reserve(rmm_block_list_t *list, uint32_t rows)
{
    const uint32_t room = list->row_limit - list->row_count;
    const uint32_t wanted = list->row_count + (rows < room ? rows : room);
    rmm_blocks_row_t *grown;

    if (wanted <= list->row_capacity) {
        return;
    }
    /* new rows are zeroed, so that no page is missing under the lock */
    grown = rmm__resize(
        list->rows, list->row_capacity * sizeof(*grown), wanted * sizeof(*grown));
    if (grown != NULL) {
        list->rows = grown;
        list->row_capacity = wanted;
    }
}

/* --- the file ----------------------------------------------------------------------- */

/* False: nothing is published. */
static bool
where(char directory[RMM_RUNTIME_DIR_BYTES], char name[RMM_RUNTIME_DIR_BYTES])
{
    bool shared;

    rmm__mutex_lock(&rmm__publisher.lock);
    shared = rmm__publisher.state == RMM_PUBLISH_SHARED;
    snprintf(directory, RMM_RUNTIME_DIR_BYTES, "%s", rmm__publisher.directory);
    snprintf(
        name, RMM_RUNTIME_DIR_BYTES, "%.*s." RMM_BLOCKS_SUFFIX, RMM_SEGMENT_NAME_BYTES,
        rmm__publisher.name);
    rmm__mutex_unlock(&rmm__publisher.lock);
    return shared;
}

static bool has_space(int dirfd, uint64_t bytes)
{
    struct statvfs status;
    uint64_t unit, left;

    if (fstatvfs(dirfd, &status) != 0 || status.f_blocks == 0) {
        return true; /* the write will tell */
    }
    unit = status.f_frsize;
    left = status.f_blocks * unit / LEFT_SHARE;
    left = left < LEFT_BYTES ? left : LEFT_BYTES;
    return status.f_bavail * unit >= left + bytes;
}

static int write_all(int fd, const void *bytes, size_t length)
{
    const char *from = bytes;

    while (length > 0) {
        ssize_t put = rmm__host_memory_should_fail() ? (errno = ENOSPC, -1)
                                                     : write(fd, from, length);

        if (put < 0 && errno != EINTR) {
            return -errno;
        }
        if (put > 0) {
            from += put;
            length -= (size_t)put;
        }
    }
    return 0;
}

static rmm_blocks_header_t header_of(const rmm_block_list_t *list, uint32_t number)
{
    rmm_blocks_header_t header = {
        .magic = RMM_BLOCKS_MAGIC,
        .version_major = RMM_BLOCKS_MAJOR,
        .version_minor = RMM_BLOCKS_MINOR,
        .header_bytes = sizeof(header),
        .taken_ns = rmm__clock_ns(CLOCK_MONOTONIC),
        .number = number,
        .ready = 1,
        .resources_offset = sizeof(header),
        .resources_stride = sizeof(rmm_blocks_resource_t),
        .resources_count = list->resource_count,
        .rows_stride = sizeof(rmm_blocks_row_t),
        .rows_count = list->row_count};

    header.rows_offset =
        header.resources_offset + header.resources_count * header.resources_stride;
    header.file_bytes =
        header.rows_offset + (uint64_t)header.rows_count * header.rows_stride;
    return header;
}

static int write_file(int dirfd, int fd, const rmm_block_list_t *list, uint32_t number)
{
    const rmm_blocks_header_t header = header_of(list, number);
    int error = !rmm__file_size_is_allowed(header.file_bytes) ? -EFBIG
                : !has_space(dirfd, header.file_bytes)        ? -ENOSPC
                                                              : 0;

    if (error == 0) {
        error = write_all(fd, &header, sizeof(header));
    }
    if (error == 0) {
        error = write_all(
            fd, list->resources, list->resource_count * sizeof(list->resources[0]));
    }
    if (error == 0) {
        error = write_all(fd, list->rows, list->row_count * sizeof(list->rows[0]));
    }
    return error;
}

static int make_file(
    int dirfd, const char *name, const rmm_block_list_t *list, uint32_t number,
    const char **step_out)
{
    char temporary[RMM_TEMPORARY_NAME_BYTES];
    int fd = rmm__host_memory_should_fail()
                 ? -EMFILE
                 : rmm__temporary_file_open(dirfd, geteuid(), temporary);
    int error;

    *step_out = "create a file";
    if (fd < 0) {
        return fd;
    }
    fd = rmm__descriptor_above_standard(fd);
    *step_out = "write a file";
    error = fd < 0 ? -errno : write_file(dirfd, fd, list, number);
    if (fd >= 0) {
        close(fd);
    }
    if (error == 0) {
        *step_out = "name a file";
        error = rmm__host_memory_should_fail()                 ? -ENOSPC
                : renameat(dirfd, temporary, dirfd, name) == 0 ? 0
                                                               : -errno;
    }
    if (error != 0) {
        (void)unlinkat(dirfd, temporary, 0);
    }
    return error;
}

int rmm__block_list_publish(
    const rmm_block_list_t *list, uint32_t number, const char **step_out)
{
    RMM_UNCANCELLED;
    char directory[RMM_RUNTIME_DIR_BYTES], name[RMM_RUNTIME_DIR_BYTES];
    int dirfd, error;

    *step_out = "open a directory";
    if (!where(directory, name)) {
        return -ENOENT;
    }
    dirfd = rmm__host_memory_should_fail()
                ? (errno = EMFILE, -1)
                : open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dirfd < 0) {
        return -errno;
    }
    error = make_file(dirfd, name, list, number, step_out);
    close(dirfd);
    return error;
}

const char *rmm__block_list_directory(void)
{
    return rmm__publisher.directory;
}
