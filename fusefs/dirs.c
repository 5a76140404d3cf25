/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Directories of segments; see dirs.h.
 */
#include "dirs.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log.h"
#include "segment/segment_reader.h"

#define USERS_DIR "/run/user"
#define SHARED_DIR "/dev/shm"
#define NAMES_CHANGE                                                                   \
    (IN_CREATE | IN_MOVED_TO | IN_DELETE | IN_MOVED_FROM | IN_DELETE_SELF |            \
     IN_MOVE_SELF | IN_ONLYDIR)
#define ANY_OWNER ((uid_t)-1)

/* --- lists ---------------------------------------------------------------------------- */

static bool grow(void **items, size_t count, size_t *capacity, size_t item_bytes)
{
    if (count < *capacity) {
        return true;
    }
    size_t wanted = *capacity == 0 ? 8 : *capacity * 2;
    void *grown = realloc(*items, wanted * item_bytes);
    if (grown == NULL) {
        return false;
    }
    *items = grown;
    *capacity = wanted;
    return true;
}

static void free_dir(segment_dir_t *dir)
{
    (void)close(dir->fd);
    free(dir->entries);
    free(dir);
}

/* --- watching ------------------------------------------------------------------------- */

/* The inode behind fd, by whatever name; -1: not watched. */
static int watch_fd(const dirs_t *dirs, int fd)
{
    char link[32];
    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    int wd = dirs->inotify_fd < 0
                 ? -1
                 : inotify_add_watch(dirs->inotify_fd, link, NAMES_CHANGE);
    if (wd < 0 && dirs->inotify_fd >= 0) {
        log_warn(
            "cannot watch a directory: %s; raise fs.inotify.max_user_watches",
            strerror(errno));
    }
    return wd;
}

/* Asking again for the same inode changes nothing, so every survey asks. */
static void watch_parent(dirs_t *dirs, const char *path, const char *name)
{
    int wd = dirs->inotify_fd < 0
                 ? -1
                 : inotify_add_watch(dirs->inotify_fd, path, NAMES_CHANGE);
    if (wd < 0) {
        return; /* not there (yet): its own parent, or the next survey, tells */
    }
    for (size_t i = 0; i < dirs->parent_count; i++) {
        if (dirs->parents[i].wd == wd) {
            return;
        }
    }
    void *items = dirs->parents;
    if (!grow(
            &items, dirs->parent_count, &dirs->parent_capacity, sizeof(parent_dir_t))) {
        return;
    }
    dirs->parents = items;
    parent_dir_t *parent = &dirs->parents[dirs->parent_count++];
    parent->wd = wd;
    (void)snprintf(parent->name, sizeof(parent->name), "%s", name);
}

static bool concerns(const parent_dir_t *parent, const char *name)
{
    size_t length = strlen(parent->name);
    if (length > 0 && parent->name[length - 1] == '-') {
        return strncmp(name, parent->name, length) == 0;
    }
    return length == 0 || strcmp(name, parent->name) == 0;
}

static void forget_parent(dirs_t *dirs, int wd)
{
    for (size_t i = 0; i < dirs->parent_count; i++) {
        if (dirs->parents[i].wd == wd) {
            dirs->parents[i] = dirs->parents[--dirs->parent_count];
            return;
        }
    }
}

static void take_event(dirs_t *dirs, const struct inotify_event *event)
{
    const char *name = event->len > 0 ? event->name : "";
    if ((event->mask & IN_Q_OVERFLOW) != 0) {
        dirs->stale = true;
        for (size_t i = 0; i < dirs->count; i++) {
            dirs->list[i]->changed = true;
        }
        return;
    }
    bool self = (event->mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_IGNORED)) != 0;
    dirs->stale = dirs->stale || self;
    if ((event->mask & IN_IGNORED) != 0) {
        forget_parent(dirs, event->wd);
        return;
    }
    for (size_t i = 0; i < dirs->count; i++) {
        segment_dir_t *dir = dirs->list[i];
        if (dir->wd == event->wd && rmm_segment_name_parse(name, NULL)) {
            dir->changed = true;
        }
    }
    for (size_t i = 0; i < dirs->parent_count; i++) {
        if (dirs->parents[i].wd == event->wd && concerns(&dirs->parents[i], name)) {
            dirs->stale = true;
        }
    }
}

static void take_events(dirs_t *dirs)
{
    _Alignas(struct inotify_event) char buffer[4096];
    ssize_t got;
    while ((got = read(dirs->inotify_fd, buffer, sizeof(buffer))) > 0) {
        for (ssize_t at = 0; at < got;) {
            const struct inotify_event *event = (const void *)(buffer + at);
            take_event(dirs, event);
            at += (ssize_t)(sizeof(*event) + event->len);
        }
    }
}

bool dirs_have_news(const dirs_t *dirs)
{
    int bytes = 0;
    return dirs->inotify_fd >= 0 && ioctl(dirs->inotify_fd, FIONREAD, &bytes) == 0 &&
           bytes > 0;
}

