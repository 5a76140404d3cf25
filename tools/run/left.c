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

/* A segment of this user that was made since the program was started. */
typedef struct candidate {
    pid_t pid;
    uint64_t made_ns;
} candidate_t;

static bool
read_candidate(int dirfd, const char *name, uint64_t since_ns, candidate_t *out)
{
    rmm_segment_t segment;
    char reason[RMM_SEGMENT_REASON_BYTES];
    if (!rmm__segment_name_parse(name, NULL) ||
        rmm__segment_open(&segment, dirfd, name, reason) != RMM_SEGMENT_GOOD) {
        return false;
    }
    *out = (candidate_t){(pid_t)segment.header.pid, segment.header.start_time_ns};
    bool is_recent = segment.uid == geteuid() && out->made_ns >= since_ns;
    rmm__segment_close(&segment);
    return is_recent;
}

static void note_segment(run_left_t *left, const char *name)
{
    snprintf(
        left->segment, sizeof(left->segment), "%.*s", (int)sizeof(left->segment) - 1,
        name);
}

/* True: the segment has a side file, which takes the place of an earlier one. */
static bool take_file(run_left_t *left, const char *name)
{
    rmm_diag_file_t diag;
    if (rmm__diag_open(&diag, left->dirfd, name, geteuid()) != 0) {
        return false;
    }
    rmm__diag_close(&left->diag);
    left->diag = diag;
    note_segment(left, name);
    return true;
}

/* A process with two copies of the library has two segments, and one side file. One that became
 * another program (exec) may have two side files: the last program's is read. */
static void find_file(run_left_t *left, DIR *dir, const wanted_t *wanted)
{
    struct dirent *entry;
    uint64_t newest_ns = 0;
    candidate_t candidate;
    while ((entry = readdir(dir)) != NULL) {
        if (!read_candidate(left->dirfd, entry->d_name, wanted->since_ns, &candidate)) {
            continue;
        }
        if (candidate.pid != wanted->pid) {
            continue;
        }
        if (candidate.made_ns > newest_ns && take_file(left, entry->d_name)) {
            newest_ns = candidate.made_ns;
        } else if (left->segment[0] == '\0') {
            note_segment(left, entry->d_name);
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
            "the program left no segment: it allocated no GPU memory, does not "
            "publish its statistics, or does not use the library (which needs mode "
            "driver and CUPTI)");
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
    rmm__diag_close(&left->diag);
    rmm__file_close(&left->dirfd);
}
