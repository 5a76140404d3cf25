/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The types of mounted file systems; see mounts.h.
 */
#include "segments/mounts.h"

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "segment/list.h"

/* "\040" is a space. */
static void unescape(char *path)
{
    char *to = path;
    for (const char *from = path; *from != '\0';) {
        unsigned byte;
        if (from[0] == '\\' && sscanf(from + 1, "%3o", &byte) == 1) {
            *to++ = (char)byte;
            from += 4;
        } else {
            *to++ = *from++;
        }
    }
    *to = '\0';
}

/* 36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw. Spaces in paths are
 * escaped, so " - " is the separator. */
static bool parse_line(char *line, mount_line_t *mount)
{
    char *rest = line;
    char *path = NULL, *root = NULL;
    if (sscanf(line, "%" SCNu64 " %*u %23s", &mount->id, mount->device) != 2) {
        return false;
    }
    for (int field = 0; field < 5; field++) {
        root = path;
        path = strsep(&rest, " ");
    }
    char *dash = rest != NULL ? strstr(rest, " - ") : NULL;
    if (dash == NULL) {
        return false;
    }
    *dash = '\0';
    const char *shared = strstr(rest, " shared:");
    mount->peers =
        shared != NULL ? strtoull(shared + sizeof(" shared:") - 1, NULL, 10) : 0;
    char *type = dash + 3;
    type[strcspn(type, " \n")] = '\0';
    mount->is_folder = root != NULL && strcmp(root, "/") != 0;
    unescape(path);
    mount->path = path;
    mount->type = type;
    return true;
}

void mounts_each(FILE *table, mount_fn act, void *arg)
{
    char *line = NULL;
    size_t line_bytes = 0;
    bool is_enough = false;
    rewind(table);
    while (!is_enough && getline(&line, &line_bytes, table) > 0) {
        mount_line_t mount;
        is_enough = parse_line(line, &mount) && act(&mount, arg);
    }
    free(line);
}

/* File systems that the kernel serves from memory or a disk. */
static const char *const local_types[] = {
    "tmpfs", "ramfs", "rootfs", "devtmpfs", "overlay", "ext2", "ext3",    "ext4",
    "xfs",   "btrfs", "f2fs",   "zfs",      "jfs",     "aufs", "bcachefs"};

static mount_kind_t kind_of(const char *type)
{
    if (strncmp(type, "fuse", 4) == 0) { /* fuse, fuse.sshfs, fuseblk */
        return MOUNT_SERVED;
    }
    for (size_t i = 0; i < sizeof(local_types) / sizeof(local_types[0]); i++) {
        if (strcmp(type, local_types[i]) == 0) {
            return MOUNT_LOCAL;
        }
    }
    return MOUNT_REMOTE;
}

/* True, so that no more is read: no host memory. */
static bool add(const mount_line_t *mount, void *arg)
{
    mounts_t *mounts = arg;
    mount_entry_t *items = rmm__list_make_room(
        mounts->items, mounts->count, &mounts->capacity, sizeof(mount_entry_t));
    if (items == NULL) {
        return true;
    }
    mounts->items = items;
    mount_entry_t *entry = &mounts->items[mounts->count++];
    entry->id = mount->id;
    entry->kind = kind_of(mount->type);
    (void)snprintf(entry->type, sizeof(entry->type), "%s", mount->type);
    return false;
}

static int by_id(const void *left, const void *right)
{
    uint64_t a = ((const mount_entry_t *)left)->id;
    uint64_t b = ((const mount_entry_t *)right)->id;
    return a < b ? -1 : a > b;
}

static void read_table(mounts_t *mounts)
{
    mounts->count = 0;
    mounts_each(mounts->table, add, mounts);
    if (mounts->count > 0) {
        qsort(mounts->items, mounts->count, sizeof(mount_entry_t), by_id);
    }
}

/* False: there is no /proc. */
static bool refresh(mounts_t *mounts)
{
    bool is_new = mounts->table == NULL;
    if (is_new) {
        mounts->table = fopen("/proc/self/mountinfo", "re");
    }
    if (mounts->table == NULL) {
        return false;
    }
    struct pollfd news = {.fd = fileno(mounts->table), .events = POLLPRI};
    if (poll(&news, 1, 0) > 0 || is_new) {
        read_table(mounts);
    }
    return true;
}

/* statx returns it since Linux 5.8 only. */
bool mounts_find_id(int fd, uint64_t *id_out)
{
    char path[48], line[64];
    bool found = false;
    (void)snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
    FILE *info = fopen(path, "re");
    while (info != NULL && !found && fgets(line, sizeof(line), info) != NULL) {
        found = sscanf(line, "mnt_id: %" SCNu64, id_out) == 1;
    }
    if (info != NULL) {
        (void)fclose(info);
    }
    return found;
}

/* In a chroot whose root is no mount point, the table lacks the mount that the root is on.
 * Whoever started the daemon chose it: its program is read from there. */
bool mounts_is_of_root(uint64_t id)
{
    uint64_t root_id = 0;
    int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    bool is_same = root >= 0 && mounts_find_id(root, &root_id) && root_id == id;
    if (root >= 0) {
        (void)close(root);
    }
    return is_same;
}

mount_kind_t mounts_kind(mounts_t *mounts, int fd, char type[MOUNT_TYPE_BYTES])
{
    mount_entry_t wanted;
    (void)snprintf(type, MOUNT_TYPE_BYTES, "unknown");
    if (!mounts_find_id(fd, &wanted.id) || !refresh(mounts)) {
        return MOUNT_SERVED;
    }
    const mount_entry_t *entry =
        mounts->count == 0
            ? NULL
            : bsearch(
                  &wanted, mounts->items, mounts->count, sizeof(mount_entry_t), by_id);
    if (entry == NULL) {
        return mounts_is_of_root(wanted.id) ? MOUNT_LOCAL : MOUNT_SERVED;
    }
    memcpy(type, entry->type, MOUNT_TYPE_BYTES);
    return entry->kind;
}

void mounts_fini(mounts_t *mounts)
{
    if (mounts->table != NULL) {
        (void)fclose(mounts->table);
    }
    free(mounts->items);
    memset(mounts, 0, sizeof(*mounts));
}
