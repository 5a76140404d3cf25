/* SPDX-License-Identifier: Apache-2.0 */
#include "publish/process_identity.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"
#include "segment/clean_text.h"
#include "segment/job_label.h"

#define START_TIME_FIELD 22 /* of /proc/<pid>/stat, counted from 1 */

/* Up to bytes - 1 of a file, terminated; returns how many. */
static size_t slurp(const char *path, char *text, size_t bytes)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? 0 : read(fd, text, bytes - 1);

    if (fd >= 0) {
        close(fd);
    }
    text[got > 0 ? got : 0] = '\0';
    return got > 0 ? (size_t)got : 0;
}

static uint64_t start_time_ticks(void)
{
    char text[1024];
    const char *at;

    (void)slurp("/proc/self/stat", text, sizeof(text));
    at = strrchr(text, ')'); /* ends field 2, which may hold anything */
    for (int field = 2; at != NULL && field < START_TIME_FIELD; field++) {
        at = strchr(at + 1, ' ');
    }
    return at == NULL ? 0 : strtoull(at, NULL, 10);
}

static void read_comm(char *comm, size_t bytes)
{
    char text[64];

    (void)slurp("/proc/self/comm", text, sizeof(text));
    text[strcspn(text, "\n")] = '\0';
    rmm__text_copy(comm, bytes, text);
}

/* Arguments end in NUL each; "a b" and "a", "b" look the same here, as in ps. */
static void read_cmdline(char *cmdline, size_t bytes)
{
    size_t length = slurp("/proc/self/cmdline", cmdline, bytes);

    while (length > 0 && cmdline[length - 1] == '\0') {
        length--;
    }
    for (size_t i = 0; i < length; i++) {
        if (cmdline[i] == '\0') {
            cmdline[i] = ' ';
        }
    }
    rmm__text_clean(cmdline, length == bytes - 1 ? bytes : length + 1);
}

/* One that is no label is as none: the program's log cannot say so yet. */
static void read_job(rmm_segment_header_t *header)
{
    const char *label = getenv("RMM_JOB");

    header->job_offset = offsetof(rmm_segment_header_t, job);
    if (label != NULL && rmm__job_label_is_valid(label)) {
        rmm__text_copy(header->job, sizeof(header->job), label);
    }
}

void rmm__process_identity(rmm_segment_header_t *header)
{
    header->pid = (uint32_t)getpid();
    header->uid = (uint32_t)geteuid();
    header->start_time_ticks = start_time_ticks();
    header->start_time_ns = rmm__clock_ns(CLOCK_REALTIME);
    read_comm(header->comm, sizeof(header->comm));
    read_cmdline(header->cmdline, sizeof(header->cmdline));
    read_job(header);
}
