/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mount point before the mount; see mountpoint.h.
 */
#include "daemon/mountpoint.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "daemon/ask.h"
#include "support/daemon_log.h"

#define ROOTS_MOUNTPOINT "/rmm"
#define PID_BYTES 24
#define LOOK_NS 20000000 /* between two looks at a live mount */
#define LOOKS_ALIVE 10   /* after so many the daemon counts as one that stays: 0.2 s */
#define LOOKS_MAX 250    /* 5 s */

extern char **environ;

typedef struct reason {
    char *text;
    size_t bytes;
} reason_t;

__attribute__((format(printf, 2, 3))) static bool
refuse(const reason_t *reason, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(reason->text, reason->bytes, format, args);
    va_end(args);
    return false;
}

/* --- the mount table ------------------------------------------------------------------ */

/* False: the table cannot be read. */
static bool each_mount(mount_fn act, void *arg)
{
    FILE *table = fopen("/proc/self/mountinfo", "re");
    if (table == NULL) {
        return false;
    }
    mounts_each(table, act, arg);
    (void)fclose(table);
    return true;
}

/* A mount that was looked for. */
typedef struct mount_found {
    const char *path; /* by this; NULL: by the id */
    bool found;
    uint64_t id;
    char device[MOUNT_DEVICE_BYTES], type[64];
    bool is_folder; /* as of mount_line_t */
    uint64_t peers;
} mount_found_t;

static void take_line(mount_found_t *top, const mount_line_t *mount)
{
    top->found = true;
    top->id = mount->id;
    top->is_folder = mount->is_folder;
    top->peers = mount->peers;
    memcpy(top->device, mount->device, sizeof(top->device));
    (void)snprintf(top->type, sizeof(top->type), "%s", mount->type);
}

static bool take_if_there(const mount_line_t *mount, void *arg)
{
    mount_found_t *top = arg;
    if (strcmp(mount->path, top->path) == 0) {
        take_line(top, mount); /* the last one is on top */
    }
    return false;
}

/* At exactly that path. */
static mount_found_t find_topmost(const char *path)
{
    mount_found_t top = {.path = path};
    (void)each_mount(take_if_there, &top);
    return top;
}

/* The type of the topmost; false: none. */
static bool topmost_type(const char *path, char *type, size_t type_bytes)
{
    mount_found_t top = find_topmost(path);
    if (top.found) {
        (void)snprintf(type, type_bytes, "%s", top.type);
    }
    return top.found;
}

/* A user may not call umount2: fusermount3 is setuid for that. */
static bool detach_as_user(const char *path)
{
    char program[] = "fusermount3", unmount[] = "-u", lazy[] = "-z", end[] = "--";
    char *copy = strdup(path);
    char *argv[] = {program, unmount, lazy, end, copy, NULL};
    pid_t pid;
    int status = -1;
    if (copy != NULL && posix_spawnp(&pid, program, NULL, NULL, argv, environ) == 0) {
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
        }
    }
    free(copy);
    return status == 0;
}

bool mountpoint_detach(const char *path)
{
    return umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW) == 0 || detach_as_user(path);
}

/* --- our own mount -------------------------------------------------------------------- */

void mountpoint_note_mount(mountpoint_t *mountpoint)
{
    mount_found_t top = find_topmost(mountpoint->path);
    if (top.found && strcmp(top.type, MOUNT_TYPE) == 0) {
        mountpoint->mount_id = top.id;
        memcpy(mountpoint->device, top.device, sizeof(mountpoint->device));
    }
}

typedef struct own_mount {
    const mountpoint_t *mountpoint;
    char *path; /* of PATH_MAX bytes: where it is now */
} own_mount_t;

/* The number alone is another mount's soon after ours is gone. No other has the device as long as
 * the connection to the kernel lives. */
static bool take_if_own(const mount_line_t *mount, void *arg)
{
    own_mount_t *own = arg;
    if (mount->id != own->mountpoint->mount_id ||
        strcmp(mount->device, own->mountpoint->device) != 0) {
        return false;
    }
    (void)snprintf(own->path, PATH_MAX, "%s", mount->path);
    return true;
}

