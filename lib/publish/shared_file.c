/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why in this order: the space is taken first, because a hole in a mapping would be a
 * SIGBUS in somebody's allocation on a full tmpfs. The lock is taken before the name is
 * given, so that whoever sees the name sees the lock. The descriptor is closed: the
 * mapping keeps the open file, and so the lock, until the process ends in whatever way;
 * MADV_DONTFORK keeps a child from prolonging that.
 *
 * The caller keeps fork() away while a file is made (segment_writer.c): a child would
 * inherit the descriptor, and the lock with it.
 */
#include "publish/shared_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/host_memory.h"

#define LOCK_TRIES 100
#define ALLOCATE_TRIES 100

uint64_t rmm__random64(void)
{
    struct timespec now;
    uint64_t number;

    if (getrandom(&number, sizeof(number), GRND_NONBLOCK) == (ssize_t)sizeof(number)) {
        return number;
    }
    /* Early in a boot. O_EXCL still refuses a name that exists. */
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_nsec << 34 ^ (uint64_t)now.tv_sec << 20 ^
           (uint64_t)getpid();
}

static int open_temporary(rmm_shared_file_t *file)
{
    snprintf(
        file->temporary, sizeof(file->temporary), ".%u.%016" PRIx64 ".tmp",
        (unsigned)geteuid(), rmm__random64());
    if (rmm__host_memory_should_fail()) {
        return -ENOMEM;
    }
    file->fd = openat(
        file->dirfd, file->temporary,
        O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file->fd < 0) {
        return -errno;
    }
    (void)fchmod(file->fd, 0600); /* whatever the umask says */
    return 0;
}

static int take_space(const rmm_shared_file_t *file)
{
    int error = ENOMEM;

    if (rmm__host_memory_should_fail()) {
        return -error;
    }
    for (int i = 0; i < ALLOCATE_TRIES; i++) {
        error = posix_fallocate(file->fd, 0, (off_t)file->bytes);
        if (error != EINTR) { /* a profiler's timer interrupts it */
            break;
        }
    }
    return -error;
}

/* A sweeper may be probing at this moment; nobody holds the lock for longer. */
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

static int map(rmm_shared_file_t *file)
{
    if (rmm__host_memory_should_fail()) {
        return -ENOMEM;
    }
    file->memory =
        mmap(NULL, file->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file->fd, 0);
    if (file->memory == MAP_FAILED) {
        file->memory = NULL;
        return -errno;
    }
    return madvise(file->memory, file->bytes, MADV_DONTFORK) == 0 ? 0 : -errno;
}

int rmm__shared_file_create(
    rmm_shared_file_t *file, int dirfd, size_t bytes, const char **step_out)
{
    int error;

    *file = (rmm_shared_file_t){.dirfd = dirfd, .fd = -1, .bytes = bytes};
    *step_out = "create a file";
    error = open_temporary(file);
    if (error != 0) {
        return error;
    }
    *step_out = "take space for a file";
    error = take_space(file);
    if (error == 0) {
        *step_out = "lock a file";
        error = take_lock(file);
    }
    if (error == 0) {
        *step_out = "map a file";
        error = map(file);
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
    if (file->memory != NULL) {
        munmap(file->memory, file->bytes);
        file->memory = NULL;
    }
    close(file->fd);
    file->fd = -1;
}
