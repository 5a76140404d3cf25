/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Facts about the folder of segments, the daemon and a program; see check.h.
 */
#include "daemon/check.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "daemon/ask.h"
#include "daemon/mountpoint.h"
#include "segment/runtime_dir.h"
#include "segment/segment_name.h"
#include "segments/mounts.h"
#include "support/daemon_log.h"

#define REASON_BYTES 1024
#define TABLE_BYTES 65536 /* daemon/directories: 64 bytes a row */
#define DEVICE_BYTES 24

typedef struct check {
    const options_t *options;
    char mountpoint[PATH_MAX];
    char daemon_pid[24];     /* "": it does not answer */
    char table[TABLE_BYTES]; /* daemon/directories */
    bool is_good;
} check_t;

/* A row of daemon/directories. */
typedef struct row {
    char device[DEVICE_BYTES], state[16], path[RMM_RUNTIME_DIR_BYTES];
    uint64_t inode;
    unsigned mode, uid;
} row_t;

/* --- printing ------------------------------------------------------------------------- */

__attribute__((format(printf, 3, 4))) static void
tell(check_t *check, bool is_good, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)printf("%-7s ", is_good ? "ok" : "FAILED");
    (void)vprintf(format, args);
    (void)printf("\n");
    va_end(args);
    check->is_good = check->is_good && is_good;
}

/* --- the folder ----------------------------------------------------------------------- */

static const char *wanted_folder(void)
{
    const char *wanted = getenv("RMM_RUNTIME_DIR");
    return wanted != NULL && wanted[0] != '\0' ? wanted : RMM_SYSTEM_RUNTIME_DIR;
}

static bool has_own_folder(void)
{
    return strcmp(wanted_folder(), RMM_SYSTEM_RUNTIME_DIR) != 0;
}

typedef struct found_mount {
    uint64_t id;
    char path[PATH_MAX], type[MOUNT_TYPE_BYTES];
} found_mount_t;

static bool take_mount(const mount_line_t *mount, void *arg)
{
    found_mount_t *found = arg;
    if (mount->id != found->id) {
        return false;
    }
    (void)snprintf(found->path, sizeof(found->path), "%s", mount->path);
    (void)snprintf(found->type, sizeof(found->type), "%s", mount->type);
    return true;
}

static void tell_mount(check_t *check, const char *path, int fd)
{
    found_mount_t found = {.path = "?", .type = "unknown"};
    FILE *table = fopen("/proc/self/mountinfo", "re");
    if (table != NULL && mounts_find_id(fd, &found.id)) {
        mounts_each(table, take_mount, &found);
    }
    if (table != NULL) {
        (void)fclose(table);
    }
    bool is_served = strncmp(found.type, "fuse", 4) == 0;
    tell(
        check, !is_served, "%s is on %s, mounted on %s%s", path, found.type, found.path,
        is_served ? ": the daemon touches no such file system" : "");
}

static void tell_mode(check_t *check, const char *path, const struct stat *status)
{
    unsigned mode = status->st_mode & 07777;
    if (has_own_folder()) {
        tell(check, true, "%s has mode %04o, owner uid %u", path, mode, status->st_uid);
    } else if (status->st_uid != 0) {
        tell(
            check, false,
            "%s belongs to uid %u, not to root: remove it, and start rmmfs", path,
            status->st_uid);
    } else if ((mode & S_IWOTH) == 0) {
        tell(
            check, false,
            "%s has mode %04o, and other users cannot write there: `chmod 1777 %s`, or "
            "start rmmfs as root",
            path, mode, path);
    } else {
        tell(check, true, "%s has mode %04o, owner root", path, mode);
    }
}

/* False: there is none. */
static bool check_folder(check_t *check, struct stat *status)
{
    const char *path = wanted_folder();
    int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        tell(
            check, false,
            "%s: %s: start rmmfs as root, or mount the machine's /run/rmm into this "
            "container",
            path, strerror(errno));
        return false;
    }
    tell_mount(check, path, fd);
    bool is_known = fstat(fd, status) == 0;
    (void)close(fd);
    if (!is_known) {
        tell(check, false, "%s: %s", path, strerror(errno));
        return false;
    }
    tell_mode(check, path, status);
    if (faccessat(AT_FDCWD, path, W_OK | X_OK, AT_EACCESS) != 0) {
        tell(
            check, false, "uid %u cannot write to %s: %s", (unsigned)geteuid(), path,
            strerror(errno));
    }
    return true;
}

/* --- the daemon ----------------------------------------------------------------------- */

static int ask_for(const check_t *check, const char *file, char *text, size_t bytes)
{
    char path[PATH_MAX + 64];
    (void)snprintf(path, sizeof(path), "%s/%s", check->mountpoint, file);
    return ask_tree(path, text, bytes);
}

