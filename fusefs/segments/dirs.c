/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Directories of segments; see dirs.h.
 */
#include "segments/dirs.h"

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
#include <time.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/hash.h"
#include "core/numbers.h"
#include "segment/list.h"
#include "segment/open_in.h"
#include "segment/segment_reader.h"
#include "segments/system_dir.h"
#include "support/daemon_log.h"

#define USERS_DIR "/run/user"
#define SHARED_DIR "/dev/shm"
#define SHARED_PREFIX "rmm-"
#define NAMES_CHANGE                                                                   \
    (IN_CREATE | IN_MOVED_TO | IN_DELETE | IN_MOVED_FROM | IN_DELETE_SELF |            \
     IN_MOVE_SELF | IN_ONLYDIR)
#define ANY_OWNER ((uid_t)-1)
#define EVENT_BYTES 4096
#define EVENT_READS 4 /* of one look: some 300 notices, 0.2 ms */
#define MS 1000000ull
#define SHARED_EVERY_NS (100 * MS)  /* a piece of the names in /dev/shm */
#define SHARED_PIECE_NS (MS / 4)    /* of them, 0.5 us each */
#define SHARED_START_NS (5000 * MS) /* at the start */
#define SHARED_AT_ONCE 64u

static void free_dir(const dirs_t *dirs, segment_dir_t *dir)
{
    if (dirs->dir_dropped != NULL) {
        dirs->dir_dropped(dirs->callback_arg, dir);
    }
    (void)close(dir->fd);
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
                 : inotify_add_watch(dirs->inotify_fd, link, NAMES_CHANGE | IN_ATTRIB);
    if (wd < 0 && dirs->inotify_fd >= 0) {
        log_warn(
            "cannot watch a directory: %s; raise fs.inotify.max_user_watches",
            strerror(errno));
    }
    return wd;
}

/* Watching the same inode again changes nothing, so every survey does it. */
static void watch_parent(dirs_t *dirs, int fd, const char *name)
{
    char link[32];
    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    int wd =
        dirs->inotify_fd < 0
            ? -1
            : inotify_add_watch(dirs->inotify_fd, link, NAMES_CHANGE | IN_MASK_ADD);
    if (wd < 0) {
        return; /* the next survey finds it */
    }
    for (size_t i = 0; i < dirs->parent_count; i++) {
        if (dirs->parents[i].wd == wd) {
            return;
        }
    }
    parent_dir_t *parents = rmm__list_make_room(
        dirs->parents, dirs->parent_count, &dirs->parent_capacity, sizeof(*parents));
    if (parents == NULL) {
        return;
    }
    dirs->parents = parents;
    parent_dir_t *parent = &dirs->parents[dirs->parent_count++];
    parent->wd = wd;
    (void)snprintf(parent->name, sizeof(parent->name), "%s", name);
}