void dirs_take_news(dirs_t *dirs)
{
    if (dirs->inotify_fd >= 0) {
        take_events(dirs);
    } else {
        dirs->stale = true;
    }
    for (size_t i = 0; i < dirs->count; i++) {
        segment_dir_t *dir = dirs->list[i];
        dir->changed = dir->changed || dir->pending || dir->wd < 0;
    }
}

/* --- the survey ----------------------------------------------------------------------- */

static segment_dir_t *find_dir(const dirs_t *dirs, const struct stat *status)
{
    for (size_t i = 0; i < dirs->count; i++) {
        segment_dir_t *dir = dirs->list[i];
        if (!dir->gone && dir->device == status->st_dev &&
            dir->inode == status->st_ino) {
            return dir;
        }
    }
    return NULL;
}

/* Takes fd over. */
static void add_dir(dirs_t *dirs, int fd, const struct stat *status, const char *path)
{
    void *items = dirs->list;
    segment_dir_t *dir = calloc(1, sizeof(*dir));
    if (dir == NULL ||
        !grow(&items, dirs->count, &dirs->capacity, sizeof(segment_dir_t *))) {
        free(dir);
        (void)close(fd);
        return;
    }
    dirs->list = items;
    dir->fd = fd;
    dir->wd = watch_fd(dirs, fd); /* before the first scan: nothing falls between */
    dir->changed = true;
    dir->seen = true;
    dir->device = status->st_dev;
    dir->inode = status->st_ino;
    (void)snprintf(dir->path, sizeof(dir->path), "%s", path);
    dirs->list[dirs->count++] = dir;
    log_debug("segments in %s", path);
}

/* A place that may be there; owner ANY_OWNER: whoever made it answers for it. */
static void consider(dirs_t *dirs, const char *path, uid_t owner)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat status;
    if (fd < 0) {
        return;
    }
    if (fstat(fd, &status) != 0 || (owner != ANY_OWNER && status.st_uid != owner)) {
        (void)close(fd);
        return;
    }
    segment_dir_t *known = find_dir(dirs, &status);
    if (known != NULL) {
        known->seen = true;
        (void)close(fd);
        return;
    }
    add_dir(dirs, fd, &status, path);
}

/* "1000" */
static bool parse_uid(const char *text, uid_t *uid_out)
{
    char *end;
    if (!isdigit((unsigned char)text[0])) {
        return false;
    }
    errno = 0;
    unsigned long value = strtoul(text, &end, 10);
    if (errno != 0 || *end != '\0' || value >= UINT_MAX) {
        return false;
    }
    *uid_out = (uid_t)value;
    return true;
}

static void consider_session(dirs_t *dirs, const char *session, uid_t uid)
{
    char path[PATH_MAX];
    watch_parent(dirs, session, "rmm");
    (void)snprintf(path, sizeof(path), "%s/rmm", session);
    consider(dirs, path, uid);
}

static void consider_shared(dirs_t *dirs, uid_t uid)
{
    char path[64];
    (void)snprintf(path, sizeof(path), SHARED_DIR "/rmm-%u", (unsigned)uid);
    consider(dirs, path, uid);
}

static void consider_all_users(dirs_t *dirs)
{
    struct dirent *entry;
    uid_t uid;
    watch_parent(dirs, USERS_DIR, "");
    DIR *users = opendir(USERS_DIR);
    while (users != NULL && (entry = readdir(users)) != NULL) {
        if (parse_uid(entry->d_name, &uid)) {
            char session[sizeof(USERS_DIR) + 16];
            (void)snprintf(session, sizeof(session), USERS_DIR "/%u", (unsigned)uid);
            consider_session(dirs, session, uid);
        }
    }
    watch_parent(dirs, SHARED_DIR, "rmm-");
    DIR *shared = opendir(SHARED_DIR);
    while (shared != NULL && (entry = readdir(shared)) != NULL) {
        if (strncmp(entry->d_name, "rmm-", 4) == 0 &&
            parse_uid(entry->d_name + 4, &uid)) {
            consider_shared(dirs, uid);
        }
    }
    if (users != NULL) {
        (void)closedir(users);
    }
    if (shared != NULL) {
        (void)closedir(shared);
    }
}

static void consider_own(dirs_t *dirs)
{
    char name[24], session[sizeof(USERS_DIR) + 16];
    (void)snprintf(session, sizeof(session), USERS_DIR "/%u", (unsigned)dirs->uid);
    consider_session(dirs, session, dirs->uid);
    const char *wanted = getenv("XDG_RUNTIME_DIR");
    if (wanted != NULL && wanted[0] == '/' && strcmp(wanted, session) != 0) {
        consider_session(dirs, wanted, dirs->uid);
    }
    (void)snprintf(name, sizeof(name), "rmm-%u", (unsigned)dirs->uid);
    watch_parent(dirs, SHARED_DIR, name);
    consider_shared(dirs, dirs->uid);
}