/* NULL, or why the daemon does not answer. */
static const char *why_no_answer(check_t *check, char reason[REASON_BYTES])
{
    if (!mountpoint_name_to_ask(
            check->options->mountpoint, check->mountpoint, reason, REASON_BYTES)) {
        return reason;
    }
    const char *path = check->mountpoint;
    if (!mountpoint_is_ours(path)) {
        (void)snprintf(
            reason, REASON_BYTES,
            "no rmmfs is mounted on %.512s as seen from here: start rmmfs, name its "
            "mount "
            "point, or share it with this container",
            path);
        return reason;
    }
    int error =
        ask_for(check, "daemon/pid", check->daemon_pid, sizeof(check->daemon_pid));
    check->daemon_pid[strcspn(check->daemon_pid, "\n")] = '\0';
    if (error == 0) {
        return NULL;
    }
    if (error == ETIMEDOUT) {
        (void)snprintf(
            reason, REASON_BYTES, "the rmmfs on %.512s does not answer within %d s",
            path, ASK_SECONDS);
    } else {
        (void)snprintf(
            reason, REASON_BYTES, "the rmmfs on %.512s does not answer: %s%s", path,
            strerror(error),
            error == ENOTCONN ? ": it was killed: start it again, or rmmfs --clear"
                              : "");
    }
    return reason;
}

static bool check_daemon(check_t *check)
{
    char reason[REASON_BYTES];
    const char *why = why_no_answer(check, reason);
    if (why != NULL) {
        tell(check, false, "%s", why);
        return false;
    }
    tell(
        check, true, "rmmfs (pid %s) answers on %s", check->daemon_pid,
        check->mountpoint);
    int error =
        ask_for(check, "daemon/directories", check->table, sizeof(check->table));
    if (error != 0) {
        tell(check, false, "daemon/directories: %s", strerror(error));
    }
    return error == 0;
}

/* The row from *next on, which moves behind it. False: there is no more. */
static bool take_row(const char **next, row_t *row)
{
    const char *line = *next;
    while (*line != '\0') {
        const char *end = line + strcspn(line, "\n");
        int at = 0;
        bool is_row = sscanf(
                          line, "%23s %" SCNu64 " %o %u %15s %n", row->device,
                          &row->inode, &row->mode, &row->uid, row->state, &at) == 5 &&
                      line + at <= end;
        *next = *end == '\n' ? end + 1 : end;
        if (is_row) {
            (void)snprintf(
                row->path, sizeof(row->path), "%.*s", (int)(end - line) - at,
                line + at);
            return true;
        }
        line = *next;
    }
    return false;
}

static bool is_in_another_namespace(const char *pid, const char *kind)
{
    char path[64], theirs[64] = "", own[64] = "";
    (void)snprintf(path, sizeof(path), "/proc/%s/ns/%s", pid, kind);
    ssize_t got = readlink(path, theirs, sizeof(theirs) - 1);
    (void)snprintf(path, sizeof(path), "/proc/self/ns/%s", kind);
    return got > 0 && readlink(path, own, sizeof(own) - 1) > 0 &&
           strcmp(own, theirs) != 0;
}

/* Is the folder as this process sees it one of those that the daemon looks at? */
static void check_same_folder(check_t *check, const struct stat *status)
{
    char device[DEVICE_BYTES];
    const char *next = check->table;
    const char *where = is_in_another_namespace(check->daemon_pid, "mnt")
                            ? ", which is in another mount namespace,"
                            : "";
    bool is_same = false;
    row_t row;
    (void)snprintf(
        device, sizeof(device), "%u:%u", major(status->st_dev), minor(status->st_dev));
    while (take_row(&next, &row)) {
        bool is_it = row.inode == status->st_ino && strcmp(row.device, device) == 0;
        is_same = is_same || is_it;
        if (strcmp(row.state, "closed") == 0) {
            tell(
                check, false,
                "the daemon's %s has mode %04o: other users cannot write "
                "there: `chmod 1777` it",
                row.path, row.mode);
        }
    }
    if (is_same) {
        tell(check, true, "the daemon%s looks at this %s", where, wanted_folder());
    } else {
        tell(
            check, false,
            "the daemon%s does not look at this %s: give both the same folder "
            "(RMM_RUNTIME_DIR; in a container mount the machine's /run/rmm)",
            where, wanted_folder());
    }
}

/* --- a program ------------------------------------------------------------------------ */

/* A segment that the process has mapped. */
typedef struct mapped {
    char device[DEVICE_BYTES]; /* as the mount table has it */
    char path[PATH_MAX];
    const char *name; /* in path */
} mapped_t;

