/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Space is taken before a page is used, because a hole in a mapping would be a SIGBUS in
 * an allocation on a full tmpfs; a page that is only read takes space, too. So a hole
 * is never in the memory that the process uses: that begins as private memory, and a page of
 * the file takes its place when the kernel has given the page space
 * (MADV_POPULATE_WRITE, which says so where an access would be the SIGBUS). This needs no
 * descriptor, so it works in a program that closes all of them or changes its root or user.
 * Before Linux 5.14 the space of the whole file is taken when it is made.
 *
 * Why in this order: the lock is taken before the file gets its name, so that a process that sees
 * the name sees the lock. The descriptor is closed: the
 * mapping keeps the open file, and so the lock, until the process ends in whatever way;
 * MADV_DONTFORK keeps a child from prolonging that.
 *
 * The caller keeps fork() away while a file is made (segment_writer.c): a child would
 * inherit the descriptor, and the lock with it.
 */
#include "publish/shared_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/host_memory.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* headers older than Linux 5.14 */
#endif
#define LOCK_TRIES 100
#define ALLOCATE_TRIES 100

static int open_temporary(rmm_shared_file_t *file)
{
    if (rmm__host_memory_should_fail()) {
        return -ENOMEM;
    }
    file->fd = rmm__temporary_file_open(file->dirfd, geteuid(), file->temporary);
    return file->fd < 0 ? file->fd : 0;
}

static int take_all_space(const rmm_shared_file_t *file)
{
    int error = ENOMEM;

    for (int i = 0; i < ALLOCATE_TRIES; i++) {
        error = posix_fallocate(file->fd, 0, (off_t)file->pages.bytes);
        if (error != EINTR) { /* a profiler's timer interrupts it */
            break;
        }
    }
    return -error;
}

static bool kernel_can_populate(void)
{
    return madvise(NULL, 0, MADV_POPULATE_WRITE) == 0;
}

static int take_size(rmm_shared_file_t *file)
{
    if (rmm__host_memory_should_fail()) {
        return -ENOMEM;
    }
    if (!rmm__file_size_is_allowed(file->pages.bytes)) {
        return -EFBIG;
    }
    if (!kernel_can_populate()) {
        file->pages.all_have_space = true;
        return take_all_space(file);
    }
    return ftruncate(file->fd, (off_t)file->pages.bytes) == 0 ? 0 : -errno;
}

/* A sweeper may be probing at this moment; no sweeper holds the lock for longer. */
static int take_lock(const rmm_shared_file_t *file)
{
    const struct timespec pause = {.tv_nsec = 1000000};

    for (int i = 0; i < LOCK_TRIES; i++) {
        if (flock(file->fd, LOCK_EX | LOCK_NB) == 0) {
            return 0;
        }
        if (errno != EWOULDBLOCK && errno != EINTR) {
            break;
        }
        nanosleep(&pause, NULL);
    }
    return -errno;
}

static void unmap(rmm_shared_pages_t *pages)
{
    if (pages->file != NULL) {
        munmap(pages->file, pages->bytes);
        pages->file = NULL;
    }
    if (pages->memory != NULL) {
        munmap(pages->memory, pages->bytes);
        pages->memory = NULL;
    }
}

static int map(int fd, rmm_shared_pages_t *pages)
{
    void *file, *memory;

    if (rmm__host_memory_should_fail()) {
        return -ENOMEM;
    }
    file = mmap(NULL, pages->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (file == MAP_FAILED) {
        return -errno;
    }
    pages->file = file;
    memory = mmap(
        NULL, pages->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        return -errno;
    }
    pages->memory = memory;
    return madvise(pages->file, pages->bytes, MADV_DONTFORK) == 0 ? 0 : -errno;
}

static int populate(char *at, size_t bytes)
{
    if (madvise(at, bytes, MADV_POPULATE_WRITE) == 0) {
        return 0;
    }
    return errno == EFAULT ? -ENOSPC : -errno; /* EFAULT: it would be a SIGBUS */
}

int rmm__shared_pages_back(const rmm_shared_pages_t *pages, size_t offset, size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t first = offset - offset % page;
    size_t length = (offset + bytes - first + page - 1) / page * page;
    int error;

    if (rmm__host_memory_should_fail()) {
        return -ENOSPC;
    }
    error = pages->all_have_space ? 0 : populate(pages->file + first, length);
    if (error != 0) {
        return error;
    }
    /* An old size of 0 makes a second mapping of the same pages, in place of the private
     * memory, in one step for other threads. */
    if (mremap(
            pages->file + first, 0, length, MREMAP_MAYMOVE | MREMAP_FIXED,
            pages->memory + first) == MAP_FAILED) {
        return -errno;
    }
    return 0;
}

int rmm__shared_file_create(
    rmm_shared_file_t *file, int dirfd, size_t bytes, const char **step_out)
{
    int error;

    *file = (rmm_shared_file_t){.dirfd = dirfd, .fd = -1, .pages.bytes = bytes};
    *step_out = "create a file";
    error = open_temporary(file);
    if (error != 0) {
        return error;
    }
    *step_out = "take space for a file";
    error = take_size(file);
    if (error == 0) {
        *step_out = "lock a file";
        error = take_lock(file);
    }
    if (error == 0) {
        *step_out = "map a file";
        error = map(file->fd, &file->pages);
    }
    if (error != 0) {
        rmm__shared_file_discard(file);
    }
    return error;
}

int rmm__shared_file_publish(rmm_shared_file_t *file, const char *name)
{
    if (rmm__host_memory_should_fail()) {
        return -ENOSPC; /* a directory may have to grow for a name */
    }
    if (renameat(file->dirfd, file->temporary, file->dirfd, name) != 0) {
        return -errno;
    }
    close(file->fd);
    file->fd = -1;
    return 0;
}

void rmm__shared_file_discard(rmm_shared_file_t *file)
{
    (void)unlinkat(file->dirfd, file->temporary, 0);
    unmap(&file->pages);
    close(file->fd);
    file->fd = -1;
}
