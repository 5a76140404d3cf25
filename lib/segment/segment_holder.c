/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process that holds a segment: it keeps an exclusive flock through the mapping until it
 * ends, however it ends. A probe takes the shared lock and gives it back at once: it
 * fails while the process lives, and never gets in another prober's way.
 */
#include "segment/segment_holder.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/sysmacros.h>

#include "segment/segment_reader.h"

bool rmm__file_is_held(int fd)
{
    int result;

    do {
        result = flock(fd, LOCK_SH | LOCK_NB);
    } while (result != 0 && errno == EINTR);
    if (result != 0) {
        return true; /* held; or no answer, and then nothing may be removed */
    }
    flock(fd, LOCK_UN);
    return false;
}

bool rmm__segment_is_live(const rmm_segment_t *segment)
{
    return rmm__file_is_held(segment->fd);
}

bool rmm__lock_line_parse(const char *line, rmm_lock_line_t *lock_out)
{
    unsigned major_number, minor_number;
    int pid;

    /* 12: FLOCK  ADVISORY  WRITE 4711 00:19:1234 0 EOF; waiters have "->" and no match */
    if (sscanf(
            line, "%*u: FLOCK ADVISORY WRITE %d %x:%x:%" SCNu64, &pid, &major_number,
            &minor_number, &lock_out->inode) != 4) {
        return false;
    }
    lock_out->device = makedev(major_number, minor_number);
    lock_out->pid = pid;
    return pid > 0;
}

pid_t rmm__segment_pid(const rmm_segment_t *segment)
{
    FILE *locks = fopen("/proc/locks", "re");
    char *line = NULL;
    size_t line_bytes = 0;
    rmm_lock_line_t lock;
    pid_t pid = 0;

    if (locks == NULL) {
        return 0;
    }
    while (pid == 0 && getline(&line, &line_bytes, locks) > 0) {
        if (rmm__lock_line_parse(line, &lock) && lock.device == segment->device &&
            lock.inode == segment->inode) {
            pid = lock.pid;
        }
    }
    free(line);
    fclose(locks);
    return pid;
}