bool mountpoint_find_own(const mountpoint_t *mountpoint, char path[PATH_MAX])
{
    own_mount_t own = {mountpoint, path};
    path[0] = '\0';
    if (mountpoint->device[0] == '\0' || !each_mount(take_if_own, &own)) {
        (void)snprintf(path, PATH_MAX, "%s", mountpoint->path);
    }
    return path[0] != '\0';
}

static bool take_if_id(const mount_line_t *mount, void *arg)
{
    mount_found_t *wanted = arg;
    if (mount->id != wanted->id) {
        return false;
    }
    take_line(wanted, mount);
    return true;
}

/* O_PATH sends no request to the file system. */
static int open_without_asking(const char *path)
{
    return open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
}

/* Is the open file on another file system? A bind mount of our tree on itself is none. */
static bool is_another(const mountpoint_t *mountpoint, int fd, mount_found_t *on)
{
    if (!mounts_find_id(fd, &on->id) || on->id == mountpoint->mount_id) {
        return false;
    }
    (void)each_mount(take_if_id, on);
    return strcmp(on->device, mountpoint->device) != 0;
}

bool mountpoint_is_covered(
    const mountpoint_t *mountpoint, const char *path, char *type, size_t type_bytes)
{
    mount_found_t on = {.type = "unknown"};
    bool is_covered = false;
    if (mountpoint->device[0] != '\0') {
        int fd = open_without_asking(path);
        if (fd >= 0) {
            is_covered = is_another(mountpoint, fd, &on);
            (void)close(fd);
        } else { /* something is mounted over a folder above it */
            is_covered = errno == ENOENT || errno == ENOTDIR || errno == ELOOP;
        }
    }
    (void)snprintf(type, type_bytes, "%s", on.type);
    return is_covered;
}

/* By the descriptor that was checked: a user who owns a folder above may put a link there. */
bool mountpoint_detach_own(const mountpoint_t *mountpoint, const char *path)
{
    char opened[PID_BYTES + sizeof("/proc/self/fd/")];
    uint64_t id = 0;
    int fd = open_without_asking(path);
    if (fd < 0) {
        return false;
    }
    (void)snprintf(opened, sizeof(opened), "/proc/self/fd/%d", fd);
    errno = ENOENT;
    bool is_detached =
        mounts_find_id(fd, &id) && id == mountpoint->mount_id &&
        (umount2(opened, MNT_DETACH) == 0 || (errno == EPERM && detach_as_user(path)));
    int error = errno;
    (void)close(fd);
    errno = error;
    return is_detached;
}

/* --- choosing ------------------------------------------------------------------------- */

static bool default_path(char path[PATH_MAX], const reason_t *reason)
{
    if (geteuid() == 0) {
        (void)snprintf(path, PATH_MAX, ROOTS_MOUNTPOINT);
        return true;
    }
    const char *home = getenv("HOME");
    if (home == NULL || home[0] != '/') {
        const struct passwd *user = getpwuid(geteuid());
        home = user != NULL ? user->pw_dir : NULL;
    }
    if (home == NULL || home[0] != '/') {
        return refuse(reason, "no home directory: name a mount point: rmmfs DIRECTORY");
    }
    (void)snprintf(path, PATH_MAX, "%s/rmm", home);
    return true;
}

/* Of an open file. That of a mount that was detached meanwhile begins at the mount: "/". */
static bool path_of(int fd, char path[PATH_MAX])
{
    char opened[PID_BYTES + sizeof("/proc/self/fd/")];
    (void)snprintf(opened, sizeof(opened), "/proc/self/fd/%d", fd);
    ssize_t got = readlink(opened, path, PATH_MAX - 1);
    path[got > 0 ? got : 0] = '\0';
    return got > 0;
}

/* Does the path lead to the mount that the open file is on? */
static bool leads_to_mount_of(const char *path, int fd)
{
    uint64_t expected = 0, found = 0;
    int other = open_without_asking(path);
    bool is_same = other >= 0 && mounts_find_id(fd, &expected) &&
                   mounts_find_id(other, &found) && found == expected;
    if (other >= 0) {
        (void)close(other);
    }
    return is_same;
}

/* realpath() without a request to the file system that is mounted there: it may be dead or hang.
 * What is unmounted or mounted there meanwhile is resolved again. */
