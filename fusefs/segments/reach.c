/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who would see a mount; see reach.h.
 */
#include "segments/reach.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "segments/mounts.h"

#define INITIAL_PID_NAMESPACE                                                          \
    0xEFFFFFFCu /* its inode number; a constant of the kernel */

#define TABLE_OF_1 "/proc/1/mountinfo"

typedef struct wanted {
    bool by_id; /* else by the device */
    bool is_found;
    mount_line_t line; /* without path and type */
    uint64_t peers;    /* by the device: in this group, if one is */
} wanted_t;

static bool take(const mount_line_t *mount, void *arg)
{
    wanted_t *wanted = arg;
    bool is_it = wanted->by_id ? mount->id == wanted->line.id
                               : strcmp(mount->device, wanted->line.device) == 0;
    if (!is_it) {
        return false;
    }
    bool is_peer = wanted->by_id || mount->peers == wanted->peers;
    wanted->is_found = true;
    if (is_peer) {
        wanted->line = *mount;
    }
    return is_peer;
}

/* False: the table cannot be read. */
static bool look_in(const char *table_path, wanted_t *wanted)
{
    FILE *table = fopen(table_path, "re");
    if (table == NULL) {
        return false;
    }
    mounts_each(table, take, wanted);
    (void)fclose(table);
    return true;
}

/* A machine, or a container that is one (LXC, systemd-nspawn): then the folder is its own. */
static bool is_process_1_an_init(void)
{
    struct stat pids;
    char name[16] = "";
    if (stat("/proc/self/ns/pid", &pids) == 0 && pids.st_ino == INITIAL_PID_NAMESPACE) {
        return true;
    }
    FILE *comm = fopen("/proc/1/comm", "re");
    if (comm != NULL) {
        (void)!fgets(name, sizeof(name), comm);
        (void)fclose(comm);
    }
    return strcmp(name, "systemd\n") == 0 || strcmp(name, "init\n") == 0;
}

/* The machine's table lacks this mount. Is its file system there, and would a mount over the folder
 * be copied there? */
static reach_t reach_another_table(const mount_line_t *own)
{
    wanted_t there = {.peers = own->peers};
    memcpy(there.line.device, own->device, sizeof(there.line.device));
    (void)look_in(TABLE_OF_1, &there);
    bool is_copied = own->peers != 0 && there.line.peers == own->peers;
    return !there.is_found || is_copied ? REACH_PROGRAMS : REACH_CONTAINER;
}

/* The number of a mount is unique on the machine: a table that has it is of the same namespace. */
reach_t reach_of_mount(int fd)
{
    wanted_t own = {.by_id = true}, of_1 = {.by_id = true};
    if (!mounts_find_id(fd, &own.line.id) || !look_in("/proc/self/mountinfo", &own)) {
        return REACH_UNKNOWN;
    }
    if (!own.is_found) { /* a chroot's root, which is no mount */
        return REACH_PROGRAMS;
    }
    of_1.line.id = own.line.id;
    if (!look_in(TABLE_OF_1, &of_1)) {
        return REACH_UNKNOWN;
    }
    if (!of_1.is_found) {
        return reach_another_table(&own.line);
    }
    return mounts_is_of_root(own.line.id) || is_process_1_an_init() ? REACH_PROGRAMS
                                                                    : REACH_UNKNOWN;
}
