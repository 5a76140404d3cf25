/* SPDX-License-Identifier: Apache-2.0 */
/* Search for what a program left; see left.h. */
#include "run/left.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "segment/runtime_dir.h"
#include "segment/segment_side.h"

typedef struct wanted {
    pid_t pid;
    uint64_t since_ns;
} wanted_t;

/* The segment `name` is the program's. */
static bool is_wanted(int dirfd, const char *name, const wanted_t *wanted)
{
    rmm_segment_t segment;
    char reason[RMM_SEGMENT_REASON_BYTES];
    if (rmm_segment_open(&segment, dirfd, name, reason) != RMM_SEGMENT_GOOD) {
        return false;
    }
    bool is = segment.uid == geteuid() && segment.header.pid == (uint32_t)wanted->pid &&
              segment.header.start_time_ns >= wanted->since_ns;
    rmm_segment_close(&segment);
    return is;
}

/* A process with two copies of the library has two segments, and one side file. */
static void find_file(run_left_t *left, DIR *dir, const wanted_t *wanted)
{
    struct dirent *entry;
    while (left->diag.fd < 0 && (entry = readdir(dir)) != NULL) {
        if (rmm_segment_name_parse(entry->d_name, NULL) &&
            is_wanted(left->dirfd, entry->d_name, wanted)) {
            snprintf(
                left->segment, sizeof(left->segment), "%.*s",
                (int)sizeof(left->segment) - 1, entry->d_name);
            if (rmm_diag_open(&left->diag, left->dirfd, left->segment, geteuid()) !=
                0) {
                left->diag.fd = -1;
            }
        }
    }
}

/* The diagnosis gets its events from CUDA, which also loads it. */
static bool ran_on_amd(void)
{
    const char *driver = getenv("RMM_DRIVER");
    return driver != NULL && strcmp(driver, "hip") == 0;
}

static void say_missing(run_left_t *left)
{
    if (left->segment[0] == '\0') {
        snprintf(
            left->missing, sizeof(left->missing),
            "the program left no segment: it does not use librmm-c, or does not "
            "publish");
    } else if (left->diag.fd < 0) {
        snprintf(
            left->missing, sizeof(left->missing),
            ran_on_amd()
                ? "there is no diagnosis of programs on AMD GPUs (RMM_DRIVER=hip)"
                : "the diagnosis was not started, or had no room for its file");
    }
}

void run_left_open(run_left_t *left, pid_t pid, uint64_t since_ns)
{
    const wanted_t wanted = {pid, since_ns};
    char path[RMM_RUNTIME_DIR_BYTES];
    *left = (run_left_t){.dirfd = -1, .diag.fd = -1};
    if (!rmm__runtime_dir(path, left->missing, sizeof(left->missing))) {
        return;
    }
    DIR *dir = opendir(path);
    left->dirfd = dir != NULL ? fcntl(dirfd(dir), F_DUPFD_CLOEXEC, 0) : -1;
    if (left->dirfd < 0) {
        snprintf(
            left->missing, sizeof(left->missing),
            "cannot read the runtime directory: %s", strerror(errno));
    } else {
        find_file(left, dir, &wanted);
        say_missing(left);
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
}

void run_left_close(run_left_t *left)
{
    rmm_diag_close(&left->diag);
    rmm__file_close(&left->dirfd);
}