static bool resolve_without_asking(const char *wanted, char path[PATH_MAX])
{
    bool is_resolved = false;
    for (int looks = 0; !is_resolved && looks < LOOKS_ALIVE; looks++) {
        int fd = open(wanted, O_PATH | O_CLOEXEC);
        if (fd < 0) {
            return false;
        }
        is_resolved = path_of(fd, path) && leads_to_mount_of(path, fd);
        (void)close(fd);
    }
    return is_resolved;
}

/* The path as the mount table has it. */
static bool resolve(const char *wanted, char path[PATH_MAX], const reason_t *reason)
{
    char copy[PATH_MAX], parent[PATH_MAX];
    size_t length = strlen(wanted);
    if (length == 0 || length >= sizeof(copy)) {
        return refuse(reason, "the mount point's name is empty or too long");
    }
    if (resolve_without_asking(wanted, path)) {
        return true;
    }
    memcpy(copy, wanted, length + 1);
    while (length > 1 && copy[length - 1] == '/') {
        copy[--length] = '\0';
    }
    char *slash = strrchr(copy, '/');
    const char *name = slash != NULL ? slash + 1 : copy;
    const char *above = slash == NULL ? "." : slash == copy ? "/" : copy;
    if (slash != NULL) {
        *slash = '\0';
    }
    if (realpath(above, parent) == NULL) {
        return refuse(
            reason, "cannot use %s: %s: name an empty directory", wanted,
            strerror(errno));
    }
    int printed =
        snprintf(path, PATH_MAX, "%s/%s", strcmp(parent, "/") == 0 ? "" : parent, name);
    return printed < PATH_MAX ? true : refuse(reason, "%s is too long a name", wanted);
}

/* --- checking ------------------------------------------------------------------------- */

/* False: nothing answers there. */
static bool read_pid(const char *path, char pid[PID_BYTES])
{
    char name[PATH_MAX + 16];
    (void)snprintf(name, sizeof(name), "%s/daemon/pid", path);
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, pid, PID_BYTES - 1);
    pid[got > 0 ? (size_t)got : 0] = '\0';
    pid[strcspn(pid, "\n")] = '\0';
    if (fd >= 0) {
        (void)close(fd);
    }
    return got > 0;
}

/* Told to end, but it has not noticed yet. */
static bool has_end_pending(const char *pid)
{
    char path[PID_BYTES + 16], line[128];
    unsigned long long pending = 0, ends = 1ull << (SIGTERM - 1) |
                                           1ull << (SIGINT - 1) | 1ull << (SIGHUP - 1);
    (void)snprintf(path, sizeof(path), "/proc/%s/status", pid);
    FILE *status = fopen(path, "re");
    while (status != NULL && fgets(line, sizeof(line), status) != NULL) {
        unsigned long long set;
        if (sscanf(line, "ShdPnd: %llx", &set) == 1) {
            pending = set;
        }
    }
    if (status != NULL) {
        (void)fclose(status);
    }
    return (pending & ends) != 0;
}

bool mountpoint_is_ours(const char *path)
{
    char type[64];
    return topmost_type(path, type, sizeof(type)) && strcmp(type, MOUNT_TYPE) == 0;
}

/* True: it is gone, or dead. Several looks distinguish a daemon that stays from one that ends:
 * between the signal and its end it still answers. pid receives that of a daemon that stays. */
static bool wait_for_end(const char *path, char pid[PID_BYTES])
{
    const struct timespec pause = {.tv_nsec = LOOK_NS};
    int answers = 0;
    for (int looks = 0; looks < LOOKS_MAX && answers < LOOKS_ALIVE; looks++) {
        if (!mountpoint_is_ours(path) || !read_pid(path, pid)) {
            return true;
        }
        answers += !has_end_pending(pid);
        (void)nanosleep(&pause, NULL);
    }
    return false;
}

static bool refuse_live(const char *path, const char *pid, const reason_t *reason)
{
    return refuse(
        reason, "rmmfs is mounted on %s already (pid %s): use it, or `umount %s` first",
        path, pid[0] != '\0' ? pid : "unknown", path);
}

