/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that processes share: a memfd, whose descriptor goes from one to the other. What it is can
 * be read from its name, and its size is sealed, so that a process which takes a descriptor of
 * another one neither maps what is no memory of a simulated GPU nor loses the pages later.
 *
 * A fabric handle says where the exporter's descriptor is, so it is of no use once the exporter is
 * gone, as on a real GPU.
 *
 * A program may close all descriptors: a file that is not the one of before counts as gone.
 *
 * Locking: all under rmm__sim_lock.
 */
#include "driver/sim/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/descriptor.h"
#include "core/uncancelled.h"

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
#define NAME_BYTES 64

/* "rmm-sim-memory:0" */
static void name_of(char name[NAME_BYTES], const char *what, int device)
{
    snprintf(name, NAME_BYTES, "rmm-sim-%s:%d", what, device);
}

/* Descriptor and size; false: it cannot be looked at. */
static bool remember(sim_file_t *file, int fd)
{
    struct stat status;

    if (fstat(fd, &status) != 0) {
        return false;
    }
    *file = (sim_file_t){
        .fd = fd,
        .device = status.st_dev,
        .inode = status.st_ino,
        .bytes = (uint64_t)status.st_size};
    return true;
}

bool rmm__sim_file_is_open(const sim_file_t *file)
{
    struct stat status;

    return file->bytes != 0 && fstat(file->fd, &status) == 0 &&
           status.st_ino == file->inode && status.st_dev == file->device;
}

void rmm__sim_file_close(sim_file_t *file)
{
    RMM_UNCANCELLED;

    if (rmm__sim_file_is_open(file)) {
        close(file->fd);
    }
    *file = (sim_file_t){.bytes = 0};
}

int rmm__sim_file_create(
    const char *what, int device, uint64_t bytes, sim_file_t *file_out)
{
    RMM_UNCANCELLED;
    char name[NAME_BYTES];
    int fd;

    name_of(name, what, device);
    fd = rmm__descriptor_above_standard(
        memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (fd < 0) {
        return SIM_ERROR_OPERATING_SYSTEM;
    }
    if (ftruncate(fd, (off_t)bytes) != 0 || fcntl(fd, F_ADD_SEALS, SEALS) != 0 ||
        !remember(file_out, fd)) {
        close(fd);
        return SIM_ERROR_OPERATING_SYSTEM;
    }
    return RMM_DRIVER_OK;
}

int rmm__sim_file_give(const sim_file_t *file, uint32_t type, rmm_driver_handle_t *out)
{
    RMM_UNCANCELLED;
    rmm_driver_handle_t fresh = {.type = type, .fd = -1};

    if (!rmm__sim_file_is_open(file)) {
        return SIM_ERROR_OPERATING_SYSTEM;
    }
    if (type == RMM_DRIVER_HANDLE_FABRIC) {
        snprintf(
            (char *)fresh.bytes, sizeof(fresh.bytes), "/proc/%ld/fd/%d", (long)getpid(),
            file->fd);
    } else {
        fresh.fd = fcntl(file->fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
        if (fresh.fd < 0) {
            return SIM_ERROR_OPERATING_SYSTEM;
        }
    }
    *out = fresh;
    return RMM_DRIVER_OK;
}

/* The device of a file of that kind; -1: it is none. */
static int device_of(int fd, const char *what)
{
    char path[NAME_BYTES], is[2 * NAME_BYTES], name[NAME_BYTES];
    ssize_t length;

    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    length = readlink(path, is, sizeof(is) - 1);
    if (length < 0 || fcntl(fd, F_GET_SEALS) != SEALS) {
        return -1;
    }
    is[length] = '\0';
    for (int device = 0; device < rmm__sim_device_count(); device++) {
        char expected[2 * NAME_BYTES];

        name_of(name, what, device);
        snprintf(expected, sizeof(expected), "/memfd:%s (deleted)", name);
        if (strcmp(is, expected) == 0) {
            return device;
        }
    }
    return -1;
}

static int take_descriptor(const rmm_driver_handle_t *handle)
{
    char path[sizeof(handle->bytes) + 1];
    bool is_fabric = handle->type == RMM_DRIVER_HANDLE_FABRIC;

    memcpy(path, handle->bytes, sizeof(handle->bytes));
    path[sizeof(handle->bytes)] = '\0';
    if (!is_fabric) {
        return fcntl(handle->fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    }
    return strncmp(path, "/proc/", strlen("/proc/")) == 0
               ? rmm__descriptor_above_standard(
                     open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK))
               : -1;
}

int rmm__sim_file_take(
    const rmm_driver_handle_t *handle, const char *what, sim_file_t *file_out,
    int *device_out)
{
    RMM_UNCANCELLED;
    int fd = take_descriptor(handle);
    int error = errno;
    int device;

    if (fd < 0) {
        return error == EMFILE || error == ENFILE ? SIM_ERROR_OPERATING_SYSTEM
                                                  : RMM_DRIVER_INVALID_VALUE;
    }
    device = device_of(fd, what);
    if (device < 0 || !remember(file_out, fd) || file_out->bytes == 0) {
        close(fd);
        return RMM_DRIVER_INVALID_VALUE;
    }
    *device_out = device;
    return RMM_DRIVER_OK;
}

bool rmm__sim_file_map(const sim_file_t *file, char *at, uint64_t bytes, uint64_t from)
{
    return rmm__sim_file_is_open(file) &&
           mmap(
               at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file->fd,
               (off_t)from) != MAP_FAILED;
}

bool rmm__sim_file_fill(
    const sim_file_t *file, const char *from, uint64_t bytes, uint64_t to)
{
    RMM_UNCANCELLED;

    while (bytes != 0) {
        ssize_t written = pwrite(file->fd, from, bytes, (off_t)to);

        if (written <= 0) {
            return false;
        }
        from += written;
        to += (uint64_t)written;
        bytes -= (uint64_t)written;
    }
    return true;
}