static bool concerns(const parent_dir_t *parent, const char *name)
{
    return parent->name[0] == '\0' || strcmp(name, parent->name) == 0;
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

static void visit_shared(dirs_t *dirs, int shared, const char *name);

static void
take_parent_event(dirs_t *dirs, const parent_dir_t *parent, const char *name)
{
    if (strcmp(parent->name, SHARED_PREFIX) == 0) {
        visit_shared(dirs, dirs->shared_fd, name);
    } else if (concerns(parent, name)) {
        dirs->stale = true;
    }
}

static void
tell_name(const dirs_t *dirs, segment_dir_t *dir, uint32_t mask, const char *name)
{
    bool is_gone = (mask & (IN_DELETE | IN_MOVED_FROM)) != 0;
    if (dirs->name_changed == NULL) {
        return;
    }
    if ((mask & IN_ATTRIB) != 0) {
        dirs->name_touched(dirs->callback_arg, dir, name);
    } else {
        dirs->name_changed(dirs->callback_arg, dir, name, is_gone);
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
        if (dirs->list[i]->wd == event->wd && name[0] != '\0') {
            tell_name(dirs, dirs->list[i], event->mask, name);
        }
    }
    for (size_t i = 0; i < dirs->parent_count; i++) {
        if (dirs->parents[i].wd == event->wd && (event->mask & IN_ATTRIB) == 0) {
            take_parent_event(dirs, &dirs->parents[i], name);
        }
    }
}

static void take_events(dirs_t *dirs)
{
    _Alignas(struct inotify_event) char buffer[EVENT_BYTES];
    ssize_t got = 1;
    for (int i = 0; got > 0 && i < EVENT_READS; i++) {
        got = read(dirs->inotify_fd, buffer, sizeof(buffer));
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
        dir->changed = dir->changed || dir->wd < 0;
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

/* Takes fd over. NULL: no memory. */
static segment_dir_t *
add_dir(dirs_t *dirs, int fd, const struct stat *status, const char *path)
{
    segment_dir_t **list = rmm__list_make_room(
        dirs->list, dirs->count, &dirs->capacity, sizeof(segment_dir_t *));
    dirs->list = list != NULL ? list : dirs->list;
    segment_dir_t *dir = list != NULL ? calloc(1, sizeof(*dir)) : NULL;
    if (dir == NULL) {
        (void)close(fd);
        return NULL;
    }
    dir->fd = fd;
    dir->wd = watch_fd(dirs, fd); /* before the first scan: nothing falls between */
    dir->changed = true;
    dir->seen = true;
    dir->device = status->st_dev;
    dir->inode = status->st_ino;
    (void)snprintf(dir->path, sizeof(dir->path), "%s", path);
    dirs->list[dirs->count++] = dir;
    log_debug("segments in %s", path);
    return dir;
}

/* --- opening what others made --------------------------------------------------------- */

static void warn_once(dirs_t *dirs, const char *path, const char *type)
{
    uint64_t hash = rmm__hash_text(RMM_HASH_BEGIN, path);
    for (size_t i = 0; i < dirs->refused_count; i++) {
        if (dirs->refused[i] == hash) {
            return;
        }
    }
    if (dirs->refused_count < DIRS_REFUSED_MAX) {
        dirs->refused[dirs->refused_count++] = hash;
        log_warn("%s is ignored: its file system (%s) may never answer", path, type);
    }
}

/* Without a descriptor to open it with, a directory would seem to be gone, and its programs be
 * found as copies when it came back. */
static void note_shortage(dirs_t *dirs, int fd)
{
    dirs->is_short = dirs->is_short || (fd < 0 && rmm__is_out_of_descriptors(errno));
}

/* The folder at path, whose parents are trusted, perhaps itself a mount: opened for reading
 * once its type is known. -1: not there, or not to be touched. */
static int open_checked(dirs_t *dirs, const char *path, mount_kind_t worst)
{
    char link[32], type[MOUNT_TYPE_BYTES];
    int found = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int fd = -1;
    note_shortage(dirs, found);
    if (found < 0) {
        return -1;
    }
    errno = 0;
    if (mounts_kind(&dirs->mounts, found, type) <= worst) {
        (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", found);
        fd = open(link, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        note_shortage(dirs, fd);
    } else if (rmm__is_out_of_descriptors(errno)) {
        dirs->is_short = true;
    } else {
        warn_once(dirs, path, type);
    }
    (void)close(found);
    return fd;
}

/* The folder `name` of a parent into which others write: no link, no mount. */
static int open_below(dirs_t *dirs, int parent, const char *name, const char *path)
{
    int fd = rmm__open_in(parent, name, O_RDONLY | O_DIRECTORY);
    note_shortage(dirs, fd);
    if (fd < 0 && errno == EXDEV) {
        warn_once(dirs, path, "mounted over it");
    }
    return fd;
}

/* --- the directories ------------------------------------------------------------------ */

/* Takes fd over; -1 is ignored. A directory of another user than `owner` is left out, and one that
 * was removed: NULL. */
static segment_dir_t *consider(dirs_t *dirs, int fd, const char *path, uid_t owner)
{
    struct stat status;
    if (fd < 0) {
        return NULL;
    }
    if (fstat(fd, &status) != 0 || (owner != ANY_OWNER && status.st_uid != owner) ||
        status.st_nlink == 0) {
        (void)close(fd);
        return NULL;
    }
    segment_dir_t *known = find_dir(dirs, &status);
    if (known == NULL) {
        return add_dir(dirs, fd, &status, path);
    }
    known->seen = true;
    (void)close(fd);
    return known;
}

/* Only root can see what is below a mount, and mend modes. */
static void open_below_system(dirs_t *dirs)
{
    int parent = open_checked(dirs, SYSTEM_PARENT, MOUNT_LOCAL);
    if (parent >= 0) {
        dirs->below_fd = system_dir_open_below();
        (void)close(parent);
    }
}

static segment_dir_t *consider_for_all(dirs_t *dirs, int fd)
{
    segment_dir_t *dir = consider(dirs, fd, RMM_SYSTEM_RUNTIME_DIR, 0);
    if (dir != NULL && dirs->all_users && !dir->is_opened) {
        dir->is_opened = true;
        system_dir_open_to_all(dir->fd, dir->path);
    }
    return dir;
}

static void consider_system(dirs_t *dirs)
{
    const segment_dir_t *top =
        consider_for_all(dirs, open_checked(dirs, RMM_SYSTEM_RUNTIME_DIR, MOUNT_LOCAL));
    if (dirs->below_fd < 0) {
        return;
    }
    int fd = openat(dirs->below_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    note_shortage(dirs, fd);
    segment_dir_t *below = consider_for_all(dirs, fd);
    if (below != NULL) {
        below->is_below = below != top;
    }
}

/* "1000" */
static bool parse_uid(const char *text, uid_t *uid_out)
{
    uint64_t value;
    if (rmm__number_parse(text, strlen(text), &value) != RMM_NUMBER_OK ||
        value >= UINT_MAX) {
        return false;
    }
    *uid_out = (uid_t)value;
    return true;
}

static void consider_session(dirs_t *dirs, const char *session, uid_t uid)
{
    char path[PATH_MAX];
    int fd = open_checked(dirs, session, MOUNT_LOCAL);
    if (fd < 0) {
        return;
    }
    watch_parent(dirs, fd, "rmm");
    (void)snprintf(path, sizeof(path), "%s/rmm", session);
    (void)consider(dirs, open_below(dirs, fd, "rmm", path), path, uid);
    (void)close(fd);
}

static void consider_shared(dirs_t *dirs, int shared, uid_t uid)
{
    char path[64];
    (void)snprintf(path, sizeof(path), SHARED_DIR "/rmm-%u", (unsigned)uid);
    (void)consider(
        dirs, open_below(dirs, shared, path + sizeof(SHARED_DIR), path), path, uid);
}

static void visit_session(dirs_t *dirs, const char *name)
{
    char session[sizeof(USERS_DIR) + 16];
    uid_t uid;
    if (parse_uid(name, &uid)) {
        (void)snprintf(session, sizeof(session), USERS_DIR "/%u", (unsigned)uid);
        consider_session(dirs, session, uid);
    }
}

/* Takes fd over. Only root makes names there. */
static void consider_sessions(dirs_t *dirs, int fd)
{
    DIR *directory = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;
    if (directory == NULL) {
        if (fd >= 0) {
            (void)close(fd);
        }
        return;
    }
    while ((entry = readdir(directory)) != NULL) {
        visit_session(dirs, entry->d_name);
    }
    (void)closedir(directory);
}

static void visit_shared(dirs_t *dirs, int shared, const char *name)
{
    const size_t length = sizeof(SHARED_PREFIX) - 1;
    uid_t uid;
    if (strncmp(name, SHARED_PREFIX, length) == 0 && parse_uid(name + length, &uid)) {
        consider_shared(dirs, shared, uid);
    }
}

static void visit_known_shared(dirs_t *dirs)
{
    const size_t length = sizeof(SHARED_DIR); /* with the slash */
    const size_t known = dirs->count;
    for (size_t i = 0; i < known; i++) {
        char path[sizeof(dirs->list[i]->path)];
        memcpy(path, dirs->list[i]->path, sizeof(path));
        if (!dirs->list[i]->gone && strncmp(path, SHARED_DIR "/", length) == 0) {
            visit_shared(dirs, dirs->shared_fd, path + length);
        }
    }
}

static void begin_shared_names(dirs_t *dirs)
{
    int fd = dirs->shared_fd < 0
                 ? -1
                 : openat(dirs->shared_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    dirs->shared_names = fd < 0 ? NULL : fdopendir(fd);
    if (dirs->shared_names == NULL && fd >= 0) {
        (void)close(fd);
    }
}

static void end_shared_names(dirs_t *dirs)
{
    if (dirs->shared_names != NULL) {
        (void)closedir(dirs->shared_names);
        dirs->shared_names = NULL;
    }
}

/* A piece of the names, from where the last one ended. */
static void list_shared(dirs_t *dirs)
{
    uint64_t now = rmm__clock_ns(CLOCK_MONOTONIC);
    const uint64_t until =
        now + (dirs->shared_ns == 0 ? SHARED_START_NS : SHARED_PIECE_NS);
    if (now < dirs->shared_ns && dirs->inotify_fd >= 0) {
        return;
    }
    dirs->shared_ns = now + SHARED_EVERY_NS;
    if (dirs->shared_names == NULL) {
        begin_shared_names(dirs);
    }
    for (; dirs->shared_names != NULL && now < until;
         now = rmm__clock_ns(CLOCK_MONOTONIC)) {
        for (uint32_t i = 0; i < SHARED_AT_ONCE && dirs->shared_names != NULL; i++) {
            const struct dirent *entry = readdir(dirs->shared_names);
            if (entry != NULL) {
                visit_shared(dirs, dirs->shared_fd, entry->d_name);
            } else {
                end_shared_names(dirs);
            }
        }
    }
}

static void open_shared(dirs_t *dirs)
{
    int fd = open_checked(dirs, SHARED_DIR, MOUNT_LOCAL);
    if (fd < 0 && dirs->is_short) {
        return;
    }
    if (dirs->shared_fd >= 0) {
        (void)close(dirs->shared_fd);
    }
    dirs->shared_fd = fd;
    if (fd >= 0) {
        watch_parent(dirs, fd, SHARED_PREFIX);
    }
}

static void consider_all_users(dirs_t *dirs)
{
    int users = open_checked(dirs, USERS_DIR, MOUNT_LOCAL);
    if (users >= 0) {
        watch_parent(dirs, users, "");
    }
    consider_sessions(dirs, users);
    open_shared(dirs);
    visit_known_shared(dirs);
    list_shared(dirs);
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
    int shared = open_checked(dirs, SHARED_DIR, MOUNT_LOCAL);
    if (shared >= 0) {
        (void)snprintf(name, sizeof(name), "rmm-%u", (unsigned)dirs->uid);
        watch_parent(dirs, shared, name);
        consider_shared(dirs, shared, dirs->uid);
        (void)close(shared);
    }
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
    if (slash == NULL || slash[1] == '\0') {
        return;
    }
    *slash = '\0';
    int fd = open_checked(dirs, slash == above ? "/" : above, MOUNT_REMOTE);
    if (fd >= 0) {
        watch_parent(dirs, fd, slash + 1);
        (void)close(fd);
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
            free_dir(dirs, dir);
        } else {
            dirs->list[kept++] = dir;
        }
    }
    dirs->count = kept;
}

void dirs_survey(dirs_t *dirs)
{
    dirs->stale = false;
    dirs->is_short = false;
    for (size_t i = 0; i < dirs->count; i++) {
        dirs->list[i]->seen = false;
    }
    watch_above(dirs, dirs->only_one ? dirs->own_path : RMM_SYSTEM_RUNTIME_DIR);
    if (dirs->only_one) {
        (void)consider(
            dirs, open_checked(dirs, dirs->own_path, MOUNT_REMOTE), dirs->own_path,
            ANY_OWNER);
    } else {
        consider_system(dirs);
        if (dirs->all_users) {
            consider_all_users(dirs);
        } else {
            consider_own(dirs);
        }
    }
    if (dirs->is_short) {
        dirs->stale = true;
    } else {
        drop_gone(dirs);
    }
}

bool dirs_is_for_all(const segment_dir_t *dir)
{
    return strcmp(dir->path, RMM_SYSTEM_RUNTIME_DIR) == 0;
}

dir_state_t dirs_look_at(const segment_dir_t *dir, struct stat *status)
{
    memset(status, 0, sizeof(*status));
    (void)fstat(dir->fd, status);
    if (dirs_is_for_all(dir) && (status->st_mode & S_IWOTH) == 0) {
        return DIR_CLOSED;
    }
    return dir->is_below ? DIR_BELOW : DIR_OK;
}

/* --- opening -------------------------------------------------------------------------- */

bool dirs_check_wanted(char *reason, size_t reason_bytes)
{
    const char *wanted = getenv("RMM_RUNTIME_DIR");
    char type[MOUNT_TYPE_BYTES];
    mounts_t mounts = {0};
    int fd = wanted == NULL || wanted[0] == '\0'
                 ? -1
                 : open(wanted, O_PATH | O_DIRECTORY | O_CLOEXEC);
    bool good = fd < 0 || mounts_kind(&mounts, fd, type) != MOUNT_SERVED;
    if (!good) {
        (void)snprintf(
            reason, reason_bytes,
            "RMM_RUNTIME_DIR %.250s has the file system %s, which may never answer: "
            "name another directory",
            wanted, type);
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    mounts_fini(&mounts);
    return good;
}

bool dirs_open(dirs_t *dirs, bool use_inotify, char *reason, size_t reason_bytes)
{
    const char *wanted = getenv("RMM_RUNTIME_DIR");
    memset(dirs, 0, sizeof(*dirs));
    dirs->uid = geteuid();
    dirs->only_one = wanted != NULL && wanted[0] != '\0';
    dirs->all_users = dirs->uid == 0;
    dirs->inotify_fd = -1;
    dirs->shared_fd = -1;
    dirs->below_fd = -1;
    if (!dirs->only_one && dirs->all_users) {
        system_dir_make();
        open_below_system(dirs);
    }
    if (!rmm__runtime_dir(dirs->own_path, reason, reason_bytes)) {
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
        free_dir(dirs, dirs->list[i]);
    }
    free(dirs->list);
    free(dirs->parents);
    end_shared_names(dirs);
    if (dirs->shared_fd >= 0) {
        (void)close(dirs->shared_fd);
    }
    if (dirs->below_fd >= 0) {
        (void)close(dirs->below_fd);
    }
    if (dirs->inotify_fd >= 0) {
        (void)close(dirs->inotify_fd);
    }
    mounts_fini(&dirs->mounts);
    memset(dirs, 0, sizeof(*dirs));
}