/* Unmount a dead mount, if it is ours. */
static bool clear_dead(const char *path, const reason_t *reason)
{
    char type[64] = "";
    (void)topmost_type(path, type, sizeof(type));
    if (strcmp(type, MOUNT_TYPE) != 0) {
        return refuse(
            reason, "%s is a dead mount of type %s: `umount %s` first", path,
            type[0] != '\0' ? type : "unknown", path);
    }
    if (!mountpoint_detach(path)) {
        return refuse(
            reason,
            "%s is a dead mount of another user's rmmfs: ask that user or root to "
            "unmount it",
            path);
    }
    return true;
}

/* stat alone may be answered by the kernel, which remembers a root for a second. */
static int look_at(const char *path, struct stat *status)
{
    struct statfs space;
    int result = stat(path, status);
    return result != 0 || !S_ISDIR(status->st_mode) ? result : statfs(path, &space);
}

/* False: there was neither an answer nor an error. */
static bool is_answered(const char *path)
{
    char name[PATH_MAX + 16], text[16];
    (void)snprintf(name, sizeof(name), "%s/version", path);
    return ask_tree(name, text, sizeof(text)) != ETIMEDOUT;
}

/* Nothing after this waits for a daemon that hangs. A folder on which nothing is mounted is not
 * looked at. */
static bool check_answer(const char *path, const reason_t *reason)
{
    mount_found_t top = find_topmost(path);
    if (!top.found || strcmp(top.type, MOUNT_TYPE) != 0 || is_answered(path)) {
        return true;
    }
    return refuse(
        reason,
        "the rmmfs on %s does not answer: kill it, or abort its connection: `echo 1 "
        ">/sys/fs/fuse/connections/%s/abort`; then start again",
        path, top.device + strcspn(top.device, ":") + 1);
}

/* A daemon that ends may be quicker than we are: what is no mount any more is looked at again. */
static bool clear_all_dead(const char *path, const reason_t *reason)
{
    const struct timespec pause = {.tv_nsec = LOOK_NS};
    struct stat status;
    for (int looks = 0;
         look_at(path, &status) != 0 && (errno == ENOTCONN || errno == ECONNABORTED);
         looks++) {
        char type[64];
        bool is_mount = topmost_type(path, type, sizeof(type));
        if ((is_mount || looks >= LOOKS_ALIVE) && !clear_dead(path, reason) &&
            (looks >= LOOKS_ALIVE || topmost_type(path, type, sizeof(type)))) {
            return false;
        }
        (void)nanosleep(&pause, NULL);
    }
    return true;
}

static bool check_directory(
    const char *path, const struct stat *status, bool nonempty, const reason_t *reason)
{
    if (!S_ISDIR(status->st_mode)) {
        return refuse(reason, "%s is not a directory: name an empty one", path);
    }
    DIR *dir = opendir(path);
    if (dir == NULL) {
        return refuse(
            reason, "cannot read the directory %s: %s", path, strerror(errno));
    }
    const struct dirent *entry;
    bool empty = true;
    while ((entry = readdir(dir)) != NULL) {
        empty = empty &&
                (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0);
    }
    (void)closedir(dir);
    if (!empty && !nonempty) {
        return refuse(
            reason, "%s is not empty: name another directory, or use -o nonempty",
            path);
    }
    return true;
}

static bool make_missing(mountpoint_t *mountpoint, const reason_t *reason)
{
    mountpoint->made = mkdir(mountpoint->path, 0755) == 0;
    if (!mountpoint->made && errno != EEXIST) { /* another start has made it */
        return refuse(
            reason, "cannot create %s: %s: name another directory: rmmfs DIRECTORY",
            mountpoint->path, strerror(errno));
    }
    return true;
}

/* A container's runtime looks at the folder before it starts the container: one on which a killed
 * daemon left its mount is an error then, and no program in the container can clear it. */
static void warn_if_given(const char *path)
{
    mount_found_t top = find_topmost(path);
    if (top.found && top.is_folder && top.peers != 0) {
        log_warn(
            "%s is itself mounted into this container: if rmmfs is killed, the "
            "container "
            "cannot start again before `umount %s` on the machine; mount the folder "
            "above "
            "it instead, and use -o mkdir",
            path, path);
    }
}

/* Two daemons that start at once would both find no mount, and mount one over the other. Not waited
 * for longer than for an end: any user may lock a directory. */
