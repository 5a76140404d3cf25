/* SPDX-License-Identifier: Apache-2.0 */
/* Ours is the one that this process holds. */
#include "bench/own_segment.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include "segment/runtime_dir.h"

static bool is_ours(rmm_segment_t *segment, int directory, const char *name)
{
    char reason[RMM_SEGMENT_REASON_BYTES];
    if (!rmm__segment_name_parse(name, NULL) ||
        rmm__segment_open(segment, directory, name, reason) != RMM_SEGMENT_GOOD) {
        return false;
    }
    if (rmm__segment_pid(segment) == getpid()) {
        return true;
    }
    rmm__segment_close(segment);
    return false;
}

bool own_segment_open(rmm_segment_t *segment)
{
    char path[RMM_RUNTIME_DIR_BYTES], reason[RMM_SEGMENT_REASON_BYTES];
    if (!rmm__runtime_dir(path, reason, sizeof reason)) {
        return false;
    }
    DIR *directory = opendir(path);
    if (directory == NULL) {
        return false;
    }
    bool found = false;
    struct dirent *entry;
    while (!found && (entry = readdir(directory)) != NULL) {
        found = is_ours(segment, dirfd(directory), entry->d_name);
    }
    closedir(directory);
    return found;
}