/* "7f.. rw-s 00000000 00:2d 1234    /run/rmm/0.00ab": the device is hexadecimal. */
static bool parse_mapping(const char *line, mapped_t *mapped)
{
    unsigned device_major, device_minor;
    int at = 0;
    if (sscanf(line, "%*s %*s %*s %x:%x %*u %n", &device_major, &device_minor, &at) !=
            2 ||
        at == 0 || line[at] != '/') {
        return false;
    }
    (void)snprintf(mapped->path, sizeof(mapped->path), "%s", line + at);
    mapped->path[strcspn(mapped->path, "\n")] = '\0';
    (void)snprintf(
        mapped->device, sizeof(mapped->device), "%u:%u", device_major, device_minor);
    mapped->name = strrchr(mapped->path, '/') + 1;
    return rmm__file_name_parse(mapped->name).kind == RMM_FILE_SEGMENT;
}

/* False with errno: 0 if it has none. */
static bool find_mapped(pid_t pid, mapped_t *mapped)
{
    char path[64], line[PATH_MAX + 128];
    bool is_found = false;
    (void)snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
    FILE *maps = fopen(path, "re");
    if (maps == NULL) {
        return false;
    }
    errno = 0;
    while (!is_found && fgets(line, sizeof(line), maps) != NULL) {
        is_found = parse_mapping(line, mapped);
    }
    int error = errno;
    (void)fclose(maps);
    errno = error;
    return is_found;
}

static void check_device(check_t *check, const mapped_t *mapped)
{
    const char *next = check->table;
    row_t row;
    while (take_row(&next, &row)) {
        if (strcmp(row.device, mapped->device) == 0) {
            tell(
                check, true, "the daemon looks at that file system: %s%s", row.path,
                strcmp(row.state, "below") == 0 ? ", below a mount" : "");
            return;
        }
    }
    tell(
        check, false,
        "the daemon looks nowhere on the file system of %s: the program's container "
        "needs the machine's /run/rmm",
        mapped->path);
}

static void check_shown(check_t *check, pid_t pid, const mapped_t *mapped)
{
    char file[64], text[64];
    const char *id = strchr(mapped->name, '.') + 1;
    (void)snprintf(file, sizeof(file), "proc/%d/state", (int)pid);
    int error = ask_for(check, file, text, sizeof(text));
    if (error == 0) {
        tell(check, true, "%s/proc/%d is there", check->mountpoint, (int)pid);
        return;
    }
    (void)snprintf(file, sizeof(file), "proc/seg-%s/state", id);
    if (ask_for(check, file, text, sizeof(text)) == 0) {
        tell(
            check, false,
            "it is shown as proc/seg-%s, because the daemon cannot see its pid: start "
            "rmmfs with the machine's pids (Kubernetes: hostPID: true)",
            id);
        return;
    }
    tell(
        check, false,
        "%s/proc/%d: %s: see daemon/unshown, daemon/over_budget and the "
        "daemon's log",
        check->mountpoint, (int)pid, strerror(error));
}

static void check_program(check_t *check, pid_t pid, bool has_table)
{
    char text[24];
    mapped_t mapped;
    if (!find_mapped(pid, &mapped)) {
        if (errno == ENOENT || errno == ESRCH) {
            tell(check, false, "there is no process %d", (int)pid);
        } else if (errno != 0) {
            tell(
                check, false, "process %d: %s: run this as root or as its user",
                (int)pid, strerror(errno));
        } else {
            tell(
                check, false,
                "process %d has no segment: it does not use librmm-c, has not used it "
                "yet, has RMM_PUBLISH=0, or its own log has the reason",
                (int)pid);
        }
        return;
    }
    (void)snprintf(text, sizeof(text), "%d", (int)pid);
    tell(
        check, true, "process %d has the segment %s%s", (int)pid, mapped.path,
        is_in_another_namespace(text, "mnt") ? ", in another mount namespace" : "");
    if (has_table) {
        check_device(check, &mapped);
        check_shown(check, pid, &mapped);
    }
}

/* --- both commands -------------------------------------------------------------------- */

int check_ping(const options_t *options)
{
    check_t check = {.options = options};
    char reason[REASON_BYTES];
    const char *why = why_no_answer(&check, reason);
    if (why != NULL) {
        log_reason("%s", why);
    }
    return why == NULL ? EXIT_SUCCESS : EXIT_FAILURE;
}

int check_run(const options_t *options)
{
    static check_t check; /* too large for a stack */
    struct stat folder;
    check = (check_t){.options = options, .is_good = true};
    bool has_folder = check_folder(&check, &folder);
    bool has_table = check_daemon(&check);
    if (has_folder && has_table) {
        check_same_folder(&check, &folder);
    }
    if (options->pid != 0) {
        check_program(&check, options->pid, has_table);
    }
    return check.is_good ? EXIT_SUCCESS : EXIT_FAILURE;
}
