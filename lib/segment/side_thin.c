/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process allocates its side file in full, so that no write into it can fail later: 6 MB of a
 * diagnosis, of which a short program writes 32 KB. The file outlives the process for a while, and
 * so would 6 MB of memory for each of thousands of such programs.
 *
 * Not by the process itself on its way out: another of its threads may still write, and would find
 * no memory for a page that was given back.
 *
 * The owner may change the file at any time: it is read, never mapped, and no more of it than a
 * program of this library ever has. The mode 0400 says that it was done.
 */
#include "segment/side_thin.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "segment/zeros.h"

#define THICK_BYTES (256 << 10)
#define READ_BYTES_MAX ((off_t)512 << 20) /* a timeline has 268 MB at most */
#define PAGE_BYTES 4096
#define CHUNK_BYTES ((size_t)64 << 10)

bool rmm__side_is_thick(const struct stat *status)
{
    return S_ISREG(status->st_mode) && (status->st_mode & S_IWUSR) != 0 &&
           (off_t)status->st_blocks * 512 > THICK_BYTES;
}

/* The pages from `begin` to `end` hold zeros. */
static int punch(int fd, off_t begin, off_t end)
{
    return begin == end || fallocate(
                               fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, begin,
                               end - begin) == 0
               ? 0
               : -errno;
}

static int punch_zeros(int fd, off_t bytes)
{
    _Alignas(64) char chunk[CHUNK_BYTES];
    off_t begin = 0; /* of the zeros that end at `at` */
    off_t at = 0;
    ssize_t got = 0;
    int error = 0;

    while (error == 0 && at < bytes &&
           (got = pread(fd, chunk, sizeof(chunk), at)) >= PAGE_BYTES) {
        for (ssize_t i = 0; i + PAGE_BYTES <= got && error == 0; i += PAGE_BYTES) {
            if (!rmm__is_zero(chunk + i, PAGE_BYTES)) {
                error = punch(fd, begin, at);
                begin = at + PAGE_BYTES;
            }
            at += PAGE_BYTES;
        }
    }
    if (got < 0) {
        return -errno;
    }
    return error != 0 ? error : punch(fd, begin, at);
}

int rmm__side_thin(int fd)
{
    struct stat status;
    int error;

    if (fstat(fd, &status) != 0) {
        return -errno;
    }
    error = status.st_size > READ_BYTES_MAX ? -EFBIG : punch_zeros(fd, status.st_size);
    (void)fchmod(fd, S_IRUSR); /* also after an error, which would come again */
    return error;
}