static bool lock_for_mount(mountpoint_t *mountpoint, const reason_t *reason)
{
    const struct timespec pause = {.tv_nsec = LOOK_NS};
    char pid[PID_BYTES];
    int fd = open(mountpoint->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int looks = 0; fd >= 0 && looks < LOOKS_MAX; looks++) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
            break;
        }
        (void)nanosleep(&pause, NULL);
    }
    mountpoint->lock_fd = fd;
    if (!mountpoint_is_ours(mountpoint->path)) {
        return true;
    }
    (void)read_pid(mountpoint->path, pid);
    return refuse_live(mountpoint->path, pid, reason);
}

bool mountpoint_prepare(
    mountpoint_t *mountpoint, const options_t *options, char *text, size_t text_bytes)
{
    const char *wanted = options->mountpoint;
    const reason_t reason = {text, text_bytes};
    char chosen[PATH_MAX];
    struct stat status;
    mountpoint->made = false;
    mountpoint->lock_fd = -1;
    if (wanted == NULL && !default_path(chosen, &reason)) {
        return false;
    }
    const char *path = wanted != NULL ? wanted : chosen;
    if (!resolve(path, mountpoint->path, &reason)) {
        return false;
    }
    char pid[PID_BYTES] = "";
    if (!check_answer(mountpoint->path, &reason) ||
        !clear_all_dead(mountpoint->path, &reason)) {
        return false;
    }
    if (mountpoint_is_ours(mountpoint->path)) {
        if (!wait_for_end(mountpoint->path, pid)) {
            return refuse_live(mountpoint->path, pid, &reason);
        }
        if (!clear_all_dead(mountpoint->path, &reason)) {
            return false;
        }
    }
    int result = look_at(mountpoint->path, &status);
    if (result == 0) {
        warn_if_given(mountpoint->path);
        return lock_for_mount(mountpoint, &reason) &&
               check_directory(mountpoint->path, &status, options->nonempty, &reason);
    }
    if (errno == ENOENT && (wanted == NULL || options->mkdir)) {
        return make_missing(mountpoint, &reason) && lock_for_mount(mountpoint, &reason);
    }
    if (errno == ENOENT) {
        return refuse(&reason, "%s does not exist: `mkdir %s` first", path, path);
    }
    return refuse(
        &reason, "cannot use %s: %s: name an empty directory", path, strerror(errno));
}

bool mountpoint_name(
    const char *wanted, char path[PATH_MAX], char *text, size_t text_bytes)
{
    const reason_t reason = {text, text_bytes};
    char chosen[PATH_MAX];
    return (wanted != NULL || default_path(chosen, &reason)) &&
           resolve(wanted != NULL ? wanted : chosen, path, &reason);
}

bool mountpoint_name_to_ask(
    const char *wanted, char path[PATH_MAX], char *text, size_t text_bytes)
{
    bool is_named = mountpoint_name(wanted, path, text, text_bytes);
    bool is_there = is_named && mountpoint_is_ours(path);
    if (wanted != NULL || is_there || !mountpoint_is_ours(ROOTS_MOUNTPOINT)) {
        return is_named;
    }
    (void)snprintf(path, PATH_MAX, ROOTS_MOUNTPOINT);
    return true;
}

bool mountpoint_clear(const char *wanted, char *text, size_t text_bytes)
{
    const reason_t reason = {text, text_bytes};
    char path[PATH_MAX];
    struct stat status;
    if (!mountpoint_name(wanted, path, text, text_bytes) ||
        !check_answer(path, &reason) || !clear_all_dead(path, &reason)) {
        return false;
    }
    /* A name that was mistyped must not pass for a cleared mount. */
    if (wanted != NULL && lstat(path, &status) != 0 && errno == ENOENT) {
        return refuse(&reason, "%s does not exist: nothing is mounted there", wanted);
    }
    return true;
}

void mountpoint_unlock(mountpoint_t *mountpoint)
{
    if (mountpoint->lock_fd >= 0) {
        (void)close(mountpoint->lock_fd);
        mountpoint->lock_fd = -1;
    }
}

void mountpoint_abandon(const mountpoint_t *mountpoint)
{
    if (mountpoint->made) {
        (void)rmdir(mountpoint->path);
    }
}
