/* SPDX-License-Identifier: Apache-2.0 */
/* Checks a pid against the owner and the start time of a process; see process_check.h. */
#include "segment/process_check.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Field 22 of /proc/<pid>/stat. False: no process has that pid. */
static bool read_start_time(pid_t pid, uint64_t *ticks_out)
{
    char path[32], line[1024];
    const char *rest;
    FILE *file;
    size_t got;

    (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    file = fopen(path, "re");
    got = file == NULL ? 0 : fread(line, 1, sizeof(line) - 1, file);
    if (file != NULL) {
        (void)fclose(file);
    }
    line[got] = '\0';
    rest = strrchr(line, ')'); /* the name before it may hold anything */
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

/* By how much the boot clock of a process is shifted, in ticks rounded down. Kernels without time
 * namespaces (before 5.6) have no such file, and no shift. */
static uint64_t boot_clock_shift(const char *process)
{
    char path[48], line[128];
    int64_t seconds = 0, ns = 0;
    uint64_t ticks;
    FILE *file;

    (void)snprintf(path, sizeof(path), "/proc/%s/timens_offsets", process);
    file = fopen(path, "re");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        if (sscanf(line, "boottime %" SCNd64 " %" SCNd64, &seconds, &ns) == 2) {
            break;
        }
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    ticks = (uint64_t)sysconf(_SC_CLK_TCK);
    return (uint64_t)seconds * ticks + (uint64_t)ns / (UINT64_C(1000000000) / ticks);
}

/* Whether a process that started `seen` ticks after boot by our clock sees itself as started at
 * `own` ticks, because it is in another time namespace. Three numbers were rounded. */
static bool is_seen_in_its_namespace(pid_t pid, uint64_t seen, uint64_t own)
{
    char process[16];
    uint64_t shift;
    (void)snprintf(process, sizeof(process), "%d", (int)pid);
    shift = boot_clock_shift(process) - boot_clock_shift("self");
    return shift != 0 && own - (seen + shift) + 2 <= 4;
}

bool rmm__process_is(pid_t pid, uid_t uid, uint64_t start_time_ticks)
{
    uint64_t ticks;
    return pid > 0 && rmm__process_belongs_to(pid, uid) &&
           read_start_time(pid, &ticks) &&
           (ticks == start_time_ticks ||
            is_seen_in_its_namespace(pid, ticks, start_time_ticks));
}
