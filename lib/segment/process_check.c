/* SPDX-License-Identifier: Apache-2.0 */
/* Checks a pid against the owner and the start time of a process; see process_check.h. */
#include "segment/process_check.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Field 22 of /proc/<pid>/stat. False: no process has that pid. */
static bool read_start_time(pid_t pid, uint64_t *ticks_out)
{
    char path[32], line[1024];
    (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "re");
    size_t got = file == NULL ? 0 : fread(line, 1, sizeof(line) - 1, file);
    if (file != NULL) {
        (void)fclose(file);
    }
    line[got] = '\0';
    const char *rest = strrchr(line, ')'); /* the name before it may hold anything */
    for (int field = 2; rest != NULL && field < 22; field++) {
        rest = strchr(rest + 1, ' ');
    }
    return rest != NULL && sscanf(rest, " %" SCNu64, ticks_out) == 1;
}

/* The owner of a process's folder is its effective user, whatever else it hides. */
bool rmm__process_belongs_to(pid_t pid, uid_t uid)
{
    char path[32];
    struct stat status;
    (void)snprintf(path, sizeof(path), "/proc/%d", (int)pid);
    return stat(path, &status) == 0 && status.st_uid == uid;
}

bool rmm__process_exists(pid_t pid)
{
    uint64_t ticks;
    return read_start_time(pid, &ticks);
}

bool rmm__process_is(pid_t pid, uid_t uid, uint64_t start_time_ticks)
{
    uint64_t ticks;
    return pid > 0 && rmm__process_belongs_to(pid, uid) &&
           read_start_time(pid, &ticks) && ticks == start_time_ticks;
}