/* The one of RMM_RUNTIME_DIR may be removed and made again, too. */
static void watch_above(dirs_t *dirs, const char *path)
{
    char above[RMM_RUNTIME_DIR_BYTES];
    (void)snprintf(above, sizeof(above), "%s", path);
    size_t length = strlen(above);
    while (length > 1 && above[length - 1] == '/') {
        above[--length] = '\0';
    }
    char *slash = strrchr(above, '/');
    if (slash != NULL && slash[1] != '\0') {
        *slash = '\0';
        watch_parent(dirs, slash == above ? "/" : above, slash + 1);
    }
}

/* One that is gone waits for the last member that refers to it. */
static void drop_gone(dirs_t *dirs)
{
    size_t kept = 0;
    for (size_t i = 0; i < dirs->count; i++) {
        segment_dir_t *dir = dirs->list[i];
        if (!dir->seen && !dir->gone) {
            dir->gone = true;
            if (dir->wd >= 0) {
                (void)inotify_rm_watch(dirs->inotify_fd, dir->wd);
                dir->wd = -1;
            }
        }
        if (dir->gone && dir->references == 0) {
            free_dir(dir);
        } else {
            dirs->list[kept++] = dir;
        }
    }
    dirs->count = kept;
}

static void follow_home(dirs_t *dirs)
{
    struct stat status;
    if (fstat(dirs->home_fd, &status) == 0 && status.st_nlink > 0) {
        return;
    }
    int fd = open(dirs->home, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        (void)close(dirs->home_fd);
        dirs->home_fd = fd;
        dirs->home_moved = true;
    }
}

void dirs_survey(dirs_t *dirs)
{
    dirs->stale = false;
    follow_home(dirs);
    for (size_t i = 0; i < dirs->count; i++) {
        dirs->list[i]->seen = false;
    }
    watch_above(dirs, dirs->only_one ? dirs->home : RMM_SYSTEM_RUNTIME_DIR);
    if (dirs->only_one) {
        consider(dirs, dirs->home, ANY_OWNER);
    } else {
        consider(dirs, RMM_SYSTEM_RUNTIME_DIR, 0);
        if (dirs->all_users) {
            consider_all_users(dirs);
        } else {
            consider_own(dirs);
        }
    }
    drop_gone(dirs);
}

/* --- opening -------------------------------------------------------------------------- */

/* Where every user's programs may write, as in /tmp. */
static void make_system_dir(void)
{
    struct stat status;
    if (mkdir(RMM_SYSTEM_RUNTIME_DIR, 0700) == 0) {
        if (chmod(RMM_SYSTEM_RUNTIME_DIR, 01777) != 0) {
            log_warn(
                "cannot give all users access to %s: %s", RMM_SYSTEM_RUNTIME_DIR,
                strerror(errno));
        }
        return;
    }
    if (errno != EEXIST) {
        log_warn(
            "cannot create %s: %s; rmmfs shows only programs that use other "
            "directories",
            RMM_SYSTEM_RUNTIME_DIR, strerror(errno));
    } else if (
        lstat(RMM_SYSTEM_RUNTIME_DIR, &status) != 0 || !S_ISDIR(status.st_mode) ||
        status.st_uid != 0) {
        log_warn(
            "%s is ignored: it is not a directory that root owns",
            RMM_SYSTEM_RUNTIME_DIR);
    }
}

bool dirs_open(dirs_t *dirs, bool use_inotify, char *reason, size_t reason_bytes)
{
    const char *wanted = getenv("RMM_RUNTIME_DIR");
    memset(dirs, 0, sizeof(*dirs));
    dirs->uid = geteuid();
    dirs->only_one = wanted != NULL && wanted[0] != '\0';
    dirs->all_users = dirs->uid == 0;
    dirs->inotify_fd = -1;
    if (!dirs->only_one && dirs->all_users) {
        make_system_dir();
    }
    if (!rmm__runtime_dir(dirs->home, reason, reason_bytes)) {
        return false;
    }
    dirs->home_fd = open(dirs->home, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dirs->home_fd < 0) {
        (void)snprintf(
            reason, reason_bytes, "cannot open %s: %s", dirs->home, strerror(errno));
        return false;
    }
    if (use_inotify) {
        dirs->inotify_fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
        if (dirs->inotify_fd < 0) {
            log_warn(
                "inotify is not available: %s; each access reads the directories "
                "instead. Raise fs.inotify.max_user_instances",
                strerror(errno));
        }
    }
    dirs->stale = true;
    return true;
}

void dirs_close(dirs_t *dirs)
{
    for (size_t i = 0; i < dirs->count; i++) {
        free_dir(dirs->list[i]);
    }
    free(dirs->list);
    free(dirs->parents);
    if (dirs->inotify_fd >= 0) {
        (void)close(dirs->inotify_fd);
    }
    (void)close(dirs->home_fd);
    memset(dirs, 0, sizeof(*dirs));
}
