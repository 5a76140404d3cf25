/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who holds a segment: its process keeps an exclusive flock through the mapping until it
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

bool rmm_segment_is_live(const rmm_segment_t *segment)
{
    return rmm__file_is_held(segment->fd);
}

/* Holder named by one line of /proc/locks, if it is about this file; else 0. */
static pid_t holder_in_line(const char *line, const rmm_segment_t *segment)
{
    unsigned major_number, minor_number;
    uint64_t inode;
    int pid;

    /* 12: FLOCK  ADVISORY  WRITE 4711 00:19:1234 0 EOF; waiters have "->" and no match */
    if (sscanf(
            line, "%*u: FLOCK ADVISORY WRITE %d %x:%x:%" SCNu64, &pid, &major_number,
            &minor_number, &inode) != 4) {
        return 0;
    }
    if (major_number != major((dev_t)segment->device) ||
        minor_number != minor((dev_t)segment->device) || inode != segment->inode) {
        return 0;
    }
    return pid > 0 ? pid : 0;
}

pid_t rmm_segment_pid(const rmm_segment_t *segment)
{
    FILE *locks = fopen("/proc/locks", "re");
    char *line = NULL;
    size_t line_bytes = 0;
    pid_t pid = 0;

    if (locks == NULL) {
        return 0;
    }
    while (pid == 0 && getline(&line, &line_bytes, locks) > 0) {
        pid = holder_in_line(line, segment);
    }
    free(line);
    fclose(locks);
    return pid;
}
